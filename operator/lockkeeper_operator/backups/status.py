"""The status of a backup: three conditions, as kstatus reads them, and the last result."""

from collections.abc import Iterable, Mapping
from typing import Any

from lockkeeper_api.journal_backup import JournalBackupStatus
from lockkeeper_operator.analyses.runs import Run
from lockkeeper_operator.backups.plan import Seen
from lockkeeper_operator.backups.reports import Reports, reports_of
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.kubernetes.children.steps import Conflict, Refused, Step, Wait
from lockkeeper_operator.kubernetes.conditions import dated
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

STALLING = ("TargetIsJournal", "ClaimExclusive", "Suspended")
"""Reasons to wait that pass only when somebody changes something."""


def backup_status(
    seen: Seen,
    subject: BackupSubject,
    steps: Iterable[Step],
    refused: Iterable[Refused],
    generation: int,
    now: str,
) -> dict[str, Any] | None:
    """Return the status to be written, None if it says the same already."""
    runs, reports = seen.runs, reports_of(seen.pods)
    previous = seen.status
    verdicts = _verdicts(_hindrance(steps, refused), runs, reports, subject, previous)
    latest = runs[0] if runs else None
    done = next((run for run in runs if run.state == "Succeeded"), None)
    result = reports.results.get(done.name) if done is not None else None
    status = JournalBackupStatus(
        observed_generation=generation,
        conditions=dated(verdicts, dict(previous), generation, now),
        state=latest.state if latest is not None else _state(verdicts[0], previous),
        job=latest.name if latest is not None else previous.get("job"),
        last_successful_time=done.finished if done else previous.get("lastSuccessfulTime"),
        result=result or previous.get("result"),
    )
    found: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return None if found == previous else found


def refused_status(
    reason: str, message: str, previous: Mapping[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status of a backup that is not made, None if it is written already.

    Its spec is none, or this operator makes none.
    """
    verdicts = _stalled(reason, message)
    conditions = [
        each.model_dump(mode="json", by_alias=True, exclude_none=True)
        for each in dated(verdicts, dict(previous), generation, now)
    ]
    found = {**previous, "observedGeneration": generation, "conditions": conditions}
    return None if found == previous else found


def _hindrance(steps: Iterable[Step], refused: Iterable[Refused]) -> Verdict | None:
    """Return what keeps the backup from being begun, as the verdict that it is not ready."""
    for each in refused:
        return Verdict("Stalled", YES, "Refused", f"{each.kind} {each.name}: {each.message}")
    for step in steps:
        if isinstance(step, Conflict):
            message = f"{step.kind} {step.name} is {step.owner}'s"
            return Verdict("Stalled", YES, "Conflict", message)
        if isinstance(step, Wait):
            stalled = YES if step.reason in STALLING else NO
            return Verdict("Stalled", stalled, step.reason, step.message)
    return None


def _verdicts(
    hindrance: Verdict | None,
    runs: tuple[Run, ...],
    reports: Reports,
    subject: BackupSubject,
    previous: Mapping[str, Any],
) -> list[Verdict]:
    """Return Ready, Reconciling, Stalled."""
    if hindrance is not None:
        reason, message = hindrance.reason, hindrance.message
        return _stalled(reason, message) if hindrance.status == YES else _busy(reason, message)
    latest = runs[0] if runs else None
    if latest is None:
        return _at_rest(subject, previous)
    if not latest.ended:
        return _busy("Running", f"Job {latest.name} copies")
    if latest.state == "Failed":
        why = reports.failures.get(latest.name) or latest.message
        return _stalled("Failed", f"Job {latest.name}: {why}")
    return _ready("BackedUp", f"Job {latest.name} has made a backup")


def _at_rest(subject: BackupSubject, previous: Mapping[str, Any]) -> list[Verdict]:
    """Return the verdicts where no Job is there: none came yet, or it was cleaned up."""
    state = previous.get("state")
    if state == "Failed":
        return _stalled("Failed", f"Job {previous['job']} failed, and is gone")
    if state == "Succeeded":
        return _ready("BackedUp", f"Job {previous['job']} has made a backup")
    if subject.spec.schedule is not None:
        return _ready("Scheduled", "backups begin by the schedule")
    return _busy("NotBegun", "no backup has begun")


def _state(ready: Verdict, previous: Mapping[str, Any]) -> str:
    """Return the state where no Job is there."""
    return str(previous["state"]) if previous.get("job") else ready.reason


def _ready(reason: str, message: str) -> list[Verdict]:
    return _three(reason, message, YES, NO, NO)


def _busy(reason: str, message: str) -> list[Verdict]:
    return _three(reason, message, NO, YES, NO)


def _stalled(reason: str, message: str) -> list[Verdict]:
    return _three(reason, message, NO, NO, YES)


def _three(reason: str, message: str, *answers: Any) -> list[Verdict]:
    kinds = ("Ready", "Reconciling", "Stalled")
    return [Verdict(kind, answers[at], reason, message) for at, kind in enumerate(kinds)]
