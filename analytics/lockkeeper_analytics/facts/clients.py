"""Clients by the flight recorder: connections and consumers that came and went.

ActiveMQ's journals have none of this (docs/reference/flight-recorder.md).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.effects import with_position
from lockkeeper_analytics.facts.grouping import kind_in, name_in
from lockkeeper_analytics.reading.recorder import EVENT, LIFE_EVENTS

_TEXTS = ("connection", "clientId", "user", "address", "consumer", "destination", "subscription")
_NUMBERS = ("at", "delivered", "held")
_DDL = ", ".join(
    ["t string", "event string"]
    + [f"{name} string" for name in _TEXTS]
    + [f"{name} bigint" for name in _NUMBERS]
)


def clients_of(records: DataFrame) -> DataFrame:
    """Return one row for each event of a client, in its place.

    Times are timestamps, ids as messages and acknowledgements carry them; null: not said.
    """
    lines = with_position(records.where(F.col("recorder").isNotNull()))
    told = lines.withColumn("line", F.from_json("recorder", _DDL)).where(
        (F.col("line.t") == EVENT) & ~F.col("line.event").isin(*LIFE_EVENTS)
    )
    return told.select(
        "directory",
        "position",
        F.timestamp_millis("line.at").alias("at"),
        F.col("line.event").alias("event"),
        F.col("line.connection").alias("connection"),
        F.col("line.clientId").alias("client_id"),
        F.col("line.user").alias("user_name"),
        F.col("line.address").alias("address"),
        F.col("line.consumer").alias("consumer"),
        kind_in(F.col("line.destination")).alias("destination_kind"),
        name_in(F.col("line.destination")).alias("destination"),
        F.col("line.subscription").alias("subscription"),
        F.col("line.delivered").alias("delivered"),
        F.col("line.held").alias("held"),
    )


def connections_of(clients: DataFrame) -> DataFrame:
    """Return what the last opening of each connection told: client id, user and address."""
    opened = clients.where("event = 'connectionOpened'")
    last = F.max_by(F.struct("client_id", "user_name", "address"), "position").alias("told")
    return (
        opened.groupBy("directory", "connection")
        .agg(last)
        .select("directory", "connection", "told.client_id", "told.user_name", "told.address")
    )


def connection_of(identifier: F.Column) -> F.Column:
    """Return the connection in the id of a producer or consumer, `connection:session:number`."""
    return F.regexp_replace(identifier, ":-?[0-9]+:-?[0-9]+$", "")
