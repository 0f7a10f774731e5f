"""Figures of the operator, for Prometheus."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from lockkeeper_operator.analyses.metrics import AnalysisFigures, AnalysisMetrics

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """All figures of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile = Histogram(
            "lockkeeper_operator_reconcile_seconds",
            "Time that one look at a resource took.",
            ("kind",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.latency = Histogram(
            "lockkeeper_operator_reconcile_latency_seconds",
            "Time from when a resource fell due until the look at it was over.",
            ("kind",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.errors = Counter(
            "lockkeeper_operator_reconcile_errors",
            "Looks at a resource that failed, and are repeated.",
            ("kind", "cause"),
            registry=self.registry,
        )
        self.watches = Counter(
            "lockkeeper_operator_watches",
            "Lists and watches that were begun.",
            ("kind", "begun"),
            registry=self.registry,
        )
        self.leads = Gauge(
            "lockkeeper_operator_leads", "1 for the replica that leads.", registry=self.registry
        )

        self.analyses = AnalysisMetrics(self.registry)

    def watch(self, source: "Source | AnalysisFigures") -> None:
        """Ask *source* for figures whenever somebody looks."""
        self.registry.register(source)

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        return generate_latest(self.registry)


Figures = Callable[[], dict[str, float]]
Requests = Callable[[], dict[tuple[str, str], int]]


class Source:
    """Figures that are counted elsewhere: queues, objects that are known, requests."""

    def __init__(self, queues: Figures, objects: Figures, requests: Requests) -> None:
        self._queues, self._objects, self._requests = queues, objects, requests

    def collect(self) -> Iterable[Metric]:
        """Yield the figures."""
        depth = GaugeMetricFamily(
            "lockkeeper_operator_queue_depth", "Keys that are due.", labels=["queue"]
        )
        for name, value in self._queues().items():
            depth.add_metric([name], value)
        objects = GaugeMetricFamily(
            "lockkeeper_operator_objects", "Objects that are known.", labels=["kind"]
        )
        for name, value in self._objects().items():
            objects.add_metric([name], value)
        requests = CounterMetricFamily(
            "lockkeeper_operator_api_requests",
            "Answers of the API server.",
            labels=["verb", "status"],
        )
        for key, count in self._requests().items():
            requests.add_metric(list(key), count)
        return depth, objects, requests
