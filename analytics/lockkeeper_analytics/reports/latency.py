"""Latency: time from a message's arrival at the broker to its acknowledgement."""

from lockkeeper_analytics.reports.messages import OF_DESTINATION
from lockkeeper_analytics.reports.report import Column, Report, Unit
from lockkeeper_analytics.reports.sources import trusted


def _bounded(at: str, heading: str) -> Column:
    bounds = (f"{at}_at_least_ms", f"{at}_at_most_ms")
    return Column(f"{at}_ms", heading, Unit.MILLISECONDS, bounds=bounds)


REPORT = Report(
    name="latency",
    title="Latency",
    question="How long was it from a message's arrival to its acknowledgement?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("acknowledged", "Messages", Unit.COUNT),
        _bounded("p50", "Half within"),
        Column("p90_ms", "90 %", Unit.MILLISECONDS),
        _bounded("p99", "99 %"),
        Column("max_ms", "Longest", Unit.MILLISECONDS),
        Column("p50_ms", "50 % to 99 % to longest", Unit.RANGE, ends=("p99_ms", "max_ms")),
        Column("source", "From"),
    ),
    plots=(),
    nothing="Nothing was acknowledged.",
    shown=trusted,
    note="The scale is logarithmic; point at a figure to see its bounds.",
    messages=OF_DESTINATION,
)
