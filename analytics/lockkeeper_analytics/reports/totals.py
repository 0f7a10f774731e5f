"""Totals of each destination over all that the journal tells of."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from lockkeeper_analytics.facts.grouping import DESTINATION, dead_letters_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.uncounted import uncounted_of
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

COUNTERS = ("enqueued", "dequeued", "deadLettered", "expired", "redelivered", "neverWritten")
SUMS = (
    "enqueued",
    "acknowledged",
    "dead_lettered",
    "expired",
    "redelivered",
    "never_written",
)


def totals(journal: Journal) -> DataFrame:
    """Return one row for each destination, with its sums in messages, the busiest first.

    `enqueued` counts what came in, dead letters moved here too; `acknowledged` what consumers
    took, for a topic once for each subscription; `dead_lettered` what left for a dead letter
    queue. Statistics lines count where there are any, and records where there are none; what
    only statistics can tell is null without them. Where nothing but records counts, a message
    came in, too, when only its acknowledgement is left.
    """
    counted = _from_statistics(journal.statistics)
    rest = _from_records(uncounted_of(journal))
    both = counted.unionByName(rest, allowMissingColumns=True).unionByName(
        _from_lost_files(journal), allowMissingColumns=True
    )
    return (
        both.groupBy(*DESTINATION)
        .agg(*(F.sum(name).alias(name) for name in SUMS))
        .orderBy(F.desc("enqueued"), *DESTINATION)
    )


def _from_statistics(statistics: DataFrame) -> DataFrame:
    """Sum up each run of a destination: its last line, without what was counted before its first.

    Counters run from a broker's start, and the lines that are here may begin later.
    """
    each = Window.partitionBy(*DESTINATION, "run")
    first = each.orderBy("position")
    figures = {name: _counted(name, first) for name in COUNTERS}
    taken = _sum_of("figures.latency.n")
    counted_before = F.first(taken - _sum_of("new_latency.n")).over(first)
    rank = F.row_number().over(each.orderBy(F.desc("position")))
    last = statistics.select(
        *DESTINATION,
        *(figure.alias(name) for name, figure in figures.items()),
        (taken - F.coalesce(counted_before, F.lit(0))).alias("taken"),
        rank.alias("rank"),
    ).where("rank = 1")
    lost = F.greatest(*(F.coalesce(name, F.lit(0)) for name in ("deadLettered", "expired")))
    left = F.col("dequeued") - lost
    of_queue = F.col("destination_kind").endswith("queue")
    return last.select(
        *DESTINATION,
        "enqueued",
        F.when(of_queue, F.coalesce("taken", left)).otherwise(left).alias("acknowledged"),
        F.col("deadLettered").alias("dead_lettered"),
        "expired",
        "redelivered",
        F.col("neverWritten").alias("never_written"),
    )


def _counted(name: str, first: WindowSpec) -> F.Column:
    """Return what a line says of *name*, without what was there in front of the *first* one."""
    value = F.col(f"figures.{name}")
    before = F.first(value - F.col(f"new_{name}")).over(first)
    return value - F.coalesce(before, F.lit(0))


def _sum_of(numbers: str) -> F.Column:
    return F.aggregate(numbers, F.lit(0).cast("bigint"), lambda sum_, n: sum_ + n)


def _from_records(effects: DataFrame) -> DataFrame:
    """Count adds and removes; a remove of what became a dead letter acknowledges nothing."""
    dead = (
        dead_letters_of(effects)
        .groupBy("directory", F.col("origin_kind"), F.col("origin"))
        .agg(F.count("*").alias("dead_lettered"))
        .toDF(*DESTINATION, "dead_lettered")
    )
    sums = effects.groupBy(*DESTINATION).agg(
        _count_of("add").alias("enqueued"), _count_of("remove").alias("removed")
    )
    lost = F.coalesce("dead_lettered", F.lit(0))
    return sums.join(dead, list(DESTINATION), "full").select(
        *DESTINATION,
        F.coalesce("enqueued", F.lit(0)).alias("enqueued"),
        F.greatest(F.coalesce("removed", F.lit(0)) - lost, F.lit(0)).alias("acknowledged"),
        lost.alias("dead_lettered"),
    )


def _from_lost_files(journal: Journal) -> DataFrame:
    """Count the messages whose acknowledgement is there, but not the file that held them."""
    lost = journal.acknowledged.where("arrived_at IS NULL")
    counted = journal.all_statistics.select("directory").distinct()
    return (
        lost.join(F.broadcast(counted), "directory", "left_anti")
        .groupBy(*DESTINATION)
        .agg(F.countDistinct("message_id").alias("enqueued"))
    )


def _count_of(kind: str) -> F.Column:
    return F.sum((F.col("kind") == kind).cast("bigint"))


REPORT = Report(
    name="totals",
    title="Destinations",
    question="How many messages came to each destination, and what became of them?",
    frame=totals,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("enqueued", "Came in", Unit.COUNT, Tone.CAME),
        Column("acknowledged", "Acknowledged", Unit.COUNT),
        Column("dead_lettered", "Dead letters", Unit.COUNT),
        Column("expired", "Expired", Unit.COUNT),
        Column("redelivered", "Redelivered", Unit.COUNT),
        Column("never_written", "Never written", Unit.COUNT),
    ),
    plot=None,
    nothing="The journal names no destination.",
)
