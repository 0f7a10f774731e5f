"""Transactions that are open, in doubt, or took long; a prepared one hides what it consumes."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.effects import OUTCOMES, with_position
from lockkeeper_analytics.facts.ends import ends_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

UNDECIDED_MAX, ENDED_MAX = 1000, 100
"""Nobody leaves a thousand undecided; of those that ended, the longest are of interest."""

LONG_MS = 30_000
"""Half of what transaction managers wait before they give up, most often a minute."""


def transactions(journal: Journal) -> DataFrame:
    """Return one row for each undecided transaction, the oldest first, and for the longest others.

    `state` is `open` (a broker that starts rolls it back), `in_doubt` (prepared: somebody must
    decide), `committed` or `rolled_back`. `age_ms` runs from its first record to its end, or to
    the last time that the journal tells. `files` counts data files with what it did. An id that
    is used again is a transaction of its own.
    """
    known = _transactions(journal).join(F.broadcast(ends_of(journal)), "directory", "left")
    until = F.unix_millis(F.coalesce("ended_at", "end_at"))
    aged = known.withColumn("age_ms", until - F.unix_millis("began_at"))
    is_long = F.col("age_ms") >= LONG_MS
    decided = F.col("state").isin("committed", "rolled_back")
    judged = aged.withColumn(
        "verdict",
        F.when(decided & is_long, "slow").when(~decided & is_long, "stuck").otherwise("ok"),
    )
    order = (F.desc_nulls_last("age_ms"), "directory", "transaction", "began_at")
    undecided = judged.where(~decided).orderBy(*order).limit(UNDECIDED_MAX)
    ended = judged.where(decided).orderBy(*order).limit(ENDED_MAX)
    return (
        undecided.unionByName(ended)
        .select(
            "directory",
            "transaction",
            "kind",
            "state",
            "verdict",
            "began_at",
            "ended_at",
            "age_ms",
            "adds",
            "removes",
            "bytes",
            "files",
        )
        .orderBy(F.expr("state IN ('committed', 'rolled_back')"), *order)
    )


def _transactions(journal: Journal) -> DataFrame:
    kind = F.col("kind")
    earlier = (
        Window.partitionBy("directory", "transaction")
        .orderBy("position")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    is_outcome = kind.isin(*OUTCOMES)
    turn = F.coalesce(F.sum(is_outcome.cast("int")).over(earlier), F.lit(0))
    told = with_position(journal.records.where("transaction IS NOT NULL")).withColumn("turn", turn)
    outcome = F.max(F.when(is_outcome, kind))
    prepared = F.max((kind == "prepare").cast("int")) == 1
    state = (
        F.when(outcome == "commit", "committed")
        .when(outcome == "rollback", "rolled_back")
        .when(prepared, "in_doubt")
        .otherwise("open")
    )
    xa = F.when(F.col("transaction").startswith("XID:"), "xa").otherwise("local")
    return (
        told.groupBy("directory", "transaction", "turn")
        .agg(
            state.alias("state"),
            F.min_by("written_after", "position").alias("began_at"),
            F.max(F.when(is_outcome, F.col("written_after"))).alias("ended_at"),
            F.sum((kind == "add").cast("bigint")).alias("adds"),
            F.sum((kind == "remove").cast("bigint")).alias("removes"),
            F.coalesce(F.sum("message_bytes"), F.lit(0)).alias("bytes"),
            F.count_distinct(F.when(~is_outcome, F.col("file_id"))).alias("files"),
        )
        .where("adds + removes > 0")
        .withColumn("kind", xa)
    )


REPORT = Report(
    name="transactions",
    title="Transactions",
    question="Which transactions wait for their outcome, and which took long?",
    frame=transactions,
    columns=(
        Column("transaction", "Transaction", Unit.CODE),
        Column("kind", "Kind"),
        Column("state", "State"),
        Column("verdict", "Verdict", Unit.BADGE),
        Column("age_ms", "Age", Unit.MILLISECONDS, Tone.WARM),
        Column("began_at", "Began", Unit.TIME),
        Column("ended_at", "Ended", Unit.TIME),
        Column("adds", "Sent", Unit.COUNT),
        Column("removes", "Acknowledged", Unit.COUNT),
        Column("bytes", "Size", Unit.BYTES),
        Column("files", "Files", Unit.COUNT),
    ),
    plot=None,
    nothing="There were no transactions.",
)
