"""Comparison of brokers: one row for each journal."""

from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

REPORT = Report(
    name="brokers",
    title="Brokers",
    question="How do the brokers compare?",
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
    plots=(Bars(("broker",), (Series("sent", "sent", Tone.CAME),), "messages sent"),),
    nothing="There is no journal.",
    calm=lambda rows: "One journal was read: there is nothing to compare." if len(rows) < 2 else "",
)
