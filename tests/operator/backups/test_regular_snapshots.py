"""VolumeSnapshots on a schedule: made when they are due, so many kept."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lockkeeper_api.cluster.bootstrap import Bootstrap
from lockkeeper_api.journal_backup import BackupSchedule, JournalBackupSpec
from lockkeeper_operator.backups.desired.snapshot import build_regular
from lockkeeper_operator.backups.observed import ObservedBackup
from lockkeeper_operator.backups.plan import backup_plan
from lockkeeper_operator.backups.schedule import latest_due, next_due
from lockkeeper_operator.backups.status.status import backup_status
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.brokers.desired.first_journal import BACKUP_MISSING, first_journal
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.steps import Create, Delete, Step
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.kubernetes.times import written

DAILY = {"cron": "0 3 * * *"}
THREE = datetime(2027, 3, 1, 3, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
CREATED = written(THREE - 10 * DAY)


SPEC: dict[str, Any] = {"broker": "orders", "target": {"snapshot": {}}, "schedule": DAILY}


def subject(**spec: Any) -> BackupSubject:
    said = {**SPEC, **spec}
    return BackupSubject(
        name="nightly",
        namespace="shop",
        uid="uid",
        created=CREATED,
        spec=JournalBackupSpec.model_validate(said),
        journal=Journal(claim="orders-journal"),
        user=10001,
        default_image="example/lockkeeper:1",
    )


SUBJECT = subject()


def snapshot(due: datetime, **status: Any) -> tuple[Key, Manifest]:
    target = SUBJECT.spec.target.snapshot
    assert target is not None
    manifest = stamped(build_regular(SUBJECT, target, due))
    own = {"uid": written(due), "creationTimestamp": written(due)}
    found = {**manifest, "metadata": {**manifest["metadata"], **own}, "status": status}
    return key_of(found), found


def usable(due: datetime) -> tuple[Key, Manifest]:
    return snapshot(due, readyToUse=True, creationTime=written(due))


def seen(*there: tuple[Key, Manifest], now: datetime = THREE, **status: Any) -> ObservedBackup:
    return ObservedBackup(dict(there), status=status, knows_snapshots=True, now=now)


def made(steps: Sequence[Step]) -> list[str]:
    return [step.manifest["metadata"]["name"] for step in steps if isinstance(step, Create)]


def deleted(steps: Sequence[Step]) -> list[str]:
    return [step.name for step in steps if isinstance(step, Delete)]


def told(found: ObservedBackup) -> dict[str, Any]:
    status = backup_status(found, SUBJECT, backup_plan(found, SUBJECT), (), 2, written(THREE))
    assert status is not None
    return status


def test_a_snapshot_is_made_when_it_is_due_and_only_once() -> None:
    (step,) = backup_plan(seen(), SUBJECT)
    assert isinstance(step, Create)
    assert step.manifest["metadata"]["name"] == "nightly-backup-202703010300"
    assert "ownerReferences" not in step.manifest["metadata"]
    assert backup_plan(seen(now=THREE - MINUTE), SUBJECT) == ()
    busy = seen(snapshot(THREE), now=THREE + MINUTE)
    assert backup_plan(busy, SUBJECT) == ()
    ready = seen(usable(THREE), now=THREE + 2 * MINUTE)
    assert backup_plan(ready, SUBJECT) == ()
    # One that somebody deletes is not made again.
    status = told(ready)
    assert status["lastScheduleTime"] == written(THREE)
    assert backup_plan(seen(now=THREE + 3 * MINUTE, **status), SUBJECT) == ()
    assert made(backup_plan(seen(now=THREE + DAY, **status), SUBJECT)) == [
        "nightly-backup-202703020300"
    ]


def test_one_that_could_not_begin_for_an_hour_is_left_out() -> None:
    assert made(backup_plan(seen(now=THREE + 59 * MINUTE), SUBJECT)) == [
        "nightly-backup-202703010300"
    ]
    assert backup_plan(seen(now=THREE + HOUR), SUBJECT) == ()
    # Nor is what was due before there was a schedule.
    late = replace(SUBJECT, created=written(THREE + MINUTE))
    assert backup_plan(seen(now=THREE + 2 * MINUTE), late) == ()
    suspended = subject(suspend=True)
    assert backup_plan(seen(), suspended) == ()


def test_one_at_a_time_is_made_and_a_stuck_one_stops_the_others_for_an_hour_only() -> None:
    hourly = subject(schedule={"cron": "@hourly"})
    quarterly = subject(schedule={"cron": "*/15 * * * *"})
    stuck = snapshot(THREE, error={"message": "the driver is busy"})
    status = told(seen(stuck))
    assert status["conditions"][1]["status"] == "True"
    assert backup_plan(seen(stuck, now=THREE + 15 * MINUTE, **status), quarterly) == ()
    (step,) = made(backup_plan(seen(stuck, now=THREE + HOUR, **status), hourly))
    assert step == "nightly-backup-202703010400"


def test_as_many_usable_snapshots_are_kept_as_are_wanted() -> None:
    three = subject(keep=3)
    days = [usable(THREE - day * DAY) for day in range(5)]
    status = told(seen(*days))
    assert deleted(backup_plan(seen(*days, **status), three)) == [
        "nightly-backup-202702260300",
        "nightly-backup-202702250300",
    ]
    # Those that never became usable go with their time, and take nobody's place.
    broken = snapshot(THREE - DAY - HOUR)
    assert deleted(backup_plan(seen(*days[:3], broken, **status), three)) == []
    assert deleted(backup_plan(seen(*days[:2], broken, *days[2:], **status), three)) == [
        "nightly-backup-202702260300",
        "nightly-backup-202702250300",
    ]
    assert deleted(backup_plan(seen(*days[:2], **status), three)) == []
    key, other = usable(THREE - 9 * DAY)
    owner = {"kind": "Velero", "name": "other", "uid": "o", "controller": True}
    foreign = {**other, "metadata": {**other["metadata"], "ownerReferences": [owner]}}
    assert deleted(backup_plan(seen(*days[:3], (key, foreign), **status), three)) == []


def going(due: datetime) -> tuple[Key, Manifest]:
    """Return a snapshot that somebody deletes, whose driver takes its time."""
    key, found = usable(due)
    ends = {"deletionTimestamp": written(THREE), "finalizers": ["snapshot.storage.kubernetes.io/x"]}
    return key, {**found, "metadata": {**found["metadata"], **ends}}


def test_a_snapshot_that_is_being_deleted_is_none_of_those_that_are_kept() -> None:
    two, told_last = subject(keep=2), written(THREE)
    days = [usable(THREE - day * DAY) for day in range(4)]
    there = seen(days[0], going(THREE - DAY), days[2], lastScheduleTime=told_last)
    assert deleted(backup_plan(there, two)) == []
    there = seen(days[0], going(THREE - DAY), *days[2:], lastScheduleTime=told_last)
    assert deleted(backup_plan(there, two)) == ["nightly-backup-202702260300"]
    # The one that goes is not deleted again, nor made again while it goes.
    there = seen(days[0], days[1], going(THREE - 2 * DAY), lastScheduleTime=told_last)
    assert backup_plan(there, two) == ()
    assert backup_plan(seen(going(THREE)), two) == ()


def test_the_status_names_no_snapshot_that_is_being_deleted_beside_one_that_stays() -> None:
    found = told(seen(going(THREE), usable(THREE - DAY)))
    assert found["snapshot"] == "nightly-backup-202702280300"
    assert found["lastScheduleTime"] == written(THREE)


def test_the_status_names_the_latest_that_can_be_used() -> None:
    found = told(seen(usable(THREE - DAY), snapshot(THREE)))
    assert found["snapshot"] == "nightly-backup-202702280300"
    assert found["lastSuccessfulTime"] == written(THREE - DAY)
    assert found["lastScheduleTime"] == written(THREE)


def test_an_annotation_that_says_no_time_is_not_believed() -> None:
    key, found = usable(THREE)
    found["metadata"]["annotations"]["lockkeeper.dev/scheduled-at"] = "soon"
    assert "lastScheduleTime" not in told(seen((key, found)))


def test_what_is_no_schedule_is_told() -> None:
    for cron in ("61 * * * *", "@sometimes", "0 0 31 2 *"):
        found, wrong = seen(), subject(schedule={"cron": cron})
        steps = backup_plan(found, wrong)
        status = backup_status(found, wrong, steps, (), 2, CREATED)
        assert status is not None
        (stalled,) = [each for each in status["conditions"] if each["status"] == "True"]
        assert (stalled["type"], stalled["reason"]) == ("Stalled", "InvalidSchedule")
        assert f"spec.schedule.cron: {cron}: " in stalled["message"]


def test_a_schedule_has_the_time_of_its_zone() -> None:
    berlin = BackupSchedule.model_validate({**DAILY, "timeZone": "Europe/Berlin"})
    assert latest_due(berlin, THREE - DAY, THREE - HOUR) == THREE - HOUR
    assert latest_due(berlin, THREE - HOUR, THREE - MINUTE) is None
    assert next_due(berlin, THREE) == THREE + 23 * HOUR


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("@hourly", THREE),
        ("@daily", THREE - 3 * HOUR),
        ("@midnight", THREE - 3 * HOUR),
        ("@monthly", THREE - 3 * HOUR),
    ],
)
def test_names_of_schedules_are_understood_as_cron_jobs_do(name: str, due: datetime) -> None:
    schedule = BackupSchedule.model_validate({"cron": name})
    assert latest_due(schedule, due - MINUTE, due) == due
    assert latest_due(schedule, due, due + MINUTE) is None


AUTUMN = datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
"""02:30 in Berlin, for the first time; an hour later it is so again."""


def test_in_an_hour_that_comes_twice_what_is_due_once_is_due_in_the_first() -> None:
    once = BackupSchedule.model_validate({"cron": "30 2 * * *", "timeZone": "Europe/Berlin"})
    a_day_later = AUTUMN + DAY + HOUR
    assert next_due(once, AUTUMN - DAY - MINUTE) == AUTUMN - DAY
    assert next_due(once, AUTUMN - MINUTE) == AUTUMN
    for minutes in (0, 1, 29, 30, 40, 60, 61, 90):
        now = AUTUMN + minutes * MINUTE
        assert next_due(once, now) == a_day_later, now
        assert latest_due(once, AUTUMN - DAY, now) == (AUTUMN if minutes < 60 else None), now
    assert latest_due(once, AUTUMN, AUTUMN + 40 * MINUTE) is None


def test_in_an_hour_that_comes_twice_what_is_due_each_quarter_is_due_in_both() -> None:
    often = BackupSchedule.model_validate({"cron": "*/15 * * * *", "timeZone": "Europe/Berlin"})
    for quarter in range(12):
        due = AUTUMN - HOUR + quarter * 15 * MINUTE
        assert next_due(often, due - MINUTE) == due
        assert latest_due(often, due - HOUR, due + MINUTE) == due


def test_in_an_hour_that_is_left_out_what_is_due_is_due_after_it() -> None:
    once = BackupSchedule.model_validate({"cron": "30 2 * * *", "timeZone": "Europe/Berlin"})
    spring = datetime(2027, 3, 28, 1, tzinfo=UTC)
    assert next_due(once, spring - MINUTE) == spring
    assert latest_due(once, spring - DAY, spring + MINUTE) == spring
    assert next_due(once, spring) == datetime(2027, 3, 29, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "now"),
    [
        ("Europe/Berlin", datetime(2027, 10, 31, 1, 10, tzinfo=UTC)),
        ("America/New_York", datetime(2027, 11, 7, 6, 5, tzinfo=UTC)),
        # Half an hour comes twice there.
        ("Australia/Lord_Howe", datetime(2027, 4, 3, 15, 10, tzinfo=UTC)),
    ],
)
def test_the_next_time_is_never_over(zone: str, now: datetime) -> None:
    for minute in range(60):
        for hour in ("0", "1", "2", "1,2", "1-3", "*", "*/2"):
            said = {"cron": f"{minute} {hour} * * *", "timeZone": zone}
            assert next_due(BackupSchedule.model_validate(said), now) > now, said


def test_a_snapshot_that_never_was_and_is_removed_is_told_no_more() -> None:
    going = told(seen(snapshot(THREE)))
    key, made = snapshot(THREE)
    assert (going["state"], going["snapshot"]) == ("Running", key[1])
    metadata = {**made["metadata"], "deletionTimestamp": written(THREE + MINUTE)}
    ending = seen((key, {**made, "metadata": metadata}), **going)
    for found in (ending, seen(**going)):
        after = told(found)
        assert after["state"] == "Scheduled"
        assert not {"run", "snapshot"} & set(after)
        # A Broker that is to begin with it says that there is none.
        resource = {"metadata": {"name": "nightly"}, "spec": SPEC, "status": after}
        assert first_journal(Bootstrap(backup="nightly"), resource).problem == BACKUP_MISSING
    # One that could be used before it stays the one to begin with.
    both = told(seen(usable(THREE - DAY), snapshot(THREE)))
    assert both["snapshot"] == usable(THREE - DAY)[0][1]
    assert told(seen(usable(THREE - DAY), **both))["state"] == "Succeeded"
    assert told(seen(**both))["snapshot"] == both["snapshot"]
