"""Garbage: the reasons that keep the journal's files, and what would be freed without them."""

from lockkeeper_analytics.reports.report import Column, Report, Tone, Unit

REPORT = Report(
    name="garbage",
    title="What keeps files",
    question="What keeps each file of the journal on disk, and what would be freed if it went?",
    columns=(
        Column("file", "File", Unit.CODE),
        Column("bytes", "Size", Unit.BYTES),
        Column("live_messages", "Live messages", Unit.COUNT),
        Column("live_bytes", "Live", Unit.BYTES, Tone.CAME),
        Column("garbage_bytes", "Garbage", Unit.BYTES, Tone.FAINT),
        Column("pinned_by", "Kept by", Unit.CAUSE),
        Column("freed", "Goes by itself", Unit.FLAG),
        Column("frees_bytes", "Freed if its own went", Unit.BYTES, Tone.WARM),
    ),
    plots=(),
    nothing="The journal has no file.",
    calm=lambda rows: "The journal has one file, which is written to." if len(rows) < 2 else "",
)
