"""Network of brokers: one row for each pair of brokers that a bridge, or messages, lead between."""

from lockkeeper_analytics.reports.report import Column, Report, Unit

REPORT = Report(
    name="network",
    title="Network",
    question="Which brokers forward messages to which, and where do these wait?",
    columns=(
        Column("source", "From"),
        Column("target", "To"),
        Column("bridges", "Bridge", Unit.LIST),
        Column("forwarded", "Forwarded", Unit.COUNT),
        Column("messages", "In records", Unit.COUNT),
        Column("waiting", "Waiting", Unit.COUNT),
        Column("stranded", "Stranded", Unit.COUNT),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
    ),
    plots=(),
    nothing="No message came over a bridge, and no bridge is told of.",
    note="Forwarded is what brokers counted; records have what was written before it was "
    "acknowledged. Stranded messages came over the bridge and wait in queues without a consumer.",
)
