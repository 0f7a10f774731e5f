"""Poison messages: those that died after deliveries, some again and again."""

from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="poison",
    title="Poison messages",
    question="Which messages can nobody consume?",
    columns=(
        Column("origin", "Meant for", Unit.DESTINATION),
        Column("message_id", "Message", Unit.CODE),
        Column("dead_lettered", "Died", Unit.COUNT, Tone.BAD),
        Column("retried", "Sent back", Unit.COUNT),
        Column("redeliveries", "Redeliveries", Unit.COUNT, Tone.WARM),
        Column("cause", "Last cause", Unit.CAUSE),
        Column("producer", "Connection", Unit.CODE),
        Column("first_at", "Died first", Unit.TIME),
        Column("last_at", "Died last", Unit.TIME),
    ),
    plot=None,
    nothing="No message died of failed deliveries.",
)
