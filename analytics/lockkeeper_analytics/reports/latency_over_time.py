"""Latency over time: the time to acknowledgement in each cell."""

from lockkeeper_analytics.reports.messages import OF_CELL
from lockkeeper_analytics.reports.report import Column, Lines, Report, Series, Tone, Unit
from lockkeeper_analytics.reports.sources import trusted

REPORT = Report(
    name="latency_over_time",
    title="Latency over time",
    question="When did acknowledgements take long?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("time", "From", Unit.TIME),
        Column("seconds", "Seconds", Unit.COUNT),
        Column("source", "Source"),
        Column("acknowledged", "Messages", Unit.COUNT),
        Column("p50_ms", "Half within", Unit.MILLISECONDS),
        Column("p99_ms", "99 %", Unit.MILLISECONDS, Tone.HIGH),
    ),
    plots=(
        Lines(
            (
                Series("p99_ms", "99 % within", Tone.HIGH, floor="p50_ms"),
                Series("p50_ms", "half within", Tone.MIDDLE),
            ),
            "time to acknowledgement (logarithmic)",
            unit=Unit.MILLISECONDS,
            together="max",
            logarithmic=True,
        ),
    ),
    nothing="Nothing was acknowledged.",
    shown=trusted,
    note="Half and 99 % of the messages acknowledged then took no longer.",
    messages=OF_CELL,
)
