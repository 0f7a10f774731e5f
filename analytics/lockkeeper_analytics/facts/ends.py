"""The end of each journal: the last time that it tells of, from which ages are counted."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.journal import Journal


def ends_of(journal: Journal) -> DataFrame:
    """Return one row for each directory: `end_at`, by its records and the recorder's lines."""
    records = journal.records.select("directory", F.col("written_after").alias("at"))
    lines = journal.statistics.select("directory", "at").unionByName(
        journal.events.select("directory", "at")
    )
    return records.unionByName(lines).groupBy("directory").agg(F.max("at").alias("end_at"))
