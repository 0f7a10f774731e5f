"""Backlog: messages that wait, for each destination and durable subscription."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.grouping import SUBSCRIPTION
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.lives import waiting_in
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit


def backlog(journal: Journal) -> DataFrame:
    """Return one row for each destination and subscription that messages wait at.

    `waiting` and `bytes` count those that a consumer would get, `dead_letters` how many of them
    are dead letters, `in_doubt` those that a prepared transaction hides. This is what a broker
    would serve after a replay (kahadb.md section 4).
    """
    served = ~F.col("hidden")
    is_dead = F.col("dead_letter_cause").isNotNull()
    return (
        waiting_in(journal.lives)
        .groupBy(*SUBSCRIPTION)
        .agg(
            F.count_if(served).alias("waiting"),
            F.sum(F.when(served, F.col("message_bytes")).otherwise(0)).alias("bytes"),
            F.count_if(served & is_dead).alias("dead_letters"),
            F.count_if("hidden").alias("in_doubt"),
            F.min("stored_at").alias("oldest_at"),
            F.max("stored_at").alias("newest_at"),
        )
        .orderBy(F.desc("waiting"), *SUBSCRIPTION)
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
