"""Backlog over time: the messages that waited at the end of each cell."""

from lockkeeper_analytics.facts.grouping import SUBSCRIPTION
from lockkeeper_analytics.reports.report import Column, Lines, Report, Series, Tone, Unit

REPORT = Report(
    name="backlog_over_time",
    title="Backlog over time",
    question="How many messages waited, when, and how long had the oldest been there?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("time", "From", Unit.TIME),
        Column("waiting", "Waiting at its end", Unit.COUNT, Tone.CAME),
        Column("oldest_ms", "Oldest", Unit.MILLISECONDS),
        Column("depth", "By statistics", Unit.COUNT),
    ),
    plot=Lines(
        (Series("waiting", "waiting", Tone.CAME, floor=""),), each=SUBSCRIPTION, together="sum"
    ),
    nothing="Nothing ever waited.",
)
