"""Totals of each destination over all that the journal tells of."""

from lockkeeper_analytics.reports.messages import OF_DESTINATION
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="totals",
    title="Destinations",
    question="How many messages came to each destination, and what became of them?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("enqueued", "Came in", Unit.COUNT, Tone.CAME),
        Column("acknowledged", "Acknowledged", Unit.COUNT),
        Column("dead_lettered", "Dead letters", Unit.COUNT),
        Column("expired", "Expired", Unit.COUNT),
        Column("redelivered", "Redelivered", Unit.COUNT),
        Column("never_written", "Never written", Unit.COUNT),
    ),
    plots=(),
    nothing="The journal names no destination.",
    messages=OF_DESTINATION,
)
