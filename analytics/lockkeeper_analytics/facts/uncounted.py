"""Effects that no line of the flight recorder's statistics counts, and what came in which cell."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.grouping import DESTINATION, cell_of, dead_letters_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reading.recorder import STARTING_EVENTS

COUNTS = ("enqueued", "dequeued", "dead_lettered")


def uncounted_of(journal: Journal) -> DataFrame:
    """Return the effects behind the last statistics line of each run.

    All effects of a broker without the flight recorder are among them.
    """
    ends = journal.all_statistics.groupBy("directory", "run").agg(F.max("position").alias("end"))
    starts = journal.events.where(F.col("event").isin(*STARTING_EVENTS)).select(
        "directory", "run", F.col("position").alias("start")
    )
    ranges = ends.join(starts, ["directory", "run"], "left").drop("run")
    is_counted = (journal.effects["directory"] == ranges["directory"]) & F.col("position").between(
        F.coalesce("start", F.lit(0)), F.col("end")
    )
    return journal.effects.join(F.broadcast(ranges), is_counted, "left_anti")


def counts_of(journal: Journal, seconds: int) -> DataFrame:
    """Return what came, left and died at each destination in each cell of `seconds` seconds.

    Lines of statistics count at their time, what they do not count when it happened.
    """
    told = journal.statistics.select(
        *DESTINATION,
        cell_of(F.col("at"), seconds).alias("time"),
        F.col("new_enqueued").alias("enqueued"),
        F.col("new_dequeued").alias("dequeued"),
        F.col("new_deadLettered").alias("dead_lettered"),
    )
    rest = uncounted_of(journal).withColumn("time", cell_of(F.col("happened_at"), seconds))
    kind = F.col("kind")
    moved = rest.where(kind.isin("add", "remove")).select(
        *DESTINATION,
        "time",
        (kind == "add").cast("bigint").alias("enqueued"),
        (kind == "remove").cast("bigint").alias("dequeued"),
    )
    dead = dead_letters_of(rest).select(
        "directory", "origin_kind", "origin", "time", F.lit(1).cast("bigint")
    )
    every = told.unionByName(moved, allowMissingColumns=True).unionByName(
        dead.toDF(*DESTINATION, "time", "dead_lettered"), allowMissingColumns=True
    )
    sums = (F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in COUNTS)
    return every.where("time IS NOT NULL").groupBy(*DESTINATION, "time").agg(*sums)
