"""Backups that are VolumeSnapshots: made once, kept, and told when they can be used."""

from dataclasses import replace
from typing import Any

import pytest

from lockkeeper_api.analysis.source import Source
from lockkeeper_api.cluster.bootstrap import Bootstrap
from lockkeeper_api.journal_backup import JournalBackupSpec
from lockkeeper_operator.backups.desired.run import run
from lockkeeper_operator.backups.observed import ObservedBackup
from lockkeeper_operator.backups.plan import backup_plan
from lockkeeper_operator.backups.snapshots import without_others
from lockkeeper_operator.backups.status.status import backup_status
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.brokers.desired.first_journal import first_journal
from lockkeeper_operator.brokers.journal import CLAIM_EXCLUSIVE, Journal, journal_of
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.steps import Create, Wait
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of

JOURNAL = Journal(claim="orders-journal", path="kahadb")
SPEC: dict[str, Any] = {"broker": "orders", "target": {"snapshot": {"className": "fast"}}}
OTHERS: dict[str, Any] = {"snapshot": {"className": "fast"}, "claim": {"name": "backups"}}
SUBJECT = BackupSubject(
    name="before",
    namespace="shop",
    uid="uid",
    created="2027-02-28T12:00:00Z",
    spec=JournalBackupSpec.model_validate(SPEC),
    journal=JOURNAL,
    user=10001,
    default_image="example/lockkeeper:1",
)
NAME = SUBJECT.run
NOW = "2027-03-01T03:00:00Z"
T1, T2, T3 = "2027-03-01T03:00:00Z", "2027-03-02T03:00:00Z", "2027-03-02T04:00:00Z"


def there(**status: Any) -> ObservedBackup:
    """Return what there is once the snapshot was made."""
    manifest = stamped(run(SUBJECT))
    metadata = {**manifest["metadata"], "uid": "u", "creationTimestamp": NOW}
    found: Manifest = {**manifest, "metadata": metadata, "status": status}
    return ObservedBackup({key_of(found): found}, knows_snapshots=True)


def of(target: dict[str, Any]) -> BackupSubject:
    spec = JournalBackupSpec.model_validate({"broker": "orders", "target": target})
    return replace(SUBJECT, spec=spec)


def made_by(subject: BackupSubject, at: str) -> tuple[Key, Manifest]:
    """Return what made a backup for *subject*, and has ended."""
    manifest = stamped(run(subject))
    metadata = {**manifest["metadata"], "uid": at, "creationTimestamp": at}
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": at}
    status = (
        {"conditions": [complete], "completionTime": at}
        if manifest["kind"] == "Job"
        else {"readyToUse": True, "creationTime": at}
    )
    return key_of(manifest), {**manifest, "metadata": metadata, "status": status}


def told(found: ObservedBackup, of: BackupSubject = SUBJECT) -> dict[str, Any]:
    status = backup_status(found, of, backup_plan(found, of), (), 2, NOW)
    assert status is not None
    return status


def true(status: dict[str, Any]) -> dict[str, str]:
    return {
        each["type"]: each["reason"] for each in status["conditions"] if each["status"] == "True"
    }


def test_a_snapshot_is_made_of_the_journals_claim_and_nobody_owns_it() -> None:
    (step,) = backup_plan(ObservedBackup(knows_snapshots=True), SUBJECT)
    assert isinstance(step, Create)
    assert step.manifest["kind"] == "VolumeSnapshot"
    assert step.manifest["spec"] == {
        "source": {"persistentVolumeClaimName": "orders-journal"},
        "volumeSnapshotClassName": "fast",
    }
    assert "ownerReferences" not in step.manifest["metadata"]


def test_it_is_the_backup_as_soon_as_it_can_be_used() -> None:
    busy = told(there(error={"message": "the driver is busy"}))
    assert true(busy) == {"Reconciling": "Running"}
    assert busy["conditions"][0]["message"].endswith("not ready to use yet: the driver is busy")
    made = told(there(readyToUse=True, creationTime=NOW))
    assert (made["state"], made["snapshot"], true(made)) == (
        "Succeeded", NAME, {"Ready": "BackedUp"},
    )  # fmt: skip
    assert made["lastSuccessfulTime"] == NOW
    assert backup_plan(there(readyToUse=True), SUBJECT) == ()
    # One that somebody deletes is not made again.
    gone = ObservedBackup(status=made, knows_snapshots=True)
    assert backup_plan(gone, SUBJECT) == ()
    assert true(told(gone) if backup_status(gone, SUBJECT, (), (), 2, NOW) else made) == {
        "Ready": "BackedUp"
    }


