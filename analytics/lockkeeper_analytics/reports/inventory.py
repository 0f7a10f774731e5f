"""Inventory of the journal: records and bytes of each kind, and the time they span."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit


def inventory(journal: Journal) -> DataFrame:
    """Return one row for each directory and kind of record.

    `files` counts the files that hold such records, `first_at` and `last_at` are the earliest
    and latest times known of them.
    """
    return (
        journal.records.groupBy("directory", "kind")
        .agg(
            F.count("*").alias("records"),
            F.sum("record_bytes").alias("bytes"),
            F.countDistinct("file_id").alias("files"),
            F.min(F.coalesce("written_after", "written_before")).alias("first_at"),
            F.max("written_after").alias("last_at"),
        )
        .orderBy("directory", F.desc("records"), "kind")
    )


REPORT = Report(
    name="inventory",
    title="The journal",
    question="What is in the journal?",
    frame=inventory,
    columns=(
        Column("directory", "Directory", Unit.CODE),
        Column("kind", "Record"),
        Column("records", "Records", Unit.COUNT, Tone.CAME),
        Column("bytes", "Size", Unit.BYTES),
        Column("files", "Files", Unit.COUNT),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
    ),
    plot=None,
    nothing="The journal holds no record.",
)
