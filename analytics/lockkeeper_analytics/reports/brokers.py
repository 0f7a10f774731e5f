"""Comparison of brokers: one row for each journal."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import percentile
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.lives import waiting_in
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit
from lockkeeper_analytics.reports.totals import totals


def brokers(journal: Journal) -> DataFrame:
    """Return one row for each directory.

    `broker` is the name that the last event tells, else the directory's. `sent` counts messages
    without dead letters, `per_second` is their mean over `seconds`, from the first record to the
    last; `bytes` are those of all records. `p99_ms` is of what records acknowledge.
    """
    of_records = journal.records.groupBy("directory").agg(
        F.sum("record_bytes").alias("bytes"),
        (
            (F.unix_millis(F.max("written_after")) - F.unix_millis(F.min("written_after"))) / 1000
        ).alias("seconds"),
    )
    sums = (
        totals(journal)
        .groupBy("directory")
        .agg(
            (F.sum("enqueued") - F.sum(F.coalesce("dead_lettered", F.lit(0)))).alias("sent"),
            F.sum("acknowledged").alias("acknowledged"),
            F.sum("dead_lettered").alias("dead_lettered"),
        )
    )
    waiting = (
        waiting_in(journal.lives)
        .groupBy("directory")
        .agg(F.count_if(~F.col("hidden")).alias("waiting"))
    )
    late = journal.acknowledged.groupBy("directory").agg(
        percentile("latency_ms", 0.99).alias("p99_ms")
    )
    life = journal.events.groupBy("directory").agg(
        F.max_by("broker", "position").alias("named"),
        F.sum((F.col("event") == "takeover").cast("bigint")).alias("takeovers"),
    )
    joined = of_records
    for other in (sums, waiting, late, life):
        joined = joined.join(other, "directory", "left")
    counts = ("sent", "acknowledged", "dead_lettered", "waiting")
    return joined.select(
        "directory",
        F.coalesce("named", F.regexp_extract("directory", "([^/]+)/*$", 1)).alias("broker"),
        *(F.coalesce(name, F.lit(0)).alias(name) for name in counts),
        "p99_ms",
        F.coalesce("takeovers", F.lit(0)).alias("takeovers"),
        "bytes",
        "seconds",
        (F.coalesce("sent", F.lit(0)) / F.greatest("seconds", F.lit(1.0))).alias("per_second"),
    ).orderBy(F.desc("sent"), "directory")


REPORT = Report(
    name="brokers",
    title="Brokers",
    question="How do the brokers compare?",
    frame=brokers,
    columns=(
        Column("directory", "Journal", Unit.CODE),
        Column("broker", "Broker"),
        Column("sent", "Sent", Unit.COUNT, Tone.CAME),
        Column("per_second", "A second", Unit.DECIMAL),
        Column("acknowledged", "Acknowledged", Unit.COUNT),
        Column("dead_lettered", "Dead letters", Unit.COUNT),
        Column("waiting", "Waiting", Unit.COUNT),
        Column("p99_ms", "99 % within", Unit.MILLISECONDS),
        Column("takeovers", "Take-overs", Unit.COUNT),
        Column("bytes", "Written", Unit.BYTES),
        Column("seconds", "Seconds", Unit.DECIMAL),
    ),
    plot=Bars(("broker",), (Series("sent", "sent", Tone.CAME),)),
    nothing="There is no journal.",
)
