"""Standing of a backup: done, on its way, or waiting for a person."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lockkeeper_operator.backups.observed import REMOVED, remembered_run, was_begun
from lockkeeper_operator.backups.reports import Reports
from lockkeeper_operator.backups.snapshots import INVALID_SCHEDULE
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.kubernetes.children.steps import Conflict, Refused, Step, Wait
from lockkeeper_operator.kubernetes.jobs import Run

STALLING = (
    "TargetIsJournal",
    "ClaimExclusive",
    "SnapshotsUnknown",
    "Suspended",
    INVALID_SCHEDULE,
)
"""Reasons to wait that pass only when somebody changes something."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One of the three, and why: a word for tools, a sentence for people."""

    kind: Literal["Ready", "Reconciling", "Stalled"]
    reason: str
    message: str


def standing_of(
    steps: Iterable[Step],
    refused: Iterable[Refused],
    latest: Run | None,
    reports: Reports,
    subject: BackupSubject,
    previous: Mapping[str, Any],
) -> Standing:
    """Return where a backup stands; *latest* is its run, *previous* its status so far."""
    hindered = _hindrance(steps, refused)
    if hindered is not None:
        return hindered
    if latest is None:
        return _at_rest(subject, previous)
    if not latest.ended:
        return Standing("Reconciling", latest.state, _going_on(latest, reports))
    if latest.state == "Failed":
        why = reports.failures.get(latest.name) or latest.message
        return Standing("Stalled", "Failed", f"Job {latest.name}: {why}")
    return Standing("Ready", "BackedUp", f"{latest.kind} {latest.name} has made a backup")


def _going_on(run: Run, reports: Reports) -> str:
    """Return what a run does at present."""
    if run.kind != "Job":
        said, trouble = f"{run.kind} {run.name} is not ready to use yet", run.message
    elif run.state == "Running":
        return f"Job {run.name} copies the journal"
    else:
        trouble = reports.troubles.get(run.name, "")
        said = f"Job {run.name} waits for its pod to run"
    return f"{said}: {trouble}" if trouble else said


def _hindrance(steps: Iterable[Step], refused: Iterable[Refused]) -> Standing | None:
    """Return what keeps the backup from being begun, None for nothing."""
    for each in refused:
        return Standing("Stalled", "Refused", f"{each.kind} {each.name}: {each.message}")
    for step in steps:
        if isinstance(step, Conflict):
            message = f"{step.kind} {step.name} belongs to {step.owner}"
            return Standing("Stalled", "Conflict", message)
        if isinstance(step, Wait):
            kind: Literal["Stalled", "Reconciling"] = (
                "Stalled" if step.reason in STALLING else "Reconciling"
            )
            return Standing(kind, step.reason, step.message)
    return None


def _at_rest(subject: BackupSubject, previous: Mapping[str, Any]) -> Standing:
    """Return the standing where no run is there: none came yet, or it was removed."""
    state = previous.get("state")
    run = f"{'Job' if previous.get('job') else 'VolumeSnapshot'} {remembered_run(previous)}"
    if state == "Failed":
        return Standing("Stalled", "Failed", f"{run} failed, and has been removed")
    if state == "Succeeded":
        return Standing("Ready", "BackedUp", f"{run} has made a backup")
    if subject.spec.schedule is not None:
        return Standing("Ready", "Scheduled", "the schedule decides when backups begin")
    if was_begun(previous, subject):
        return Standing("Stalled", REMOVED, f"{run} was removed before its end was seen")
    return Standing("Reconciling", "NotBegun", "no backup has begun")
