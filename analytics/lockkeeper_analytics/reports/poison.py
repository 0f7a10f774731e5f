"""Poison messages: those that died after deliveries, some again and again."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.clients import connection_of
from lockkeeper_analytics.facts.grouping import dead_letters_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

POISON_MAX = 1000
"""The worst so many are told; where a consumer fails on everything, dead letters count them."""

EXPIRED = "expired"
"""Both brokers say so in the cause of a message whose time was over: nobody failed on it."""


def poison(journal: Journal) -> DataFrame:
    """Return one row for each message that died of failed deliveries, the worst first.

    `dead_lettered` counts how often it died, `retried` how often it came back to where it was
    meant for afterwards under its old id (as ActiveMQ's console sends it), `redeliveries` is its
    highest counter, `cause` why it died last.
    """
    failed = dead_letters_of(journal.effects).where(~F.lower("dead_letter_cause").contains(EXPIRED))
    of_message = ["directory", "shown_id"]
    first = failed.groupBy(*of_message).agg(
        F.min_by(
            F.struct("destination_kind", "destination", "origin_kind", "origin"), "position"
        ).alias("died"),
        F.min("position").alias("since"),
    )
    adds = journal.effects.where("kind IN ('add', 'update')").join(first, of_message)
    here = F.struct("destination_kind", "destination")
    is_dead = here == F.struct("died.destination_kind", "died.destination")
    is_back = (here == F.struct("died.origin_kind", "died.origin")) & (
        F.col("position") > F.col("since")
    )
    is_add = F.col("kind") == "add"
    return (
        adds.groupBy(
            "directory",
            F.col("died.origin_kind").alias("origin_kind"),
            F.col("died.origin").alias("origin"),
            F.col("shown_id").alias("message_id"),
        )
        .agg(
            F.max("redeliveries").alias("redeliveries"),
            F.sum((is_dead & is_add).cast("bigint")).alias("dead_lettered"),
            F.sum((is_back & is_add).cast("bigint")).alias("retried"),
            F.max(connection_of(F.col("producer_id"))).alias("producer"),
            F.max_by("dead_letter_cause", F.when(is_dead, F.col("position"))).alias("cause"),
            F.min(F.when(is_dead, F.col("happened_at"))).alias("first_at"),
            F.max(F.when(is_dead, F.col("happened_at"))).alias("last_at"),
        )
        .orderBy(
            F.desc("dead_lettered"),
            F.desc_nulls_last("redeliveries"),
            "directory",
            "origin",
            "message_id",
        )
        .limit(POISON_MAX)
    )


REPORT = Report(
    name="poison",
    title="Poison messages",
    question="Which messages can nobody consume?",
    frame=poison,
    columns=(
        Column("origin", "Meant for", Unit.DESTINATION),
        Column("message_id", "Message", Unit.CODE),
        Column("dead_lettered", "Died", Unit.COUNT, Tone.BAD),
        Column("retried", "Sent back", Unit.COUNT),
        Column("redeliveries", "Redeliveries", Unit.COUNT, Tone.WARM),
        Column("cause", "Last cause", Unit.CAUSE),
        Column("producer", "Connection", Unit.CODE),
        Column("first_at", "Died first", Unit.TIME),
        Column("last_at", "Died last", Unit.TIME),
    ),
    plot=None,
    nothing="No message died of failed deliveries.",
)
