"""Producers: what each connection stored at each destination, and how fast."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.clients import connection_of, connections_of
from lockkeeper_analytics.facts.grouping import DESTINATION
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

PRODUCERS_MAX = 1000
"""The busiest so many are told: where each message has its own connection, there are millions."""


def producers(journal: Journal) -> DataFrame:
    """Return one row for each destination and connection that sent to it, the busiest first.

    Dead letters are no one's sending, and left out. `share` is the part of the destination's
    messages, `transacted` how many were sent in transactions, `per_second` the mean between
    first and last, over a second at least. Who had the connection, events of clients tell.
    """
    sent = journal.effects.where((F.col("kind") == "add") & F.col("dead_letter_cause").isNull())
    by_connection = (
        sent.withColumn("producer", connection_of(F.col("producer_id")))
        .groupBy(*DESTINATION, "producer")
        .agg(
            F.count("*").alias("messages"),
            F.sum("message_bytes").alias("bytes"),
            F.min("stored_at").alias("first_at"),
            F.max("stored_at").alias("last_at"),
            F.count("transaction").alias("transacted"),
        )
    )
    everyone = F.sum("messages").over(Window.partitionBy(*DESTINATION))
    seconds = (F.unix_millis("last_at") - F.unix_millis("first_at")) / 1000
    known = connections_of(journal.clients).withColumnRenamed("connection", "producer")
    return (
        by_connection.withColumn("share", F.col("messages") / everyone)
        .withColumn("per_second", F.col("messages") / F.greatest(seconds, F.lit(1.0)))
        .orderBy(F.desc("messages"), *DESTINATION, "producer")
        .limit(PRODUCERS_MAX)
        .join(known, ["directory", "producer"], "left")
        .select(
            *DESTINATION,
            "producer",
            "client_id",
            "user_name",
            "address",
            "messages",
            "bytes",
            "first_at",
            "last_at",
            "per_second",
            "share",
            "transacted",
        )
        .orderBy(F.desc("messages"), *DESTINATION, "producer")
    )


REPORT = Report(
    name="producers",
    title="Who sends",
    question="Which connections sent how much, where to, and how fast?",
    frame=producers,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("producer", "Connection", Unit.CODE),
        Column("client_id", "Client"),
        Column("user_name", "User"),
        Column("address", "Address"),
        Column("messages", "Messages", Unit.COUNT, Tone.CAME),
        Column("share", "Of all there", Unit.SHARE),
        Column("bytes", "Size", Unit.BYTES),
        Column("per_second", "A second", Unit.DECIMAL),
        Column("transacted", "In transactions", Unit.COUNT),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
    ),
    plot=Bars(("destination", "producer"), (Series("messages", "messages", Tone.CAME),)),
    nothing="Nothing was sent that the journal holds.",
)
