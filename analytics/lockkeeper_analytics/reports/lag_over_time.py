"""Lag over time: what groups had not consumed at the end of each cell."""

from lockkeeper_analytics.reports.report import Column, Lines, Report, Series, Tone, Unit

_EACH = ("directory", "consumer_group", "stream")

REPORT = Report(
    name="lag_over_time",
    title="Lag of groups over time",
    question="How far was each consumer group behind, and when?",
    columns=(
        Column("consumer_group", "Group", Unit.CODE),
        Column("stream", "Stream", Unit.DESTINATION),
        Column("time", "From", Unit.TIME),
        Column("waiting", "To consume at its end", Unit.COUNT, Tone.WARM),
        Column("oldest_ms", "Oldest", Unit.MILLISECONDS),
    ),
    plots=(
        Lines(
            (Series("waiting", "to consume", Tone.WARM, floor=""),),
            "messages to consume (lag)",
            each=_EACH,
            together="sum",
            all_of="All groups",
        ),
        Lines(
            (Series("oldest_ms", "age of the oldest", Tone.WARM, floor=""),),
            "age of the oldest message to consume",
            each=_EACH,
            unit=Unit.MILLISECONDS,
            together="max",
            all_of="All groups",
        ),
    ),
    nothing="No consumer group has an offset.",
)
