"""Rates: the messages that came and went in each cell of time."""

from lockkeeper_analytics.reports.messages import OF_CELL
from lockkeeper_analytics.reports.report import Column, Lines, Report, Series, Tone, Unit

REPORT = Report(
    name="rates",
    title="Flow",
    question="How many messages came in and left, and when?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("time", "From", Unit.TIME),
        Column("seconds", "Seconds", Unit.COUNT),
        Column("enqueued", "Came in", Unit.COUNT, Tone.CAME),
        Column("dequeued", "Left", Unit.COUNT),
        Column("dead_lettered", "Dead letters", Unit.COUNT),
        Column("redelivered", "Redelivered", Unit.COUNT),
    ),
    plots=(
        Lines(
            (
                Series("enqueued", "came in", Tone.CAME, floor=""),
                Series("dequeued", "left", Tone.LEFT),
                Series("dead_lettered", "dead letters", Tone.BAD),
            ),
            "messages a second",
            together="sum",
            is_rate=True,
        ),
    ),
    nothing="Nothing came and nothing left.",
    messages=OF_CELL,
)
