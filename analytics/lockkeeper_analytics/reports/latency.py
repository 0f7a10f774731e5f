"""How late? Time from a message's arrival at the broker to its acknowledgement."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import (
    PERCENTILES,
    bucket_percentiles,
    percentile,
)
from lockkeeper_analytics.facts.grouping import DESTINATION
from lockkeeper_analytics.facts.journal import Journal


def latency(journal: Journal) -> DataFrame:
    """Return percentiles in ms for each destination, one row from each `source`.

    `records` are the removes in the journal, with the bounds of p50 and p99 between which the
    journal leaves them; `statistics` are the histograms of the flight recorder, which also know
    messages that were never written. `acknowledged` says how many each row stands for.
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
    return both.orderBy(*DESTINATION, "source")
