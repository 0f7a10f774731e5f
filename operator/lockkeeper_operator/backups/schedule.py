"""Times at which a schedule asks for snapshots: of those no CronJob can take care."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
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
    following = _times_after(schedule, max(since, now - LATE))
    return max(takewhile(lambda due: due <= now, following), default=None)


def next_due(schedule: BackupSchedule, now: datetime) -> datetime:
    """Return when the next backup is due. Raises ValueError as `latest_due` does."""
    return next(_times_after(schedule, now))


def _times_after(schedule: BackupSchedule, moment: datetime) -> Iterator[datetime]:
    """Yield the times after *moment* at which backups are due, in UTC."""
    cron, zone = _NAMES.get(schedule.cron, schedule.cron), ZoneInfo(schedule.time_zone)
    why = "it is never due"
    try:
        for local in CronSim(cron, moment.astimezone(zone)):
            due = local.astimezone(UTC)
            # Of an hour that comes twice the first one counts, which may be over.
            if due > moment:
                yield due
    except CronSimError as error:
        why = str(error)
    raise ValueError(f"spec.schedule.cron: {schedule.cron}: {why}")
