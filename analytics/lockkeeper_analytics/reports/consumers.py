"""Consumers: what each took and how late, and those that are slow or went silent."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import percentile
from lockkeeper_analytics.facts.clients import connection_of, connections_of
from lockkeeper_analytics.facts.ends import ends_of
from lockkeeper_analytics.facts.grouping import DESTINATION
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.lives import waiting_in
from lockkeeper_analytics.reading.recorder import STARTING_EVENTS
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

CONSUMERS_MAX = 1000
"""Clients that connect for each message make as many consumers as messages: the worst are told."""

STUCK_MS = 60_000
"""Longer than pauses of a garbage collector, redelivery delays and the two statistics intervals
of a slow consumer's event take by default: who is silent for a minute before waiting messages
will hardly come round by itself."""

SLOW_FACTOR, SLOW_MS, SLOW_ACKNOWLEDGED = 4, 1000, 20
"""All consumers of a queue see the same backlog. One whose median is so many times that of the
middle consumer, and seconds rather than milliseconds, holds messages longer; below so many
acknowledgements a median says little."""

_SEVERITY = "CASE verdict WHEN 'stuck' THEN 0 WHEN 'slow' THEN 1 WHEN 'ok' THEN 2 ELSE 3 END"


def consumers(journal: Journal) -> DataFrame:
    """Return one row for each consumer of a destination, the worst first.

    ActiveMQ's acknowledgements name their consumers: `acknowledged` and the percentiles, in ms
    from arrival to acknowledgement, come from there. The flight recorder's events tell when one
    was opened and closed, how many messages were `delivered` to it (at its close) and how often
    it was found slow, `held` messages in its window. `silent_ms` is how long before the journal's
    end it had last acknowledged (where that is not said: anybody there), while messages waited;
    0 without any. `verdict` is `stuck`, `slow`, `ok` or `gone`; where no event tells that one is
    gone, `stuck` may also be that.
    """
    known = _by_acknowledgements(journal).join(
        _by_events(journal), [*DESTINATION, "consumer"], "full"
    )
    placed = known.join(_waiting(journal), list(DESTINATION), "left").join(
        F.broadcast(ends_of(journal)), "directory", "left"
    )
    everybody = Window.partitionBy(*DESTINATION)
    last = F.coalesce("last_ack_at", "anybody_at")
    since = F.greatest(last, "oldest_at", "opened_at")
    silent = F.unix_millis("end_at") - F.unix_millis(since)
    told = (
        placed.withColumn("connection", connection_of(F.col("consumer")))
        .join(connections_of(journal.clients), ["directory", "connection"], "left")
        .withColumn("waiting", F.coalesce("waiting", F.lit(0)))
        .withColumn("silent_ms", F.when(F.col("waiting") > 0, silent).otherwise(0))
        .withColumn("slow_events", F.coalesce("slow_events", F.lit(0)))
        .withColumn("middle", F.percentile_approx("p50_ms", 0.5).over(everybody))
        .withColumn("verdict", _verdict())
    )
    return (
        told.orderBy(F.expr(_SEVERITY), F.desc("silent_ms"), *DESTINATION, "consumer")
        .limit(CONSUMERS_MAX)
        .select(
            *DESTINATION,
            "consumer",
            "client_id",
            "address",
            "verdict",
            "acknowledged",
            "delivered",
            "p50_ms",
            "p99_ms",
            "max_ms",
            "opened_at",
            "closed_at",
            "last_ack_at",
            "waiting",
            "silent_ms",
            "slow_events",
            "held",
        )
        .orderBy(F.expr(_SEVERITY), F.desc("silent_ms"), *DESTINATION, "consumer")
    )


def _verdict() -> F.Column:
    late = (F.col("p50_ms") >= SLOW_MS) & (F.col("p50_ms") >= SLOW_FACTOR * F.col("middle"))
    return (
        F.when(~F.coalesce("is_open", F.lit(True)), "gone")
        .when(F.col("silent_ms") >= STUCK_MS, "stuck")
        .when(F.col("slow_events") > 0, "slow")
        .when(late & (F.col("acknowledged") >= SLOW_ACKNOWLEDGED), "slow")
        .otherwise("ok")
    )


def _by_acknowledgements(journal: Journal) -> DataFrame:
    told = journal.acknowledged.where("consumer_id IS NOT NULL")
    return told.groupBy(*DESTINATION, F.col("consumer_id").alias("consumer")).agg(
        F.count("*").alias("acknowledged"),
        percentile("latency_ms", 0.5).alias("p50_ms"),
        percentile("latency_ms", 0.99).alias("p99_ms"),
        F.max("latency_ms").cast("double").alias("max_ms"),
        F.max("happened_at").alias("last_ack_at"),
    )


def _by_events(journal: Journal) -> DataFrame:
    """Return what events tell of each consumer. A broker that starts has none of those before."""
    starts = journal.events.where(F.col("event").isin(*STARTING_EVENTS))
    started = starts.groupBy("directory").agg(F.max("position").alias("started"))
    told = journal.clients.where("consumer IS NOT NULL AND destination IS NOT NULL")
    event = F.col("event")
    last = told.groupBy(*DESTINATION, "consumer").agg(
        F.max(F.when(event == "consumerOpened", F.col("at"))).alias("opened_at"),
        F.max(F.when(event == "consumerClosed", F.col("at"))).alias("closed_at"),
        F.sum((event == "slowConsumer").cast("bigint")).alias("slow_events"),
        F.max("held").alias("held"),
        F.max("delivered").alias("delivered"),
        F.max_by("event", "position").alias("event"),
        F.max("position").alias("position"),
    )
    is_open = (event != "consumerClosed") & (F.col("position") > F.coalesce("started", F.lit(-1)))
    with_starts = last.join(F.broadcast(started), "directory", "left")
    return with_starts.withColumn("is_open", is_open).drop("event", "position", "started")


def _waiting(journal: Journal) -> DataFrame:
    """Return what waits at each destination, and when anybody last acknowledged there."""
    held = waiting_in(journal.lives).where("NOT hidden").groupBy(*DESTINATION)
    taken = journal.effects.where("kind = 'remove'").select(*DESTINATION, "happened_at")
    counted = journal.statistics.where("new_dequeued > 0").select(*DESTINATION, "at")
    return held.agg(F.count("*").alias("waiting"), F.min("added_at").alias("oldest_at")).join(
        taken.union(counted).groupBy(*DESTINATION).agg(F.max("happened_at").alias("anybody_at")),
        list(DESTINATION),
        "full",
    )


REPORT = Report(
    name="consumers",
    title="Who consumes",
    question="Which consumers are slow or stuck while messages wait?",
    frame=consumers,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("consumer", "Consumer", Unit.CODE),
        Column("verdict", "Verdict", Unit.BADGE),
        Column("client_id", "Client"),
        Column("address", "Address"),
        Column("waiting", "Waiting there", Unit.COUNT),
        Column("silent_ms", "Silent for", Unit.MILLISECONDS, Tone.WARM),
        Column("acknowledged", "Acknowledged", Unit.COUNT, Tone.LEFT),
        Column("delivered", "Delivered", Unit.COUNT),
        Column("p50_ms", "Half within", Unit.MILLISECONDS),
        Column("p99_ms", "99 %", Unit.MILLISECONDS),
        Column("max_ms", "Longest", Unit.MILLISECONDS),
        Column("slow_events", "Found slow", Unit.COUNT),
        Column("held", "Held", Unit.COUNT),
        Column("last_ack_at", "Last acknowledgement", Unit.TIME),
        Column("opened_at", "Opened", Unit.TIME),
        Column("closed_at", "Closed", Unit.TIME),
    ),
    plot=Bars(
        ("destination", "consumer"), (Series("silent_ms", "silent", Tone.WARM),), Unit.MILLISECONDS
    ),
    nothing="The journal names no consumer.",
)
