"""Takeovers: starts, take-overs and stops of brokers, with their causes."""

from lockkeeper_analytics.reports.report import Column, Report, Unit

REPORT = Report(
    name="takeovers",
    title="Masters",
    question="Who was master, from when on, and why?",
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
    plots=(),
    nothing=(
        "The journal tells of no start or take-over: its broker keeps no flight recorder, as "
        "ActiveMQ does not."
    ),
)
