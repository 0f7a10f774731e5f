"""Figures of analyses follow from their statuses, and go when they go."""

from typing import Any

from lockkeeper_operator.analyses.metrics import AnalysisFigures
from lockkeeper_operator.process.metrics import Metrics

BEGAN, ENDED = "2027-03-01T03:00:00Z", "2027-03-01T03:01:30Z"
ENDED_SECONDS = 1_803_870_090.0
OWN = {"namespace": "shop", "analysis": "nightly"}


def run(state: str, name: str = "nightly-1") -> dict[str, Any]:
    found = {"name": name, "state": state, "started": BEGAN}
    return found if state == "Running" else {**found, "finished": ENDED}


def analysis(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "nightly", "namespace": "shop"}, "status": status}


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    found: float | None = metrics.registry.get_sample_value(name, labels)
    return found


def test_statuses_tell_of_the_last_run_that_ended() -> None:
    there = [
        analysis(
            state="Running",
            lastSuccessfulTime=ENDED,
            history=[run("Running", "nightly-3"), run("Failed", "nightly-2"), run("Succeeded")],
        )
    ]
    metrics = Metrics()
    metrics.watch(AnalysisFigures(lambda: there))
    assert value(metrics, "lockkeeper_analyses", state="Running") == 1
    assert value(metrics, "lockkeeper_analysis_last_run_failed", **OWN) == 1
    assert value(metrics, "lockkeeper_analysis_last_run_seconds", **OWN) == 90
    at = value(metrics, "lockkeeper_analysis_last_success_timestamp_seconds", **OWN)
    assert at == ENDED_SECONDS
    there.clear()
    assert value(metrics, "lockkeeper_analysis_last_run_failed", **OWN) is None


def test_an_analysis_that_nobody_has_looked_at_has_no_figures_but_its_state() -> None:
    metrics = Metrics()
    metrics.watch(AnalysisFigures(lambda: [analysis(), analysis(history=[run("Running")])]))
    assert value(metrics, "lockkeeper_analyses", state="Unknown") == 2
    assert value(metrics, "lockkeeper_analysis_last_run_failed", **OWN) is None


def test_runs_are_counted_by_namespace_and_how_they_ended() -> None:
    metrics = Metrics()
    for state in ("Succeeded", "Failed", "Succeeded"):
        metrics.analyses.ended("shop", run(state))
    assert value(metrics, "lockkeeper_analysis_runs_total", namespace="shop", result="failed") == 1
    many = value(metrics, "lockkeeper_analysis_runs_total", namespace="shop", result="succeeded")
    assert many == 2
    assert value(metrics, "lockkeeper_analysis_run_seconds_sum", result="succeeded") == 180


def test_broken_rules_are_those_of_the_last_run_that_told() -> None:
    judged = {**run("Succeeded", "nightly-2"), "brokenRules": ["lag > 1h: ORDERS"]}
    metrics = Metrics()
    there = [analysis(history=[run("Failed", "nightly-3"), judged, run("Succeeded")])]
    metrics.watch(AnalysisFigures(lambda: there))
    assert value(metrics, "lockkeeper_analysis_broken_rules", **OWN) == 1
    there[0]["status"]["history"].remove(judged)
    assert value(metrics, "lockkeeper_analysis_broken_rules", **OWN) is None
