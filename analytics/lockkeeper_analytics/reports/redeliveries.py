"""Redeliveries of each destination."""

from lockkeeper_analytics.reports.messages import OF_DESTINATION
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="redeliveries",
    title="Redeliveries",
    question="What was delivered more than once?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("redelivered", "Given back", Unit.COUNT, Tone.WARM),
        Column("dispatched", "Deliveries", Unit.COUNT),
        Column("marked", "Marked in the journal", Unit.COUNT),
        Column("highest", "Highest counter", Unit.COUNT),
    ),
    plots=(),
    nothing="No message was delivered again.",
    messages=f"{OF_DESTINATION} AND redeliveries > 0",
)
