"""Latency over time: the time to acknowledgement in each cell."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import bucket_percentiles, percentile
from lockkeeper_analytics.facts.grouping import DESTINATION, cell_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Lines, Report, Series, Tone, Unit
from lockkeeper_analytics.reports.sources import trusted

_COLUMNS = (*DESTINATION, "time", "seconds", "source", "acknowledged", "p50_ms", "p99_ms")


def latency_over_time(journal: Journal) -> DataFrame:
    """Return p50 and p99 in ms for each destination, source and cell of `seconds` seconds.

    A message counts in the cell of its acknowledgement, a statistics line in that of its time.
    """
    seconds = journal.cell_seconds
    of_records = journal.acknowledged.where("latency_ms IS NOT NULL").groupBy(
        *DESTINATION, cell_of(F.col("happened_at"), seconds).alias("time")
    )
    from_records = of_records.agg(
        F.count("*").alias("acknowledged"),
        percentile("latency_ms", 0.5).alias("p50_ms"),
        percentile("latency_ms", 0.99).alias("p99_ms"),
    ).withColumn("source", F.lit("records"))
    cells = journal.statistics.withColumn("time", cell_of(F.col("at"), seconds))
    from_statistics = bucket_percentiles(cells, [*DESTINATION, "time"]).withColumn(
        "source", F.lit("statistics")
    )
    both = from_records.unionByName(from_statistics, allowMissingColumns=True)
    return both.withColumn("seconds", F.lit(seconds)).select(*_COLUMNS).orderBy(*_COLUMNS[:6])


REPORT = Report(
    name="latency_over_time",
    title="Latency over time",
    question="When did acknowledgements take long?",
    frame=latency_over_time,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("time", "From", Unit.TIME),
        Column("seconds", "Seconds", Unit.COUNT),
        Column("source", "Source"),
        Column("acknowledged", "Messages", Unit.COUNT),
        Column("p50_ms", "Half within", Unit.MILLISECONDS),
        Column("p99_ms", "99 %", Unit.MILLISECONDS, Tone.HIGH),
    ),
    plot=Lines(
        (
            Series("p99_ms", "99 % within", Tone.HIGH, floor="p50_ms"),
            Series("p50_ms", "half within", Tone.MIDDLE),
        ),
        unit=Unit.MILLISECONDS,
        together="max",
        logarithmic=True,
    ),
    nothing="Nothing was acknowledged.",
    shown=trusted,
    note="Half and 99 % of the messages acknowledged then took no longer.",
)
