"""Is the load spread? Messages by their group and by their priority."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import percentile
from lockkeeper_analytics.facts.grouping import DESTINATION
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

VALUES_MAX = 20
"""The biggest so many of each destination are told: there may be a group for each customer."""

HOT_SHARE, HOT_MESSAGES = 0.5, 100
"""A group goes to one consumer: with half of what comes, the others can take the other half at
most. Of fewer messages than these a share says little."""


def skew(journal: Journal) -> DataFrame:
    """Return one row for each group, and each priority where there are several, biggest first.

    `what` is `group` or `priority`. `share` is the part of the destination's messages that have
    one, `of` how many values there are. Percentiles are in ms from arrival to acknowledgement.
    For a topic, a message counts once for each durable subscription.
    """
    values = F.array(
        F.struct(F.lit("group").alias("what"), F.col("group_id").alias("value")),
        F.struct(F.lit("priority").alias("what"), F.col("priority").cast("string").alias("value")),
    )
    taken = F.unix_millis("ended_at") - F.unix_millis("stored_at")
    sent = (
        journal.lives.where("dead_letter_cause IS NULL")
        .withColumn("taken_ms", F.when(F.col("end_kind") == "remove", F.greatest(taken, F.lit(0))))
        .select(*DESTINATION, "taken_ms", F.inline(values))
        .where("value IS NOT NULL")
    )
    counted = sent.groupBy(*DESTINATION, "what", "value").agg(
        F.count("*").alias("messages"),
        percentile("taken_ms", 0.5).alias("p50_ms"),
        percentile("taken_ms", 0.99).alias("p99_ms"),
    )
    each = Window.partitionBy(*DESTINATION, "what")
    biggest = each.orderBy(F.desc("messages"), "value")
    share = F.col("messages") / F.sum("messages").over(each)
    is_hot = (F.col("what") == "group") & (share >= HOT_SHARE)
    return (
        counted.withColumn("share", share)
        .withColumn("of", F.count("*").over(each))
        .withColumn("hot", is_hot & (F.col("messages") >= HOT_MESSAGES) & (F.col("of") > 1))
        .withColumn("rank", F.row_number().over(biggest))
        .where(f"rank <= {VALUES_MAX} AND (what = 'group' OR of > 1)")
        .select(*DESTINATION, "what", "value", "messages", "share", "of", "p50_ms", "p99_ms", "hot")
        .orderBy(*DESTINATION, "what", F.desc("messages"), "value")
    )


REPORT = Report(
    name="skew",
    title="Groups and priorities",
    question="Does one group or priority have most of the messages, and do others wait for it?",
    frame=skew,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("what", "By"),
        Column("value", "Value", Unit.CODE),
        Column("messages", "Messages", Unit.COUNT, Tone.CAME),
        Column("share", "Share", Unit.SHARE),
        Column("of", "Values", Unit.COUNT),
        Column("p50_ms", "Half within", Unit.MILLISECONDS),
        Column("p99_ms", "99 %", Unit.MILLISECONDS),
        Column("hot", "Too much for one", Unit.FLAG),
    ),
    plot=Bars(("destination", "what", "value"), (Series("messages", "messages", Tone.CAME),)),
    nothing="Messages have no groups and one priority.",
)
