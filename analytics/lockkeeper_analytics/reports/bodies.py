"""Bodies of messages: which fields they have, told by a sample, without a value."""

from lockkeeper_analytics.reports.messages import OF_DESTINATION
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="bodies",
    title="Bodies",
    question="What is in the bodies of each destination's messages?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("format", "Format"),
        Column("field", "Field", Unit.CODE),
        Column("types", "Types"),
        Column("messages", "Sampled bodies with it", Unit.COUNT, Tone.CAME),
        Column("share", "Share", Unit.SHARE),
    ),
    plots=(),
    nothing="No body was sampled: messages have none, or none that is short enough.",
    note="Names and types of a sample, no values. A name that may be a value is shown as *, one "
    "that a mask hides as ***.",
    messages=OF_DESTINATION,
    is_optional=True,
)
