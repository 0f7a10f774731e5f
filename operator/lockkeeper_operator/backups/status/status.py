"""The status of a backup: three conditions, as kstatus reads them, and the last result."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from lockkeeper_api.journal_backup import JournalBackupStatus
from lockkeeper_api.status import Condition
from lockkeeper_operator.backups.names import SCHEDULED_ANNOTATION
from lockkeeper_operator.backups.observed import ObservedBackup
from lockkeeper_operator.backups.reports import reports_of
from lockkeeper_operator.backups.status import ready, reconciling, stalled
from lockkeeper_operator.backups.status.standing import Standing, standing_of
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.kubernetes.children.steps import Refused, Step
from lockkeeper_operator.kubernetes.conditions import dated
from lockkeeper_operator.kubernetes.jobs import Run
from lockkeeper_operator.kubernetes.times import parsed, written

CONDITIONS = (ready.condition, reconciling.condition, stalled.condition)


def backup_status(
    observed: ObservedBackup,
    subject: BackupSubject,
    steps: Iterable[Step],
    refused: Iterable[Refused],
    generation: int,
    now: str,
) -> dict[str, Any] | None:
    """Return the status to be written, None if it says the same already."""
    runs, reports = observed.runs, reports_of(observed.pods)
    previous = observed.status
    standing = standing_of(steps, refused, runs, reports, subject, previous)
    latest = runs[0] if runs else None
    done = next((run for run in runs if run.state == "Succeeded"), None)
    result = reports.results.get(done.name) if done is not None else None
    status = JournalBackupStatus(
        observed_generation=generation,
        conditions=_dated(standing, previous, generation, now),
        state=_state(latest, standing, previous),
        job=_name_of(latest, "Job", previous.get("job")),
        snapshot=_name_of(done or latest, "VolumeSnapshot", previous.get("snapshot")),
        last_schedule_time=_last_schedule_time(observed),
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
    standing = Standing("Stalled", reason, message)
    conditions = [
        each.model_dump(mode="json", by_alias=True, exclude_none=True)
        for each in _dated(standing, previous, generation, now)
    ]
    found = {**previous, "observedGeneration": generation, "conditions": conditions}
    return None if found == previous else found


def _name_of(latest: Run | None, kind: str, previous: str | None) -> str | None:
    """Return the name of the latest run if it is of that kind, or what it was before."""
    if latest is None:
        return previous
    return latest.name if latest.kind == kind else None


def _last_schedule_time(observed: ObservedBackup) -> str | None:
    """Return when the latest snapshot of the schedule was due, also when it is gone by now."""
    times = [str(observed.status.get("lastScheduleTime") or "")]
    for child in observed.children.values():
        said = child["metadata"].get("annotations", {}).get(SCHEDULED_ANNOTATION, "")
        # Somebody may have written something else there.
        with suppress(ValueError):
            times.append(written(parsed(said)))
    return max(times) or None


def _state(latest: Run | None, standing: Standing, previous: Mapping[str, Any]) -> str:
    """Return the state of the latest Job, also when it is removed by now."""
    if latest is not None:
        return latest.state
    return (
        str(previous["state"])
        if previous.get("job") or previous.get("snapshot")
        else standing.reason
    )


def _dated(
    standing: Standing, previous: Mapping[str, Any], generation: int, now: str
) -> list[Condition]:
    return dated([condition(standing) for condition in CONDITIONS], dict(previous), generation, now)
