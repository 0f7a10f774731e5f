"""Acknowledged messages and how long they took, one by one from records, or in buckets."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.grouping import DESTINATION, MESSAGE, dead_letters_of

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_ACCURACY = 1000


def acknowledged_of(effects: DataFrame) -> DataFrame:
    """Return every remove that acknowledges, with the ms since its message arrived.

    `arrived_at` is null when the file that held the message is gone, and so are its times.
    `earliest_ms` and `latest_ms` (null: not known) come from what the journal tells of the
    remove's time, `latency_ms` from the likeliest time between. Dead letters' removes are none.
    """
    stored = effects.where(F.col("kind") == "add").groupBy(*MESSAGE)
    arrivals = stored.agg(
        F.min("stored_at").alias("arrived_at"), F.min("shown_id").alias("stored_as")
    )
    shown = [*DESTINATION, "shown_id"]
    dead = dead_letters_of(effects).select("directory", "origin_kind", "origin", "shown_id")
    removes = effects.where(F.col("kind") == "remove").drop("stored_at")
    removes = removes.join(arrivals, list(MESSAGE), "left")
    removes = removes.withColumn("shown_id", F.coalesce("stored_as", "message_id"))
    taken = removes.join(dead.toDF(*shown), shown, "left_anti")
    arrived = F.unix_millis("arrived_at")

    def since_arrival(moment: str) -> Column:
        elapsed = F.unix_millis(moment) - arrived
        return F.when(elapsed.isNotNull(), F.greatest(elapsed, F.lit(0)))

    return taken.select(
        *MESSAGE,
        "subscription",
        "consumer_id",
        "ack_type",
        "arrived_at",
        "happened_at",
        "happened_before",
        since_arrival("happened_after").alias("earliest_ms"),
        since_arrival("happened_at").alias("latency_ms"),
        since_arrival("happened_before").alias("latest_ms"),
    )


def percentile(column: str, share: float) -> Column:
    """Return the aggregate of the value that *share* of *column* does not exceed."""
    return F.percentile_approx(column, share, _ACCURACY).cast("double")


def bucket_percentiles(buckets: DataFrame, keys: list[str]) -> DataFrame:
    """Return percentiles for each of *keys* from rows of `new_latency` buckets.

    Within a bucket the values are taken as spread evenly; `max_ms` is the last one's bound.
    """
    exploded = buckets.select(*keys, F.inline("new_latency"))
    counts = exploded.groupBy(*keys, "above", "le").agg(F.sum("n").alias("n"))
    each = Window.partitionBy(*keys)
    so_far = each.orderBy("le").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = counts.withColumn("upto", F.sum("n").over(so_far)).withColumn(
        "all", F.sum("n").over(each)
    )

    def value(share: float) -> Column:
        wanted = F.col("all") * share
        inside = F.greatest((wanted - (F.col("upto") - F.col("n"))) / F.col("n"), F.lit(0.0))
        within = F.col("above") + (F.col("le") - F.col("above")) * inside
        return F.min(F.when(F.col("upto") >= wanted, within))

    return ranked.groupBy(*keys).agg(
        F.sum("n").alias("acknowledged"),
        *(value(share).alias(f"{name}_ms") for name, share in PERCENTILES.items()),
        F.max("le").cast("double").alias("max_ms"),
    )
