"""Redeliveries of each destination."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.grouping import DESTINATION, kind_in, name_in
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit


def redeliveries(journal: Journal) -> DataFrame:
    """Return one row for each destination that had redeliveries.

    `redelivered` counts messages given back to their queue, `dispatched` all deliveries; only
    statistics tell them (null without). `marked` counts messages that the journal holds with a
    redelivery counter, dead letters mostly, and `highest` is the highest of these.
    """
    sums = ("redelivered", "dispatched")
    told = journal.statistics.groupBy(*DESTINATION).agg(
        *(F.sum(f"new_{name}").alias(name) for name in sums)
    )
    origin = F.col("original_destination")
    marked = (
        journal.effects.where((F.col("redeliveries") > 0) & F.col("kind").isin("add", "update"))
        .groupBy(
            "directory",
            F.coalesce(kind_in(origin), F.col("destination_kind")).alias("destination_kind"),
            F.coalesce(name_in(origin), F.col("destination")).alias("destination"),
        )
        .agg(F.count("*").alias("marked"), F.max("redeliveries").alias("highest"))
    )
    both = told.join(marked, list(DESTINATION), "full")
    return both.where("redelivered > 0 OR marked > 0").orderBy(
        F.desc_nulls_last("redelivered"), F.desc_nulls_last("marked"), *DESTINATION
    )


REPORT = Report(
    name="redeliveries",
    title="Redeliveries",
    question="What was delivered more than once?",
    frame=redeliveries,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("redelivered", "Given back", Unit.COUNT, Tone.WARM),
        Column("dispatched", "Deliveries", Unit.COUNT),
        Column("marked", "Marked in the journal", Unit.COUNT),
        Column("highest", "Highest counter", Unit.COUNT),
    ),
    plot=None,
    nothing="No message was delivered again.",
)
