"""Transactions that are open, in doubt, or took long; a prepared one hides what it consumes."""

from lockkeeper_analytics.reports.messages import verdicts
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="transactions",
    title="Transactions",
    question="Which transactions wait for their outcome, and which took long?",
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
    plots=(),
    nothing="There were no transactions.",
    calm=verdicts("No transaction waits for its outcome, and none took long."),
)
