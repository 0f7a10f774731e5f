"""Sizes of messages: counts and bytes by powers of two."""

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
    plot=Heat("at_least", ("destination",), "messages"),
    nothing="The journal holds no message.",
)
