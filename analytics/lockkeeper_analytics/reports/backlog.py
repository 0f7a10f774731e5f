"""Backlog: messages that wait, for each destination and durable subscription."""

from lockkeeper_analytics.reports.messages import WAITING
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="backlog",
    title="Backlog",
    question="What would a broker serve after reading this journal?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("waiting", "Waiting", Unit.COUNT, Tone.WARM),
        Column("dead_letters", "Of these dead letters", Unit.COUNT),
        Column("in_doubt", "In doubt", Unit.COUNT),
        Column("bytes", "Size", Unit.BYTES),
        Column("oldest_at", "Oldest", Unit.TIME),
        Column("newest_at", "Newest", Unit.TIME),
    ),
    plots=(),
    nothing="Nothing waits.",
    messages=WAITING,
)
