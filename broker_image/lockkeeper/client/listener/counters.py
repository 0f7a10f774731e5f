"""Counters of a listener container, as Prometheus has them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

PREFIX = "lockkeeper_listener_"
Fate: TypeAlias = Literal[
    "processed", "failed", "retried", "dead_lettered", "invalid", "rolled_back"
]
"""What a message that was received has come to; by the name of its counter."""


@dataclass(slots=True)
class Counters:
    """Numbers since the container was made; `busy_seconds` is time spent in functions.

    Each message received is, in the end, counted once more, by its `Fate`.
    """

    received: int = 0
    processed: int = 0
    failed: int = 0
    retried: int = 0
    dead_lettered: int = 0
    invalid: int = 0
    rolled_back: int = 0
    recoveries: int = 0
    busy_seconds: float = 0.0
    consumers: int = 0
    consumers_busy: int = 0
    consumers_peak: int = 0

    def note_fate(self, fate: Fate) -> None:
        """Count what a message has come to."""
        setattr(self, fate, getattr(self, fate) + 1)


class Metric(NamedTuple):
    """Name without its prefix, type, meaning, and the counter it shows."""

    name: str
    kind: str
    meaning: str
    counter: str


METRICS = (
    Metric("received", "counter", "Messages handed to the function.", "received"),
    Metric("processed", "counter", "Messages that are done.", "processed"),
    Metric("failed", "counter", "Calls that failed.", "failed"),
    Metric("retried", "counter", "Messages put off by retry.", "retried"),
    Metric("dead_lettered", "counter", "Messages given up by the function.", "dead_lettered"),
    Metric("invalid", "counter", "Messages with a body the function does not take.", "invalid"),
    Metric("rolled_back", "counter", "Messages that come again, uncommitted.", "rolled_back"),
    Metric("recoveries", "counter", "Times a broker had to be looked for again.", "recoveries"),
    Metric("busy_seconds", "counter", "Seconds spent in the function.", "busy_seconds"),
    Metric("consumers", "gauge", "Consumers that there are.", "consumers"),
    Metric("consumers_busy", "gauge", "Consumers that have a message in hand.", "consumers_busy"),
    Metric("consumers_peak", "gauge", "Most consumers that there were.", "consumers_peak"),
)


def exposition(named: dict[str, Counters]) -> str:
    """Return the counters of containers, by their names, in Prometheus' text format 0.0.4."""
    lines = []
    for metric in METRICS:
        name = PREFIX + metric.name + ("_total" if metric.kind == "counter" else "")
        lines.append(f"# HELP {name} {metric.meaning}")
        lines.append(f"# TYPE {name} {metric.kind}")
        for listener, counters in named.items():
            label = listener.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'{name}{{listener="{label}"}} {getattr(counters, metric.counter):g}')
    return "\n".join(lines) + "\n"


class Collector:
    """A collector for a registry of prometheus_client, which is imported when it is asked."""

    def __init__(self, named: dict[str, Counters]) -> None:
        self._named = named

    def collect(self) -> Iterator[Any]:
        """Yield each metric with its value for each container. Raises ImportError."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for metric in METRICS:
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            found = family(PREFIX + metric.name, metric.meaning, labels=["listener"])
            for listener, counters in self._named.items():
                found.add_metric([listener], getattr(counters, metric.counter))
            yield found
