"""Dead letters, by where they were meant for and by cause."""

from lockkeeper_analytics.reports.messages import OF_CAUSE
from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="dead_letters",
    title="Dead letters",
    question="Which messages died, where were they meant for, and why?",
    columns=(
        Column("origin", "Meant for", Unit.DESTINATION),
        Column("cause", "Cause", Unit.CAUSE),
        Column("messages", "Messages", Unit.COUNT, Tone.BAD),
        Column("dead_letter_queue", "Now in"),
        Column("redeliveries", "Redeliveries", Unit.COUNT),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
        Column("example", "Example", Unit.CODE),
    ),
    plots=(),
    nothing="No dead letters.",
    messages=OF_CAUSE,
    is_retried=True,
)
