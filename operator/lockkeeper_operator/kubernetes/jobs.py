"""Runs: Jobs, and whatever else runs to its end, as they are at present."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockkeeper_api.analysis.status import RunState
from lockkeeper_operator.kubernetes.manifests import Manifest

JOB_LABEL = "batch.kubernetes.io/job-name"
"""On pods of a Job."""
LINES = 5
"""Of a failed pod's log that are told."""
ENDED: frozenset[RunState] = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Run:
    """One run; times are RFC 3339's, None where they have not come or are not told."""

    name: str
    kind: str
    uid: str
    state: RunState
    created: str
    started: str | None = None
    finished: str | None = None
    message: str = ""
    progress: Mapping[str, Any] = field(default_factory=dict)
    trouble: str = ""
    idle: str = ""

    @property
    def ended(self) -> bool:
        """Whether it will not change any more."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a run is, as the object says that carries it out."""

    state: RunState
    started: str | None = None
    finished: str | None = None
    message: str = ""


def runs_of_jobs(children: Iterable[Manifest]) -> tuple[Run, ...]:
    """Return the runs of the Jobs among *children*, the latest first."""
    jobs = (child for child in children if child["kind"] == "Job")
    return latest_first(run_with(job, outcome_of_job(job.get("status") or {})) for job in jobs)


def failures_of(pods: Iterable[Manifest]) -> dict[str, str]:
    """Return the last words of pods that failed, by the names of their Jobs; the latest counts."""
    found = {}
    for pod in sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp", ""))):
        for ended in ends_of(pod):
            if ended.get("exitCode"):
                lines = str(ended.get("message", "")).strip().splitlines()[-LINES:]
                job = pod["metadata"].get("labels", {}).get(JOB_LABEL, "")
                found[job] = "\n".join(lines) or f"exit code {ended['exitCode']}"
    return found


def ends_of(pod: Manifest) -> Iterator[Manifest]:
    """Yield how the containers of a pod ended, as far as they have."""
    for container in pod.get("status", {}).get("containerStatuses", ()):
        ended = container.get("state", {}).get("terminated")
        if ended is not None:
            yield ended


def runs_of_snapshots(children: Iterable[Manifest]) -> tuple[Run, ...]:
    """Return the runs of the VolumeSnapshots among *children*, the latest first.

    One that is being deleted counts no more: its driver may take its time.
    """
    snapshots = (
        child
        for child in children
        if child["kind"] == "VolumeSnapshot" and "deletionTimestamp" not in child["metadata"]
    )
    return latest_first(
        run_with(each, outcome_of_snapshot(each.get("status") or {})) for each in snapshots
    )


def outcome_of_snapshot(status: Manifest) -> Outcome:
    """Return what the status of a VolumeSnapshot says; after an error its controller goes on."""
    made = status.get("creationTime")
    if status.get("readyToUse"):
        return Outcome("Succeeded", made, made)
    return Outcome("Running", made, message=(status.get("error") or {}).get("message", ""))


def run_with(manifest: Manifest, outcome: Outcome) -> Run:
    """Return the run that *manifest* carries out."""
    metadata = manifest["metadata"]
    return Run(
        name=metadata["name"],
        kind=manifest["kind"],
        uid=metadata["uid"],
        state=outcome.state,
        created=metadata.get("creationTimestamp", ""),
        started=outcome.started,
        finished=outcome.finished,
        message=outcome.message,
    )


def latest_first(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return *runs* in the order of their creation, the latest first."""
    return tuple(sorted(runs, key=lambda run: (run.created, run.name), reverse=True))


def outcome_of_job(status: Manifest) -> Outcome:
    """Return what the status of a Job says."""
    started = status.get("startTime")
    for condition in status.get("conditions", ()):
        if condition["status"] != "True":
            continue
        at = condition.get("lastTransitionTime")
        if condition["type"] == "Complete":
            return Outcome("Succeeded", started, status.get("completionTime", at))
        if condition["type"] == "Failed":
            return Outcome("Failed", started, at, condition.get("message", ""))
    return Outcome("Running" if status.get("ready") else "Submitted", started)
