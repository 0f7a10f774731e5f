"""Pattern of the week: the mean hour of each weekday."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.kept import kept
from lockkeeper_analytics.facts.narrowing import FACTS
from lockkeeper_analytics.facts.uncounted import counts_of
from lockkeeper_analytics.reports.report import Column, Heat, Report, Tone, Unit

HOUR = 3600
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def pattern(journal: Journal) -> DataFrame:
    """Return one row for each weekday and hour (UTC) that the journal covers.

    `enqueued` and `dequeued` are the means of messages in such an hour, `hours` how many there
    were between the first and the last that anything happened in; those at the ends are shorter.
    """
    counts = (
        kept(counts_of(journal, HOUR), FACTS["moves"], journal.narrowing)
        .groupBy("directory", "time")
        .agg(F.sum("enqueued").alias("came"), F.sum("dequeued").alias("went"))
    )
    span = counts.groupBy("directory").agg(F.min("time").alias("first"), F.max("time").alias("end"))
    step = F.expr("INTERVAL 1 HOUR")
    hours = span.select("directory", F.explode(F.sequence("first", "end", step)).alias("time"))
    number = F.weekday("time")
    return (
        hours.join(counts, ["directory", "time"], "left")
        .groupBy("directory", number.alias("number"), F.hour("time").alias("hour"))
        .agg(
            (F.coalesce(F.sum("came"), F.lit(0)) / F.count("*")).alias("enqueued"),
            (F.coalesce(F.sum("went"), F.lit(0)) / F.count("*")).alias("dequeued"),
            F.count("*").alias("hours"),
        )
        .orderBy("directory", "number", "hour")
        .select(
            "directory",
            F.get(F.array(*map(F.lit, WEEKDAYS)), F.col("number")).alias("weekday"),
            "hour",
            "enqueued",
            "dequeued",
            "hours",
        )
    )


REPORT = Report(
    name="pattern",
    title="Days and hours",
    question="On which days and at which hours is most going on?",
    frame=pattern,
    columns=(
        Column("directory", "Journal", Unit.CODE),
        Column("weekday", "Day"),
        Column("hour", "Hour (UTC)"),
        Column("enqueued", "Came in an hour", Unit.DECIMAL, Tone.CAME),
        Column("dequeued", "Left in an hour", Unit.DECIMAL, Tone.LEFT),
        Column("hours", "Hours", Unit.COUNT),
    ),
    plot=Heat("hour", ("weekday",), "enqueued"),
    nothing="Nothing came and nothing left.",
)
