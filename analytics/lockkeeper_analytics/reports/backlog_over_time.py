"""Backlog over time: the messages that waited at the end of each cell."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.grouping import DESTINATION, SUBSCRIPTION, cell_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Lines, Report, Series, Tone, Unit


def backlog_over_time(journal: Journal) -> DataFrame:
    """Return what waited at the end of each cell of `seconds`, from the first message on.

    `waiting` counts messages in the journal, for a topic those of each durable subscription,
    `oldest_ms` is how long the first of them had been there. `depth` is what the last line of
    statistics in the cell says of a queue: it counts what is never written, too.
    """
    seconds = journal.cell_seconds
    last = journal.effects.agg(cell_of(F.max("happened_at"), seconds).alias("last"))
    step = F.expr(f"INTERVAL {seconds} SECONDS")
    begun = cell_of(F.coalesce("added_at", "stored_at"), seconds)
    gone = F.when(F.col("ended").isNotNull(), F.coalesce("ended_at", "added_at"))
    stays = (
        journal.lives.crossJoin(F.broadcast(last))
        .withColumn("begun", begun)
        .withColumn("gone", F.coalesce(cell_of(gone, seconds), F.col("last") + step))
        .where("begun IS NOT NULL")
    )
    waited = (
        stays.where("begun < gone")
        .groupBy(*SUBSCRIPTION, "begun", "gone")
        .agg(F.count("*").alias("messages"), F.min("stored_at").alias("oldest"))
        .withColumn("time", F.explode(F.sequence("begun", F.col("gone") - step, step)))
        .select(*SUBSCRIPTION, "time", "messages", "oldest")
    )
    cells = (
        stays.groupBy(*SUBSCRIPTION, "last")
        .agg(F.min("begun").alias("first"))
        .where("first <= last")
        .withColumn("time", F.explode(F.sequence("first", "last", step)))
        .select(*SUBSCRIPTION, "time", F.lit(0).cast("bigint").alias("messages"))
    )
    told = _depths(journal, seconds)
    ends = F.unix_millis("time") + seconds * 1000
    return (
        waited.unionByName(cells, allowMissingColumns=True)
        .unionByName(told, allowMissingColumns=True)
        .groupBy(*SUBSCRIPTION, "time")
        .agg(
            F.coalesce(F.sum("messages"), F.lit(0)).alias("waiting"),
            (F.max(ends) - F.unix_millis(F.min("oldest"))).alias("oldest_ms"),
            F.max("depth").alias("depth"),
        )
        .select(
            *SUBSCRIPTION, "time", F.lit(seconds).alias("seconds"), "waiting", "oldest_ms", "depth"
        )
        .orderBy(*SUBSCRIPTION, "time")
    )


def _depths(journal: Journal, seconds: int) -> DataFrame:
    queues = journal.statistics.where(F.col("destination_kind").endswith("queue"))
    return (
        queues.groupBy(*DESTINATION, cell_of(F.col("at"), seconds).alias("time"))
        .agg(F.max_by("figures.depth", "position").alias("depth"))
        .withColumn("subscription", F.lit(None).cast("string"))
    )


REPORT = Report(
    name="backlog_over_time",
    title="Backlog over time",
    question="How many messages waited, when, and how long had the oldest been there?",
    frame=backlog_over_time,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("time", "From", Unit.TIME),
        Column("waiting", "Waiting at its end", Unit.COUNT, Tone.CAME),
        Column("oldest_ms", "Oldest", Unit.MILLISECONDS),
        Column("depth", "By statistics", Unit.COUNT),
    ),
    plot=Lines(
        (Series("waiting", "waiting", Tone.CAME, floor=""),), each=SUBSCRIPTION, together="sum"
    ),
    nothing="Nothing ever waited.",
)
