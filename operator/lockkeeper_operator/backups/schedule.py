"""Times at which a schedule asks for snapshots: of those no CronJob can take care."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from lockkeeper_api.journal_backup import BackupSchedule

LATE = timedelta(hours=1)
"""A backup that could not begin for so long is left out, as CronJobs of ours do."""
_NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def latest_due(schedule: BackupSchedule, since: datetime, now: datetime) -> datetime | None:
    """Return the latest time after *since* at which a backup is due and may begin *now*.

    Raises ValueError for what is no schedule, or never due.
    """
    moment = now.astimezone(ZoneInfo(schedule.time_zone))
    # The one that is due right now counts, too.
    following = moment + timedelta(microseconds=1)
    due = _first(schedule, following, reverse=True)
    return due if due > max(since, now - LATE) else None


def next_due(schedule: BackupSchedule, now: datetime) -> datetime:
    """Return when the next backup is due. Raises ValueError as `latest_due` does."""
    return _first(schedule, now.astimezone(ZoneInfo(schedule.time_zone)), reverse=False)


def _first(schedule: BackupSchedule, moment: datetime, reverse: bool) -> datetime:
    try:
        times = CronSim(_NAMES.get(schedule.cron, schedule.cron), moment, reverse=reverse)
        return next(times).astimezone(UTC)
    except (CronSimError, StopIteration) as error:
        why = str(error) or "it is never due"
        raise ValueError(f"spec.schedule.cron: {schedule.cron}: {why}") from error
