"""The flight recorder's lines as data frames: events, and what each statistics line adds.

Counters run from a broker's start. Lines between two starting events belong to one run; what a
line adds is its difference to the line before it, or to nothing behind a starting event.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper.journal.counters import COUNTERS
from lockkeeper_analytics.facts.effects import with_position
from lockkeeper_analytics.reading.recorder import (
    EVENT,
    LIFE_EVENTS,
    LINE_DDL,
    STARTING_EVENTS,
    STATISTICS,
)

GROWING = tuple(counter.json_name for counter in COUNTERS)
"""The counters that only grow during a run."""


def lines_of(records: DataFrame) -> DataFrame:
    """Return every statistics line and event of a broker's life in its place, with its run.

    `run` counts the starting events of the directory up to the line; run 0 is what is left of
    one whose beginning is gone.
    """
    lines = (
        with_position(records.where(F.col("recorder").isNotNull()))
        .select("directory", "position", "written_after", "recorder")
        .withColumn("line", F.from_json("recorder", LINE_DDL))
        .where((F.col("line.t") == STATISTICS) | F.col("line.event").isin(*LIFE_EVENTS))
    )
    so_far = (
        Window.partitionBy("directory")
        .orderBy("position")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    starts = F.coalesce(F.col("line.event").isin(*STARTING_EVENTS), F.lit(False))
    before = Window.partitionBy("directory").orderBy("position")
    return (
        lines.withColumn("run", F.sum(starts.cast("int")).over(so_far))
        .withColumn("at", F.timestamp_millis("line.at"))
        .withColumn("previous_at", F.lag("at").over(before))
    )


def events_of(lines: DataFrame) -> DataFrame:
    """Return the events: what happened to brokers, when, and why."""
    return lines.where(F.col("line.t") == EVENT).select(
        "directory",
        "position",
        "run",
        "at",
        F.col("line.event").alias("event"),
        F.col("line.broker").alias("broker"),
        F.coalesce(F.col("line.replica"), F.col("line.broker")).alias("replica"),
        F.col("line.epoch").alias("epoch"),
        F.col("line.cause").alias("cause"),
    )


def statistics_of(lines: DataFrame) -> DataFrame:
    """Return one row for each destination of each statistics line.

    The growing counters come twice: as they stand, and as `new_…`, what the line adds; null
    where that cannot be known, because the run's beginning is gone.
    """
    rows = (
        lines.where(F.col("line.t") == STATISTICS)
        .select(
            "directory",
            "position",
            "run",
            "at",
            "previous_at",
            F.col("line.broker").alias("broker"),
            F.explode("line.destinations").alias("url", "figures"),
        )
        .withColumn("destination_kind", F.substring_index("url", "://", 1))
        .withColumn("destination", F.expr("substring(url, instr(url, '://') + 3)"))
    )
    earlier = Window.partitionBy("directory", "run", "url").orderBy("position")
    known = F.when(F.col("run") > 0, F.lit(0))
    for name in GROWING:
        value = F.col(f"figures.{name}")
        rows = rows.withColumn(f"new_{name}", value - F.coalesce(F.lag(value).over(earlier), known))
    counts = F.col("figures.latency.n")
    nothing = F.when(F.col("run") > 0, F.array().cast("array<bigint>"))
    rows = rows.withColumn("counts", F.coalesce(F.lag(counts).over(earlier), nothing))
    return rows.withColumn("new_latency", _added(F.col("counts"))).drop("counts", "url")


def _added(earlier: F.Column) -> F.Column:
    """Return the latency buckets with what was added to *earlier* counts, empty ones left out.

    Each has its bounds in ms: more than `above`, up to `le`; the last one also counts more.
    """
    bounds, counts = F.col("figures.latency.le"), F.col("figures.latency.n")

    def bucket(bound: F.Column, index: F.Column) -> F.Column:
        added = F.get(counts, index) - F.coalesce(F.get(earlier, index), F.lit(0))
        above = F.coalesce(F.get(bounds, index - 1), F.lit(0))
        return F.struct(above.alias("above"), bound.alias("le"), added.alias("n"))

    buckets = F.filter(F.transform(bounds, bucket), lambda each: each.n > 0)
    return F.when(earlier.isNotNull(), buckets)
