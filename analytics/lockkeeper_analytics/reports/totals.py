"""How much of what? The sums of each destination over all that the journal tells of."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.grouping import DESTINATION, dead_letters_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.uncounted import uncounted_of
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

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
    """Sum up the last line that each run has for a destination: counters run from its start."""
    latest = Window.partitionBy(*DESTINATION, "run").orderBy(F.desc("position"))
    last = statistics.withColumn("rank", F.row_number().over(latest)).where("rank = 1")
    figures = {name: F.col(f"figures.{name}") for name in ("dequeued", "deadLettered", "expired")}
    lost = F.greatest(
        *(F.coalesce(figures[name], F.lit(0)) for name in ("deadLettered", "expired"))
    )
    left = figures["dequeued"] - lost
    taken = F.aggregate("figures.latency.n", F.lit(0).cast("bigint"), lambda sum_, n: sum_ + n)
    of_queue = F.col("destination_kind").endswith("queue")
    return last.select(
        *DESTINATION,
        F.col("figures.enqueued").alias("enqueued"),
        F.when(of_queue, F.coalesce(taken, left)).otherwise(left).alias("acknowledged"),
        figures["deadLettered"].alias("dead_lettered"),
        figures["expired"].alias("expired"),
        F.col("figures.redelivered").alias("redelivered"),
        F.col("figures.neverWritten").alias("never_written"),
    )


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
    counted = journal.statistics.select("directory").distinct()
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
