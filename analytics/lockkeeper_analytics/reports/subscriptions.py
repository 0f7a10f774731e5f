"""Durable subscriptions: what waits for each, and what that keeps on disk."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.ends import ends_of
from lockkeeper_analytics.facts.grouping import SUBSCRIPTION
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.lives import live_subscriptions_of, waiting_in
from lockkeeper_analytics.reading.recorder import STARTING_EVENTS
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

LATE_MS, GONE_MS = 3_600_000, 86_400_000
"""Restarts and deployments take minutes: an hour is late. Who has not been there for a day, with
messages waiting, has most likely been given up by everybody but the broker."""


def subscriptions(journal: Journal) -> DataFrame:
    """Return one row for each live durable subscription, what waits for it most first.

    `seen_at` is its last sign of life: made, acknowledged, or by the flight recorder connected
    or gone; `connected` is null where no recorder tells. `absent_ms` runs from there to the end
    of the journal, 0 while connected. `files` counts data files that hold what waits for it.
    """
    live = live_subscriptions_of(journal.effects)
    waiting = _waiting(journal)
    acks = _last_acks(journal, live)
    seen = F.greatest("created_at", "last_ack_at", "event_at")
    absent = F.unix_millis("end_at") - F.unix_millis("seen_at")
    joined = (
        live.join(waiting, list(SUBSCRIPTION), "left")
        .join(acks, list(SUBSCRIPTION), "left")
        .join(_presence(journal), ["directory", "subscription"], "left")
        .join(F.broadcast(ends_of(journal)), "directory", "left")
        .withColumn("pending", F.coalesce("pending", F.lit(0)))
        .withColumn("seen_at", seen)
        .withColumn("absent_ms", F.when(F.col("connected"), 0).otherwise(absent))
    )
    is_waited_for = F.col("pending") > 0
    verdict = (
        F.when(is_waited_for & (F.col("absent_ms") >= GONE_MS), "stuck")
        .when(is_waited_for & (F.col("absent_ms") >= LATE_MS), "slow")
        .otherwise("ok")
    )
    return joined.select(
        *SUBSCRIPTION,
        verdict.alias("verdict"),
        "pending",
        F.coalesce("bytes", F.lit(0)).alias("bytes"),
        "oldest_pending_at",
        "last_ack_at",
        "seen_at",
        "connected",
        "absent_ms",
        F.coalesce("files", F.lit(0)).alias("files"),
    ).orderBy(F.desc("pending"), *SUBSCRIPTION)


def _waiting(journal: Journal) -> DataFrame:
    held = waiting_in(journal.lives).where("subscription IS NOT NULL AND NOT hidden")
    return held.groupBy(*SUBSCRIPTION).agg(
        F.count("*").alias("pending"),
        F.sum("message_bytes").alias("bytes"),
        F.min("stored_at").alias("oldest_pending_at"),
        F.count_distinct(F.shiftright("located", 32)).alias("files"),
    )


def _last_acks(journal: Journal, live: DataFrame) -> DataFrame:
    removes = journal.effects.where("kind = 'remove' AND subscription IS NOT NULL")
    since = F.broadcast(live.select(*SUBSCRIPTION, "since"))
    return (
        removes.join(since, list(SUBSCRIPTION))
        .where("position > since")
        .groupBy(*SUBSCRIPTION)
        .agg(F.max_by("happened_after", "position").alias("last_ack_at"))
    )


def _presence(journal: Journal) -> DataFrame:
    """Return whether the last event of a subscription's consumer left it connected.

    A broker that starts has no connection left of the one before.
    """
    starts = journal.events.where(F.col("event").isin(*STARTING_EVENTS))
    started = starts.groupBy("directory").agg(F.max("position").alias("started"))
    told = journal.clients.where("subscription IS NOT NULL AND event LIKE 'consumer%'")
    name = F.concat_ws(":", "client_id", "subscription")
    last = told.groupBy("directory", name.alias("subscription")).agg(
        F.max("at").alias("event_at"),
        F.max_by("event", "position").alias("event"),
        F.max("position").alias("position"),
    )
    is_open = (F.col("event") == "consumerOpened") & (
        F.col("position") > F.coalesce("started", F.lit(-1))
    )
    return last.join(F.broadcast(started), "directory", "left").select(
        "directory", "subscription", "event_at", is_open.alias("connected")
    )


REPORT = Report(
    name="subscriptions",
    title="Durable subscriptions",
    question="Which durable subscribers do not come back, and what do they keep on disk?",
    frame=subscriptions,
    columns=(
        Column("destination", "Topic", Unit.DESTINATION),
        Column("verdict", "Verdict", Unit.BADGE),
        Column("pending", "Waiting", Unit.COUNT, Tone.CAME),
        Column("bytes", "Size", Unit.BYTES),
        Column("files", "Files", Unit.COUNT),
        Column("oldest_pending_at", "Oldest", Unit.TIME),
        Column("last_ack_at", "Last acknowledgement", Unit.TIME),
        Column("seen_at", "Last seen", Unit.TIME),
        Column("absent_ms", "Away for", Unit.MILLISECONDS, Tone.WARM),
        Column("connected", "Connected", Unit.FLAG),
    ),
    plot=Bars(("destination", "subscription"), (Series("pending", "waiting", Tone.CAME),)),
    nothing="There are no durable subscriptions.",
)
