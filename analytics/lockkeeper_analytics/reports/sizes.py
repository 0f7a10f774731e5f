"""Sizes of messages: counts and bytes by powers of two."""

from lockkeeper_analytics.reports.messages import OF_DESTINATION
from lockkeeper_analytics.reports.report import Column, Heat, Report, Tone, Unit

REPORT = Report(
    name="sizes",
    title="How big",
    question="How big are the messages of each destination?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("at_least", "From", Unit.BYTES),
        Column("below", "To below", Unit.BYTES),
        Column("messages", "Messages", Unit.COUNT, Tone.CAME),
        Column("bytes", "Together", Unit.BYTES, Tone.MIDDLE),
    ),
    plots=(
        Heat(
            "at_least",
            ("destination",),
            "messages",
            "messages",
            "size in bytes, from",
            "destination",
        ),
    ),
    nothing="The journal holds no message.",
    messages=f"{OF_DESTINATION} AND message_bytes >= {{at_least}} AND message_bytes < {{below}}",
)
