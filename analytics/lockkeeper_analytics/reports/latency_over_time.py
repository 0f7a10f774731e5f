"""When was it late? The time to acknowledgement in each cell of time."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import bucket_percentiles, percentile
from lockkeeper_analytics.facts.grouping import DESTINATION, cell_of
from lockkeeper_analytics.facts.journal import Journal, span_seconds

_COLUMNS = (*DESTINATION, "time", "seconds", "source", "acknowledged", "p50_ms", "p99_ms")


def latency_over_time(journal: Journal) -> DataFrame:
    """Return p50 and p99 in ms for each destination, source and cell of `seconds` seconds.

    A message counts in the cell of its acknowledgement, a statistics line in that of its time.
    """
    seconds = span_seconds(journal)
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
