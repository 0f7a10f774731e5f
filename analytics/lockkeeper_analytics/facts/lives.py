"""Every message's stay: from its add to its end, for its queue or for each durable subscription.

What waits, for how long, in which file and for whom is read off these rows. The rules are those
of a replay (kahadb.md section 4), told as joins: nothing is collected anywhere.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.effects import PREPARED_REMOVE, UNMATCHED
from lockkeeper_analytics.facts.grouping import DESTINATION, MESSAGE

ADDS = ("add", "update")
REMOVES = ("remove", UNMATCHED)
PURGE = "remove_destination"
_FACTS = ("producer_id", "priority", "group_id", "transaction")
_HELD = ("record_position", "record_bytes", "stored_at", "message_bytes", "dead_letter_cause")
"""What is known of the record that holds a message; an update may tell other things than an add."""
_PLACE = ("position", "record_position")
_END = (*_PLACE, "happened_at", "kind")
"""What is known of an end; the place comes first, so that the earliest is the lowest."""


def lives_of(effects: DataFrame) -> DataFrame:
    """Return one row for each stay of a message in a queue or with a durable subscription.

    `added` and `ended` are positions of effects, `added_at` and `ended_at` their likeliest times;
    `ended` is null while the message waits. `end_kind` is `remove`, `unmatched`,
    `remove_destination` or `unsubscribe`. `stored` is the position of its first record, `located`
    that of the one that holds it now, of `record_bytes`, and `ender` that of the record that ended
    it. `stored_at`,
    `message_bytes` and `dead_letter_cause` are what the record at `located` tells. `hidden` tells
    that a prepared transaction consumes it.
    """
    purges = _purges(effects)
    return _in_queues(effects, purges).unionByName(_for_subscriptions(effects, purges))


def waiting_in(lives: DataFrame) -> DataFrame:
    """Return the stays that have no end, hidden ones too."""
    return lives.where("ended IS NULL")


def _purges(effects: DataFrame) -> DataFrame:
    """Return when each destination was removed, as a sorted list of ends."""
    purged = effects.where(F.col("kind") == PURGE)
    ends = F.array_sort(F.collect_list(F.struct(*_END)))
    return purged.groupBy(*DESTINATION).agg(ends.alias("purges"))


def _in_queues(effects: DataFrame, purges: DataFrame) -> DataFrame:
    """Cut the records of each message at its removes: one stay is what lies between two."""
    kinds = (*ADDS, "remove", PREPARED_REMOVE)
    told = effects.where(
        F.col("destination_kind").endswith("queue") & F.col("kind").isin(*kinds)
    ).join(F.broadcast(purges), list(DESTINATION), "left")
    earlier = (
        Window.partitionBy(*MESSAGE)
        .orderBy(*_PLACE)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    removes = F.sum((F.col("kind") == "remove").cast("int")).over(earlier)
    before = F.filter("purges", lambda each: each["position"] < F.col("position"))
    turn = removes - (F.col("kind") == "remove").cast("int") + F.coalesce(F.size(before), F.lit(0))
    stays = (
        told.withColumn("turn", turn)
        .groupBy(*MESSAGE, "turn")
        .agg(
            *_added(),
            F.min(_when("remove", *_END)).alias("removed"),
            F.max(F.col("kind") == PREPARED_REMOVE).alias("hidden"),
            F.first("purges").alias("purges"),
        )
    )
    there = stays.where("first IS NOT NULL").withColumn("subscription", F.lit(None).cast("string"))
    return _ended(there, F.least("removed", _next_purge()))


def _for_subscriptions(effects: DataFrame, purges: DataFrame) -> DataFrame:
    """Pair each topic's messages with the durable subscriptions that were there then."""
    topics = effects.where(F.col("destination_kind").endswith("topic"))
    messages = topics.where(F.col("kind").isin(*ADDS)).groupBy(*MESSAGE).agg(*_added())
    removes = topics.where(F.col("kind").isin(*REMOVES, PREPARED_REMOVE))
    done = removes.groupBy(*MESSAGE, "subscription").agg(
        F.min(F.when(F.col("kind").isin(*REMOVES), F.struct(*_END))).alias("removed"),
        F.max(F.col("kind") == PREPARED_REMOVE).alias("hidden"),
    )
    added, since = F.col("first.position"), F.col("since")
    ended = F.exists("purges", lambda each: each["position"].between(since, added))
    pairs = (
        messages.where("first IS NOT NULL")
        .join(F.broadcast(subscriptions_of(topics)), list(DESTINATION))
        .where((added > since) & (F.col("until").isNull() | (added < F.col("until.position"))))
        .join(F.broadcast(purges), list(DESTINATION), "left")
        # Who removes a topic ends its subscriptions.
        .where(~F.coalesce(ended, F.lit(False)))
        .join(done, [*MESSAGE, "subscription"], "left")
        .withColumn("hidden", F.coalesce("hidden", F.lit(False)))
    )
    return _ended(pairs, F.least("removed", "until", _next_purge()))


