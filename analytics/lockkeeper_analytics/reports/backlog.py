"""What is left? Messages that wait, for each destination and durable subscription."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.effects import PREPARED_REMOVE
from lockkeeper_analytics.facts.grouping import DESTINATION, MESSAGE
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

ADDS = ("add", "update")
SUBSCRIPTION = (*DESTINATION, "subscription")


def backlog(journal: Journal) -> DataFrame:
    """Return one row for each destination and subscription that messages wait at.

    `waiting` and `bytes` count those that a consumer would get, `dead_letters` how many of them
    are dead letters, `in_doubt` those that a prepared transaction hides. This is what a broker
    would serve after a replay (kahadb.md section 4).
    """
    effects = journal.effects
    purged = effects.where("kind = 'remove_destination'").groupBy(*DESTINATION)
    cleared = purged.agg(F.max("position").alias("cleared"))
    live = effects.join(F.broadcast(cleared), list(DESTINATION), "left").where(
        F.col("position") > F.coalesce("cleared", F.lit(-1))
    )
    return (
        _in_queues(live)
        .unionByName(_for_subscriptions(live))
        .groupBy(*SUBSCRIPTION)
        .agg(
            F.sum((~F.col("hidden")).cast("bigint")).alias("waiting"),
            F.sum(F.when(~F.col("hidden"), F.col("message_bytes")).otherwise(0)).alias("bytes"),
            F.sum((~F.col("hidden") & F.col("dead")).cast("bigint")).alias("dead_letters"),
            F.sum(F.col("hidden").cast("bigint")).alias("in_doubt"),
            F.min("stored_at").alias("oldest_at"),
            F.max("stored_at").alias("newest_at"),
        )
        .orderBy(F.desc("waiting"), *SUBSCRIPTION)
    )


def _in_queues(live: DataFrame) -> DataFrame:
    kind, position = F.col("kind"), F.col("position")
    messages = live.where(F.col("destination_kind").endswith("queue")).groupBy(*MESSAGE)
    states = messages.agg(
        F.max(F.when(kind.isin(*ADDS), position)).alias("added"),
        F.max(F.when(kind == "remove", position)).alias("removed"),
        F.max((kind == PREPARED_REMOVE).cast("int")).cast("boolean").alias("hidden"),
    )
    waiting = states.where(F.col("added") > F.coalesce("removed", F.lit(-1)))
    return _facts(waiting.withColumn("subscription", F.lit(None).cast("string")), live)


def _for_subscriptions(live: DataFrame) -> DataFrame:
    """Pair each topic's messages with the subscriptions that were there before them."""
    topics = live.where(F.col("destination_kind").endswith("topic"))
    kind = F.col("kind")
    subscriptions = (
        topics.where(kind.isin("subscribe", "unsubscribe"))
        .groupBy(*SUBSCRIPTION)
        .agg(F.max(F.struct("position", "kind")).alias("last"))
        .where("last.kind = 'subscribe'")
        .select(*SUBSCRIPTION, F.col("last.position").alias("since"))
    )
    messages = topics.where(kind.isin(*ADDS)).groupBy(*MESSAGE)
    added = messages.agg(F.max("position").alias("added"))
    pending = added.join(F.broadcast(subscriptions), list(DESTINATION)).where("added > since")
    key = [*MESSAGE, "subscription"]
    done = topics.where(kind == "remove").select(*key)
    hidden = topics.where(kind == PREPARED_REMOVE).select(*key, F.lit(True).alias("hides"))
    left = pending.join(done, key, "left_anti").join(hidden, key, "left")
    return _facts(left.withColumn("hidden", F.coalesce("hides", F.lit(False))), live)


def _facts(messages: DataFrame, live: DataFrame) -> DataFrame:
    """Return *messages*, whose latest add is at `added`, with the facts that are summed up."""
    adds = live.where(F.col("kind").isin(*ADDS)).select(
        *MESSAGE,
        F.col("position").alias("added"),
        "stored_at",
        "message_bytes",
        F.col("dead_letter_cause").isNotNull().alias("dead"),
    )
    return messages.join(adds, [*MESSAGE, "added"]).select(
        *SUBSCRIPTION, "stored_at", "message_bytes", "dead", "hidden"
    )


REPORT = Report(
    name="backlog",
    title="Backlog",
    question="What would a broker serve after reading this journal?",
    frame=backlog,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("waiting", "Waiting", Unit.COUNT, Tone.WARM),
        Column("dead_letters", "Of these dead letters", Unit.COUNT),
        Column("in_doubt", "In doubt", Unit.COUNT),
        Column("bytes", "Size", Unit.BYTES),
        Column("oldest_at", "Oldest", Unit.TIME),
        Column("newest_at", "Newest", Unit.TIME),
    ),
    plot=None,
    nothing="Nothing waits.",
)
