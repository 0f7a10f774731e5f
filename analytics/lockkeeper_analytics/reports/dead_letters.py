"""Dead letters, by where they were meant for and by cause."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.grouping import dead_letters_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit


def dead_letters(journal: Journal) -> DataFrame:
    """Return one row for each origin, dead letter queue and cause, the most frequent first.

    Causes that differ only in a message id count as one. `redeliveries` is the highest
    redelivery counter among them.
    """
    cause = F.regexp_replace("dead_letter_cause", r"ID:[^\s,\]\}\)]+", "ID:…")
    return (
        dead_letters_of(journal.effects)
        .groupBy(
            "directory",
            "origin_kind",
            "origin",
            F.col("destination").alias("dead_letter_queue"),
            cause.alias("cause"),
        )
        .agg(
            F.count("*").alias("messages"),
            F.max("redeliveries").alias("redeliveries"),
            F.min("happened_at").alias("first_at"),
            F.max("happened_at").alias("last_at"),
            F.min_by("shown_id", "position").alias("example"),
        )
        .orderBy(F.desc("messages"), "directory", "origin", "cause")
    )


REPORT = Report(
    name="dead_letters",
    title="Dead letters",
    question="Which messages died, where were they meant for, and why?",
    frame=dead_letters,
    columns=(
        Column("origin", "Meant for", Unit.DESTINATION),
        Column("cause", "Cause", Unit.CAUSE),
        Column("messages", "Messages", Unit.COUNT, Tone.BAD),
        Column("dead_letter_queue", "Now in"),
        Column("redeliveries", "Redeliveries", Unit.COUNT),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
        Column("example", "Example", Unit.CODE),
    ),
    plot=None,
    nothing="No dead letters.",
)
