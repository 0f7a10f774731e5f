"""Partitions of streams: what is kept of each, and whether the load is spread over them."""

from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

REPORT = Report(
    name="partitions",
    title="Partitions of streams",
    question="What do streams keep, and does one partition have most of the messages?",
    columns=(
        Column("stream", "Stream", Unit.DESTINATION),
        Column("partition", "Partition", Unit.COUNT),
        Column("messages", "Messages", Unit.COUNT, Tone.CAME),
        Column("share", "Share", Unit.SHARE),
        Column("of", "Partitions", Unit.COUNT),
        Column("bytes", "Size", Unit.BYTES),
        Column("first_offset", "First offset", Unit.COUNT),
        Column("end_offset", "Next offset", Unit.COUNT),
        Column("oldest_at", "Oldest", Unit.TIME),
        Column("newest_at", "Newest", Unit.TIME),
        Column("hot", "Too much for one", Unit.FLAG),
    ),
    plots=(
        Bars(
            ("directory", "stream", "partition"),
            (Series("messages", "messages", Tone.CAME),),
            "messages kept",
        ),
    ),
    nothing="There are no streams.",
    note="Streams keep messages until retention ends them, whoever has consumed them.",
    calm=lambda rows: (
        "" if any(row["hot"] for row in rows) else "No partition is too much for one consumer."
    ),
)
