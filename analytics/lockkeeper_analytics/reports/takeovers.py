"""Takeovers: starts, take-overs and stops of brokers, with their causes."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.effects import with_position
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reading.recorder import LIFE_EVENTS, STARTING_EVENTS, STOPPING_EVENT
from lockkeeper_analytics.reports.report import Column, Report, Unit


def takeovers(journal: Journal) -> DataFrame:
    """Return one row for each event of a broker's life, in order.

    `silent_ms` is how long the journal had held no later time when a broker started, at most:
    between the last sign of life of its predecessor and the start. `after_crash` tells that
    there was a predecessor, and that it did not stop cleanly.
    """
    events = journal.events.where(F.col("event").isin(*LIFE_EVENTS))
    known = _last_known_before(journal, events)
    before = Window.partitionBy("directory").orderBy("position")
    starting = F.col("event").isin(*STARTING_EVENTS)
    previous = F.lag("event").over(before)
    return (
        events.join(known, ["directory", "position"], "left")
        .withColumn("after_crash", starting & F.coalesce(previous != STOPPING_EVENT, F.lit(False)))
        .withColumn(
            "silent_ms",
            F.when(starting, F.unix_millis("at") - F.unix_millis("last_known_at")),
        )
        .select(
            "directory",
            "at",
            "event",
            "broker",
            "replica",
            "epoch",
            "cause",
            "after_crash",
            "last_known_at",
            "silent_ms",
        )
        .orderBy("directory", "position")
    )


def _last_known_before(journal: Journal, events: DataFrame) -> DataFrame:
    """Return the last time that the journal tells of in front of each event.

    Records of the event's own file are compared one by one, other files as a whole.
    """
    records = with_position(journal.records).select(
        "directory", "file_id", "position", "written_after"
    )
    places = F.broadcast(
        events.select(
            "directory",
            F.shiftright("position", 32).cast("int").alias("file_id"),
            F.col("position").alias("event_position"),
            F.col("at").alias("event_at"),
        )
    )
    # A clock line of the event's own batch tells the event's own time.
    earlier = F.when(F.col("written_after") < F.col("event_at"), F.col("written_after"))
    near = (
        records.join(places, ["directory", "file_id"])
        .where("position < event_position")
        .select("directory", "event_position", earlier.alias("known_at"))
    )
    of_files = records.groupBy("directory", "file_id").agg(F.max("written_after").alias("known_at"))
    far = (
        of_files.join(places.withColumnRenamed("file_id", "event_file"), "directory")
        .where("file_id < event_file")
        .select("directory", "event_position", "known_at")
    )
    return (
        near.unionByName(far)
        .groupBy("directory", F.col("event_position").alias("position"))
        .agg(F.max("known_at").alias("last_known_at"))
    )


REPORT = Report(
    name="takeovers",
    title="Masters",
    question="Who was master, from when on, and why?",
    frame=takeovers,
    columns=(
        Column("at", "At", Unit.TIME),
        Column("event", "Event"),
        Column("broker", "Broker"),
        Column("replica", "Replica"),
        Column("epoch", "Term", Unit.COUNT),
        Column("cause", "Cause", Unit.CAUSE),
        Column("after_crash", "After a crash", Unit.FLAG),
        Column("silent_ms", "Silence before", Unit.MILLISECONDS),
    ),
    plot=None,
    nothing=(
        "The journal tells of no start or take-over: its broker keeps no flight recorder, as "
        "ActiveMQ does not."
    ),
)
