"""Duplicates: messages stored more than once at the same destination."""

from lockkeeper_analytics.reports.messages import OF_DESTINATION
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="duplicates",
    title="Sent twice",
    question="Which messages did their producer send more than once?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("message_id", "Message", Unit.CODE),
        Column("producer", "Connection", Unit.CODE),
        Column("stored", "Stored", Unit.COUNT, Tone.WARM),
        Column("processed_again", "After its end", Unit.COUNT, Tone.BAD),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
    ),
    plots=(),
    nothing="No message was stored twice.",
    note="What came again after its end was processed again; of what came before, one is kept.",
    messages=f"{OF_DESTINATION} AND message_id = {{message_id}}",
)
