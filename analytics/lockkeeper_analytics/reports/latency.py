"""Latency: time from a message's arrival at the broker to its acknowledgement."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import (
    PERCENTILES,
    bucket_percentiles,
    percentile,
)
from lockkeeper_analytics.facts.grouping import DESTINATION
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Report, Unit
from lockkeeper_analytics.reports.sources import trusted


def latency(journal: Journal) -> DataFrame:
    """Return percentiles in ms for each destination, one row from each `source`.

    `records` are the removes in the journal, with the bounds of p50 and p99 between which the
    journal leaves them; `statistics` are the histograms of the flight recorder, which also know
    messages that were never written. The slowest come first;
    `acknowledged` says how many each row stands for.
    """
    of_records = journal.acknowledged.where("latency_ms IS NOT NULL").groupBy(*DESTINATION)
    from_records = of_records.agg(
        F.lit("records").alias("source"),
        F.count("*").alias("acknowledged"),
        *(percentile("latency_ms", share).alias(f"{at}_ms") for at, share in PERCENTILES.items()),
        F.max("latency_ms").cast("double").alias("max_ms"),
        percentile("earliest_ms", 0.5).alias("p50_at_least_ms"),
        percentile("latest_ms", 0.5).alias("p50_at_most_ms"),
        percentile("earliest_ms", 0.99).alias("p99_at_least_ms"),
        percentile("latest_ms", 0.99).alias("p99_at_most_ms"),
    )
    from_statistics = bucket_percentiles(journal.statistics, list(DESTINATION)).withColumn(
        "source", F.lit("statistics")
    )
    both = from_records.unionByName(from_statistics, allowMissingColumns=True)
    return both.orderBy(F.desc("p99_ms"), *DESTINATION, "source")


def _bounded(at: str, heading: str) -> Column:
    bounds = (f"{at}_at_least_ms", f"{at}_at_most_ms")
    return Column(f"{at}_ms", heading, Unit.MILLISECONDS, bounds=bounds)


REPORT = Report(
    name="latency",
    title="Latency",
    question="How long was it from a message's arrival to its acknowledgement?",
    frame=latency,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("acknowledged", "Messages", Unit.COUNT),
        _bounded("p50", "Half within"),
        Column("p90_ms", "90 %", Unit.MILLISECONDS),
        _bounded("p99", "99 %"),
        Column("max_ms", "Longest", Unit.MILLISECONDS),
        Column("p50_ms", "50 % to 99 % to longest", Unit.RANGE, ends=("p99_ms", "max_ms")),
        Column("source", "From"),
    ),
    plot=None,
    nothing="Nothing was acknowledged.",
    shown=trusted,
    note="The scale is logarithmic; point at a figure to see its bounds.",
)