def subscriptions_of(effects: DataFrame) -> DataFrame:
    """Return each durable subscription, from `since` (a position) `until` it was ended, if it was.

    One that is made again begins anew; one to a wildcard has a row for each topic. That its topic
    was removed is not looked at.
    """
    changes = effects.where(F.col("kind").isin("subscribe", "unsubscribe"))
    order = Window.partitionBy(*DESTINATION, "subscription").orderBy("position")
    until = F.lead(F.struct(*_PLACE, "happened_at", F.lit("unsubscribe").alias("kind"))).over(order)
    begun = changes.withColumn("until", until).where(F.col("kind") == "subscribe")
    created = F.col("happened_after").alias("created_at")
    since = F.col("position").alias("since")
    return begun.select(*DESTINATION, "subscription", since, created, "until")


def live_subscriptions_of(effects: DataFrame) -> DataFrame:
    """Return the durable subscriptions that nothing ended, their topic's removal neither."""
    purged = effects.where(F.col("kind") == PURGE).groupBy(*DESTINATION)
    last = purged.agg(F.max("position").alias("purged"))
    return (
        subscriptions_of(effects.where(F.col("destination_kind").endswith("topic")))
        .where("until IS NULL")
        .join(F.broadcast(last), list(DESTINATION), "left")
        .where(F.col("since") > F.coalesce("purged", F.lit(-1)))
        .select(*DESTINATION, "subscription", "since", "created_at")
    )


def _when(kind: str, *names: str) -> Column:
    return F.when(F.col("kind") == kind, F.struct(*names))


def _added() -> tuple[Column, Column]:
    """Return the aggregates of the first add of a message and of its latest update."""
    facts = (*_PLACE, "happened_at", *_FACTS, *_HELD[1:])
    is_add = F.col("kind").isin(*ADDS)
    return (
        F.min(F.when(is_add, F.struct(*facts))).alias("first"),
        F.max(_when("update", *_HELD)).alias("updated"),
    )


def _next_purge() -> Column:
    later = F.filter("purges", lambda each: each["position"] > F.col("first.position"))
    return F.get(later, 0)


def _ended(stays: DataFrame, end: Column) -> DataFrame:
    held = F.coalesce("updated", F.struct(*(F.col(f"first.{name}") for name in _HELD)))
    return stays.withColumns({"end": end, "held": held}).select(
        *MESSAGE,
        "subscription",
        F.col("first.position").alias("added"),
        F.col("first.happened_at").alias("added_at"),
        *(F.col(f"first.{name}").alias(name) for name in _FACTS),
        F.col("first.record_position").alias("stored"),
        F.col("held.record_position").alias("located"),
        *(F.col(f"held.{name}").alias(name) for name in _HELD[1:]),
        F.col("end.position").alias("ended"),
        F.col("end.record_position").alias("ender"),
        F.col("end.happened_at").alias("ended_at"),
        F.col("end.kind").alias("end_kind"),
        "hidden",
    )
