"""Backlog over time: the messages that waited at the end of each cell."""

from lockkeeper_analytics.facts.grouping import SUBSCRIPTION
from lockkeeper_analytics.reports.messages import OF_CELL
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
    plots=(
        Lines(
            (Series("waiting", "waiting", Tone.CAME, floor=""),),
            "messages waiting",
            each=SUBSCRIPTION,
            together="sum",
        ),
        Lines(
            (Series("oldest_ms", "age of the oldest", Tone.WARM, floor=""),),
            "age of the oldest message (lag)",
            each=SUBSCRIPTION,
            unit=Unit.MILLISECONDS,
            together="max",
        ),
    ),
    nothing="Nothing ever waited.",
    messages=OF_CELL,
)
