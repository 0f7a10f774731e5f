"""Runs of an analysis, whatever carries them out, as they are at present."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lockkeeper_api.analysis.status import RunState
from lockkeeper_operator.analyses.names import (
    APACHE_LABEL,
    DRIVER,
    EXECUTOR,
    KUBEFLOW_LABEL,
    PROGRESS_ANNOTATION,
    SPARK_ROLE_LABEL,
)
from lockkeeper_operator.kubernetes.jobs import (
    ENDED,
    JOB_LABEL,
    Outcome,
    Run,
    latest_first,
    outcome_of_job,
    run_with,
)
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.pods import trouble_of

RUN_KINDS = ("Job", "SparkApplication")
LINES = 12
"""Of a driver's log that are told."""
KILLED_FOR_MEMORY = "OOMKilled"
TOO_LITTLE_MEMORY = (
    f"{KILLED_FOR_MEMORY}: more memory than its limit; raise resources.memoryOverhead"
)
KUBEFLOW_STATES: dict[str, RunState] = {
    "RUNNING": "Running",
    "SUCCEEDING": "Running",
    "FAILING": "Running",
    "COMPLETED": "Succeeded",
    "FAILED": "Failed",
}
"""All others are before a driver runs, again or for the first time."""
APACHE_RUNNING = frozenset(
    {
        "DriverStarted", "DriverReady", "InitializedBelowThresholdExecutors", "RunningHealthy",
        "RunningWithBelowThresholdExecutors",
    }
)  # fmt: skip
APACHE_FAILURES = frozenset(
    {
        "Failed", "SchedulingFailure", "DriverEvicted", "DriverStartTimedOut",
        "DriverReadyTimedOut", "ExecutorsStartTimedOut",
    }
)  # fmt: skip
APACHE_ENDS = frozenset({"ResourceReleased", "TerminatedWithoutReleaseResources"})
"""What comes after, whatever it came to."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver's pod: which run it is of, how far it is, and what it said in the end."""

    run: str
    created: str = ""
    progress: Mapping[str, Any] = field(default_factory=dict)
    last_words: str = ""
    trouble: str = ""
    node: str = ""


def runs_of(children: Iterable[Manifest], pods: Iterable[Manifest]) -> tuple[Run, ...]:
    """Return the runs among *children*, the latest first; *pods* are the analysis's."""
    drivers: dict[str, Driver] = {}
    seen = tuple(pods)
    told = map(driver_of, _with_role(seen, DRIVER))
    for driver in sorted(told, key=lambda each: each.created):
        drivers[driver.run] = driver
    idle = idle_executors(seen)
    runs = [
        _run(manifest, drivers.get(manifest["metadata"]["name"]), idle)
        for manifest in children
        if manifest["kind"] in RUN_KINDS
    ]
    return latest_first(runs)


def _with_role(pods: Iterable[Manifest], role: str) -> Iterator[Manifest]:
    for pod in pods:
        if pod["metadata"].get("labels", {}).get(SPARK_ROLE_LABEL) == role:
            yield pod


def idle_executors(pods: Iterable[Manifest]) -> str:
    """Return which executors do not start and why, empty if all do; there is one run at a time."""
    troubles = [
        trouble_of(pod)
        for pod in _with_role(pods, EXECUTOR)
        if pod.get("status", {}).get("phase") == "Pending"
    ]
    reasons = sorted(filter(None, troubles))
    if not reasons:
        return ""
    count = f"{len(reasons)} executor{'s do' if len(reasons) > 1 else ' does'}"
    return f"{count} not start: {', '.join(dict.fromkeys(reasons))}"


def driver_of(pod: Manifest) -> Driver:
    """Return what is to be known of a driver's pod."""
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    names = (labels.get(each, "") for each in (JOB_LABEL, KUBEFLOW_LABEL, APACHE_LABEL))
    return Driver(
        run=next(filter(None, names), ""),
        created=metadata.get("creationTimestamp", ""),
        progress=_progress(metadata.get("annotations", {}).get(PROGRESS_ANNOTATION, "")),
        last_words=_last_words(pod.get("status", {})),
        trouble=trouble_of(pod),
        node=pod.get("spec", {}).get("nodeName", ""),
    )


def _progress(text: str) -> Mapping[str, Any]:
    """Return what a driver wrote, nothing for what it would not write."""
    try:
        said = json.loads(text or "{}")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _last_words(status: Manifest) -> str:
    """Return the last lines of the container that failed."""
    for container in status.get("containerStatuses", ()):
        ended = container.get("state", {}).get("terminated")
        if ended is not None and ended.get("exitCode"):
            lines = str(ended.get("message", "")).strip().splitlines()
            if ended.get("reason") == KILLED_FOR_MEMORY:
                lines.append(TOO_LITTLE_MEMORY)
            return "\n".join(lines[-LINES:]) or f"exit code {ended['exitCode']}"
    return ""


def _run(manifest: Manifest, driver: Driver | None, idle: str) -> Run:
    status = manifest.get("status") or {}
    if manifest["kind"] == "Job":
        outcome = outcome_of_job(status)
    elif "currentState" in status:
        outcome = _of_apache(status)
    else:
        outcome = _of_kubeflow(status)
    run = run_with(manifest, outcome)
    if run.state == "Running":
        run = replace(run, idle=idle)
    return run if driver is None else _told_by(driver, run)


def _told_by(driver: Driver, run: Run) -> Run:
    """Return *run* with what its driver's pod tells besides."""
    if run.state == "Failed":
        return replace(run, message=driver.last_words or run.message)
    if run.ended:
        # What it found of rules stays on its pod.
        return replace(run, progress=driver.progress)
    return replace(run, progress=driver.progress, trouble=driver.trouble)


def _of_kubeflow(status: Manifest) -> Outcome:
    told = status.get("applicationState") or {}
    state = KUBEFLOW_STATES.get(told.get("state", ""), "Submitted")
    finished = status.get("terminationTime") if state in ENDED else None
    started = status.get("lastSubmissionAttemptTime")
    return Outcome(state, started, finished, told.get("errorMessage", ""))


def _of_apache(status: Manifest) -> Outcome:
    current = status["currentState"]
    passed = [current]
    if current.get("currentStateSummary") in APACHE_ENDS:
        history = status.get("stateTransitionHistory") or {}
        # Numbered by text: the last one that tells what it came to counts.
        passed = [history[number] for number in sorted(history, key=int)]
    for told in reversed(passed):
        summary, at = told.get("currentStateSummary", ""), told.get("lastTransitionTime")
        if summary == "Succeeded":
            return Outcome("Succeeded", None, at)
        if summary in APACHE_FAILURES:
            return Outcome("Failed", None, at, told.get("message", ""))
    summary = current.get("currentStateSummary", "")
    if summary in APACHE_ENDS:
        return Outcome("Failed", None, current.get("lastTransitionTime"), "it was ended")
    return Outcome("Running" if summary in APACHE_RUNNING else "Submitted")
