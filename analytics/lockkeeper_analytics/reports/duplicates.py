"""Duplicates: messages stored more than once at the same destination."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.clients import connection_of
from lockkeeper_analytics.facts.grouping import DESTINATION, MESSAGE
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

DUPLICATES_MAX = 1000
"""The most frequent so many are told; a client that sends all again has as many as messages."""


def duplicates(journal: Journal) -> DataFrame:
    """Return one row for each message that a producer stored `stored` times at a destination.

    `processed_again` counts those times that came when the message had ended before, so that a
    queue's consumer got it again; for the others a replay keeps one. Null for topics, where each
    subscription has its own. What an operator moved (a dead letter sent back) is left out.
    """
    sent = journal.effects.where((F.col("kind") == "add") & F.col("original_destination").isNull())
    twice = (
        sent.groupBy(*MESSAGE)
        .agg(
            F.count("*").alias("stored"),
            F.min("stored_at").alias("first_at"),
            F.max("stored_at").alias("last_at"),
            F.max(connection_of(F.col("producer_id"))).alias("producer"),
        )
        .where("stored > 1")
    )
    again = _after_an_end(
        journal.effects.join(F.broadcast(_few(twice)), list(MESSAGE), "left_semi")
    )
    of_queue = F.col("destination_kind").endswith("queue")
    return (
        _few(twice)
        .join(again, list(MESSAGE), "left")
        .select(
            *DESTINATION,
            "producer",
            "message_id",
            "stored",
            F.when(of_queue, F.coalesce("again", F.lit(0))).alias("processed_again"),
            "first_at",
            "last_at",
        )
        .orderBy(F.desc("stored"), *MESSAGE)
    )


def _few(twice: DataFrame) -> DataFrame:
    return twice.orderBy(F.desc("stored"), *MESSAGE).limit(DUPLICATES_MAX)


def _after_an_end(effects: DataFrame) -> DataFrame:
    """Count the adds in front of which a remove of the same message stands."""
    order = Window.partitionBy(*MESSAGE).orderBy("position", "record_position")
    steps = effects.where(F.col("kind").isin("add", "remove"))
    before = steps.withColumn("before", F.lag("kind").over(order))
    return (
        before.where("kind = 'add' AND before = 'remove'")
        .groupBy(*MESSAGE)
        .agg(F.count("*").alias("again"))
    )


REPORT = Report(
    name="duplicates",
    title="Sent twice",
    question="Which messages did their producer send more than once?",
    frame=duplicates,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("message_id", "Message", Unit.CODE),
        Column("producer", "Connection", Unit.CODE),
        Column("stored", "Stored", Unit.COUNT, Tone.WARM),
        Column("processed_again", "After its end", Unit.COUNT, Tone.BAD),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
    ),
    plot=None,
    nothing="No message was stored twice.",
    note="What came again after its end was processed again; of what came before, one is kept.",
)
