"""The status of a backup: three conditions, as kstatus reads them, and the last result."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from lockkeeper_api.journal_backup import JournalBackupStatus
from lockkeeper_api.status import Condition
from lockkeeper_operator.backups.names import SCHEDULED_ANNOTATION
from lockkeeper_operator.backups.observed import ObservedBackup, is_hidden, remembered_run
from lockkeeper_operator.backups.reports import reports_of
from lockkeeper_operator.backups.status import ready, reconciling, stalled
from lockkeeper_operator.backups.status.standing import Standing, standing_of
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.kubernetes.children.steps import Refused, Step
from lockkeeper_operator.kubernetes.conditions import dated
from lockkeeper_operator.kubernetes.jobs import ENDED, Run
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
    latest = _latest(runs, subject)
    is_kept = latest is not None or is_hidden(observed, subject)
    previous = observed.status if is_kept else _without_vanished(observed.status, subject)
    standing = standing_of(steps, refused, latest, reports, subject, previous)
    done = next((run for run in runs if run.state == "Succeeded"), None)
    succeeded = _last_successful_time(done, previous)
    # One that is there may be older than the last, which is gone.
    last = done if done is not None and done.finished == succeeded else None
    result = None if last is None else reports.results.get(last.name)
    status = JournalBackupStatus(
        observed_generation=generation,
        conditions=_dated(standing, previous, generation, now),
        state=_state(latest, standing, previous, is_kept),
        run=latest.name if latest else remembered_run(previous) or None,
        job=_name_of(latest, "Job", previous.get("job")),
        snapshot=_name_of(done or latest, "VolumeSnapshot", previous.get("snapshot")),
        last_schedule_time=_last_schedule_time(observed),
        last_successful_time=succeeded,
        result=result or previous.get("result"),
    )
    found: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return None if found == observed.status else found


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


def _latest(runs: tuple[Run, ...], subject: BackupSubject) -> Run | None:
    """Return the run that is told of: the latest, without a schedule the one that is asked for.

    Snapshots of an earlier spec stay, and are older than a run that somebody has removed.
    """
    single = subject.spec.schedule is None
    return next((run for run in runs if not single or subject.is_run(run.name)), None)


def _without_vanished(previous: Mapping[str, Any], subject: BackupSubject) -> Mapping[str, Any]:
    """Return *previous* without what it says of a run that had not ended: it is gone.

    A snapshot that never was can be used for nothing. Of a single backup the run is remembered all
    the same: it is not begun again.
    """
    run = remembered_run(previous)
    if not run or previous.get("state") in ENDED:
        return previous
    fields = ("snapshot",) if subject.spec.schedule is None else ("run", "job", "snapshot")
    return {name: said for name, said in previous.items() if name not in fields or said != run}


def _last_successful_time(done: Run | None, previous: Mapping[str, Any]) -> str | None:
    """Return when a run succeeded last, also when it is removed and one before it is there."""
    times = (None if done is None else done.finished, previous.get("lastSuccessfulTime"))
    return max(filter(None, times), default=None)


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


def _state(
    latest: Run | None, standing: Standing, previous: Mapping[str, Any], is_kept: bool
) -> str:
    """Return the state of the latest run, also when that is not seen, or has ended and is gone."""
    if latest is not None:
        return latest.state
    stays = remembered_run(previous) and (is_kept or previous.get("state") in ENDED)
    return str(previous["state"]) if stays else standing.reason


def _dated(
    standing: Standing, previous: Mapping[str, Any], generation: int, now: str
) -> list[Condition]:
    return dated([condition(standing) for condition in CONDITIONS], dict(previous), generation, now)