@pytest.mark.parametrize("kind", OTHERS)
def test_a_backup_that_is_removed_beside_an_older_snapshot_is_told_and_not_made_again(
    kind: str,
) -> None:
    older, (key, newer) = made_by(of({"snapshot": {}}), T1), made_by(of({kind: OTHERS[kind]}), T2)
    subject = of({kind: OTHERS[kind]})
    both = ObservedBackup(dict((older, (key, newer))), knows_snapshots=True)
    status = backup_status(both, subject, backup_plan(both, subject), (), 2, T2)
    assert status is not None
    assert (status["state"], status["run"], status["lastSuccessfulTime"]) == (
        "Succeeded", key[1], T2,
    )  # fmt: skip
    # Somebody deletes the newer one: nobody owns the older one, which stays.
    left = ObservedBackup(dict([older]), status=status, knows_snapshots=True)
    assert backup_plan(left, subject) == ()
    later = backup_status(left, subject, (), (), 2, T3) or status
    assert (later["state"], later["run"], later["lastSuccessfulTime"]) == (
        "Succeeded", key[1], T2,
    )  # fmt: skip
    assert true(later) == {"Ready": "BackedUp"}
    assert later["conditions"][0]["message"] == f"{key[0]} {key[1]} has made a backup"
    # A Broker that begins with this backup finds the snapshot that is there.
    assert later["snapshot"] == older[0][1]
    assert backup_plan(replace(left, status=later), subject) == ()
    assert backup_status(replace(left, status=later), subject, (), (), 2, T3) is None
    # Another spec asks for another one all the same.
    (step,) = backup_plan(replace(left, status=later), of({"claim": {"name": "elsewhere"}}))
    assert isinstance(step, Create)


def test_a_backup_that_failed_has_failed_also_beside_an_older_snapshot() -> None:
    older, subject = made_by(of({"snapshot": {}}), T1), of({"claim": {"name": "backups"}})
    key, job = made_by(subject, T2)
    job["status"]["conditions"] = [{"type": "Failed", "status": "True", "lastTransitionTime": T2}]
    observed = ObservedBackup(dict([older, (key, job)]), knows_snapshots=True)
    status = backup_status(observed, subject, (), (), 2, T2)
    assert status is not None
    left = ObservedBackup(dict([older]), status=status, knows_snapshots=True)
    assert backup_plan(left, subject) == ()
    later = backup_status(left, subject, (), (), 2, T3)
    assert later is not None
    assert (later["state"], true(later)) == ("Failed", {"Stalled": "Failed"})
    assert later["conditions"][2]["message"] == f"Job {key[1]} failed, and has been removed"


def test_a_snapshot_that_is_removed_before_it_can_be_used_is_not_made_again() -> None:
    gone = ObservedBackup(status=told(there()), knows_snapshots=True)
    assert backup_plan(gone, SUBJECT) == ()
    after = told(gone)
    assert (after["state"], true(after)) == ("Removed", {"Stalled": "Removed"})
    message = f"VolumeSnapshot {NAME} was removed before its end was seen"
    assert after["conditions"][2]["message"] == message
    assert "snapshot" not in after
    assert backup_plan(replace(gone, status=after), SUBJECT) == ()


NOWHERE = journal_of("before", Source(broker="orders"))
"""Where the journal of a Broker is that was deleted."""
REGULAR: dict[str, Any] = {"schedule": {"cron": "0 3 * * *"}}


