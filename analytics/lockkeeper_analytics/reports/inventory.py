"""Inventory of the journal: records and bytes of each kind, and the time they span."""

from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="inventory",
    title="The journal",
    question="What is in the journal?",
    columns=(
        Column("directory", "Directory", Unit.CODE),
        Column("kind", "Record"),
        Column("records", "Records", Unit.COUNT, Tone.CAME),
        Column("bytes", "Size", Unit.BYTES),
        Column("files", "Files", Unit.COUNT),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
    ),
    plots=(),
    nothing="The journal holds no record.",
)
