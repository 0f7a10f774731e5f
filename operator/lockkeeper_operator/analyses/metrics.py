"""Figures of analyses, for Prometheus: runs that ended here, and what statuses say at present."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from lockkeeper_operator.kubernetes.jobs import ENDED
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.times import parsed

RUN_SECONDS = (15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 43200.0)
OWN = ("namespace", "analysis")

All = Callable[[], Iterable[Manifest]]


class AnalysisMetrics:
    """What there is to be told of all analyses.

    Counters are by namespace: analyses come and go, and series of theirs would stay for ever.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._runs = Counter(
            "lockkeeper_analysis_runs",
            "Runs of analyses that ended.",
            ("namespace", "result"),
            registry=registry,
        )
        self._seconds = Histogram(
            "lockkeeper_analysis_run_seconds",
            "Time from a run's begin to its end.",
            ("result",),
            buckets=RUN_SECONDS,
            registry=registry,
        )

    def ended(self, namespace: str, run: Mapping[str, Any]) -> None:
        """Count a *run* of a status that has ended now."""
        result = str(run["state"]).lower()
        self._runs.labels(namespace, result).inc()
        seconds = _seconds_of(run)
        if seconds is not None:
            self._seconds.labels(result).observe(seconds)


class AnalysisFigures:
    """Figures that are read from the statuses of *analyses* whenever somebody looks."""

    def __init__(self, analyses: All) -> None:
        self._analyses = analyses

    def collect(self) -> Iterator[Metric]:
        """Yield the figures; of an analysis without an ended run there is only its state."""
        states: Tally[str] = Tally()
        success = GaugeMetricFamily(
            "lockkeeper_analysis_last_success_timestamp_seconds",
            "When a run succeeded last, in seconds since 1970.",
            labels=OWN,
        )
        failed = GaugeMetricFamily(
            "lockkeeper_analysis_last_run_failed",
            "1 if the run that ended last failed, else 0.",
            labels=OWN,
        )
        seconds = GaugeMetricFamily(
            "lockkeeper_analysis_last_run_seconds",
            "How long the run took that ended last.",
            labels=OWN,
        )
        broken = GaugeMetricFamily(
            "lockkeeper_analysis_broken_rules",
            "Rules that the last run that told about rules found broken.",
            labels=OWN,
        )
        for each in self._analyses():
            status = each.get("status", {})
            states[status.get("state") or "Unknown"] += 1
            own = [each["metadata"]["namespace"], each["metadata"]["name"]]
            if "lastSuccessfulTime" in status:
                success.add_metric(own, parsed(status["lastSuccessfulTime"]).timestamp())
            last = next((run for run in status.get("history", ()) if run["state"] in ENDED), None)
            if last is not None:
                failed.add_metric(own, float(last["state"] == "Failed"))
                taken = _seconds_of(last)
                if taken is not None:
                    seconds.add_metric(own, taken)
            judged = next((run for run in status.get("history", ()) if "brokenRules" in run), None)
            if judged is not None:
                broken.add_metric(own, float(len(judged["brokenRules"])))
        yield from (_by_state(states), success, failed, seconds, broken)


def _by_state(states: Tally[str]) -> Metric:
    found = GaugeMetricFamily("lockkeeper_analyses", "Analyses by state.", labels=["state"])
    for state, count in sorted(states.items()):
        found.add_metric([state], count)
    return found


def _seconds_of(run: Mapping[str, Any]) -> float | None:
    """Return how long a run took, None where its status does not tell."""
    started, finished = run.get("started"), run.get("finished")
    if not started or not finished:
        return None
    return (parsed(finished) - parsed(started)).total_seconds()