@pytest.mark.parametrize("schedule", [{}, REGULAR])
@pytest.mark.parametrize(
    ("journal", "knows", "why"),
    [
        (NOWHERE, True, {"Reconciling": "BrokerMissing"}),
        (JOURNAL, False, {"Stalled": "SnapshotsUnknown"}),
    ],
)
def test_a_snapshot_that_is_not_seen_for_a_while_is_not_removed(
    schedule: dict[str, Any], journal: Journal, knows: bool, why: dict[str, str]
) -> None:
    spec = JournalBackupSpec.model_validate({**SPEC, **schedule})
    subject = replace(SUBJECT, spec=spec)
    going = told(there(), subject)
    assert (going["state"], going["run"], going["snapshot"]) == ("Running", NAME, NAME)
    hidden = replace(subject, journal=journal)
    (step,) = backup_plan(ObservedBackup(status=going, knows_snapshots=knows), hidden)
    assert isinstance(step, Wait)
    later = told(ObservedBackup(status=going, knows_snapshots=knows), hidden)
    assert (later["state"], later["run"], later["snapshot"], true(later)) == (
        "Running", NAME, NAME, why,
    )  # fmt: skip
    # A Broker can begin with it, which the next look at that Broker's claim sees.
    resource = {"metadata": {"name": "before"}, "spec": SPEC, "status": later}
    assert first_journal(Bootstrap(backup="before"), resource).snapshot == NAME
    seen = replace(there(readyToUse=True, creationTime=NOW), status=later)
    assert told(seen, subject)["state"] == "Succeeded"
    # Once nothing hides it, it is not there because somebody has removed it.
    gone = told(ObservedBackup(status=later, knows_snapshots=True), subject)
    assert gone["state"] == ("Scheduled" if schedule else "Removed")
    assert "snapshot" not in gone


def test_what_was_removed_before_the_broker_went_stays_told_as_that() -> None:
    removed = told(ObservedBackup(status=told(there()), knows_snapshots=True))
    hidden = ObservedBackup(status=removed, knows_snapshots=True)
    subject = replace(SUBJECT, journal=NOWHERE)
    assert backup_plan(hidden, subject) == ()
    assert backup_status(hidden, subject, (), (), 2, NOW) is None


def test_a_status_of_an_earlier_release_remembers_its_run_too() -> None:
    for status in ({"snapshot": NAME}, {"job": NAME}):
        told_before = ObservedBackup(status={**status, "state": "Succeeded"}, knows_snapshots=True)
        assert backup_plan(told_before, SUBJECT) == ()
        assert told(told_before)["run"] == NAME
    # While it waited, nothing was made that a snapshot which it found could stand for.
    waited = ObservedBackup(status={"snapshot": NAME, "state": "Suspended"}, knows_snapshots=True)
    (step,) = backup_plan(waited, SUBJECT)
    assert isinstance(step, Create)


def test_a_volume_that_only_one_pod_may_have_can_be_a_snapshot() -> None:
    exclusive = replace(JOURNAL, problem=CLAIM_EXCLUSIVE, why="only a snapshot can be read")
    subject = replace(SUBJECT, journal=exclusive)
    (step,) = backup_plan(ObservedBackup(knows_snapshots=True), subject)
    assert isinstance(step, Create)


def test_a_cluster_without_snapshots_waits_for_another_target() -> None:
    found = ObservedBackup()
    (step,) = backup_plan(found, SUBJECT)
    assert isinstance(step, Wait)
    status = told(found)
    assert true(status) == {"Stalled": "SnapshotsUnknown"}
    assert "use claim or url" in status["conditions"][0]["message"]


def test_a_backup_of_the_same_name_makes_a_snapshot_of_its_own() -> None:
    # The snapshot of the one before is still there: it must not pass for a new one.
    another = replace(SUBJECT, uid="another")
    before = there(readyToUse=True, creationTime=NOW)
    (step,) = backup_plan(before, another)
    assert isinstance(step, Create)
    assert step.manifest["metadata"]["name"] != NAME
    made = stamped(step.manifest)
    own = {"uid": "v", "creationTimestamp": "2027-03-02T03:00:00Z"}
    made["metadata"] |= own
    both = replace(before, children={**before.children, key_of(made): made})
    status = backup_status(both, another, backup_plan(both, another), (), 1, NOW)
    assert status is not None
    assert true(status) == {"Reconciling": "Running"}


def test_snapshots_of_another_claim_are_nobodys_here() -> None:
    found = dict(there(readyToUse=True).children)
    assert without_others(found, "orders-journal") == found
    assert without_others(found, "billing-journal") == {}
