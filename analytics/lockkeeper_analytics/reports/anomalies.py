"""Anomalies: periods far from the median of those before them."""

from lockkeeper_analytics.reports.report import Column, Report, Unit

REPORT = Report(
    name="anomalies",
    title="Unlike before",
    question="Which periods were unlike those before them?",
    columns=(
        Column("period", "From", Unit.TIME),
        Column("seconds", "Seconds", Unit.COUNT),
        Column("destination", "Destination", Unit.DESTINATION),
        Column("measure", "Measure"),
        Column("flag", "Flag", Unit.BADGE),
        Column("value", "Value", Unit.DECIMAL),
        Column("before", "Median before", Unit.DECIMAL),
        Column("ratio", "Times", Unit.DECIMAL),
    ),
    plots=(),
    nothing="No period is unlike those before it, or there are too few to tell.",
)
