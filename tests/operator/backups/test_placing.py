"""Backups of volumes that one node at a time can have: where their pods go, and what is told."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from backup_objects import JOURNAL, NIGHTLY, T1, observed, pod_spec, subject, there, told, true

from lockkeeper_operator.backups.desired.placing import labels_beside
from lockkeeper_operator.backups.desired.run import run
from lockkeeper_operator.backups.observed import ObservedBackup
from lockkeeper_operator.backups.plan import backup_plan
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.backups.subject import labels as labels_of
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.steps import Apply, Create, Delete, Refused
from lockkeeper_operator.kubernetes.children.unwatched import node_of, user_of_claim
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.kubernetes.manifests import Manifest, key_of
from lockkeeper_operator.kubernetes.pods import has_volumes

SHARED = Journal(claim="orders-journal", path="kahadb", group=10001)
OF_ORDERS = {"app.kubernetes.io/name": "lockkeeper", "app.kubernetes.io/instance": "orders"}
MOUNTED = [{"type": "PodReadyToStartContainers", "status": "True"}]
MASTER, STANDBY = {"lockkeeper.dev/role": "master"}, {"lockkeeper.dev/role": "standby"}


def pod(
    name: str, node: str | None = "a", claim: str = "orders-journal", **labels: str
) -> Manifest:
    volumes: list[Any] = [{"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": claim}}]
    spec = {"volumes": volumes, **({"nodeName": node} if node else {})}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.mark.parametrize("schedule", [{}, NIGHTLY])
def test_a_pod_goes_beside_the_brokers_wherever_that_is_by_then(schedule: dict[str, Any]) -> None:
    beside = replace(subject(**schedule), beside={**OF_ORDERS, **MASTER})
    assert pod_spec(beside)["affinity"] == {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {**OF_ORDERS, **MASTER}},
                }
            ]
        }
    }
    # Where the pod moves to changes nothing about it.
    moved = replace(beside, journal=replace(JOURNAL, node="b"))
    assert run(moved) == run(beside)


def test_a_volume_that_somebody_elses_pod_has_is_copied_on_its_node() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    assert pod_spec(subject())["affinity"] == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [field]}]
            }
        }
    }


@pytest.mark.parametrize("journal", [SHARED, replace(JOURNAL, node="")])
def test_a_volume_that_nobody_has_or_everybody_may_have_is_copied_anywhere(
    journal: Journal,
) -> None:
    assert "affinity" not in pod_spec(subject(journal))


def test_the_pod_to_be_beside_is_the_masters_before_others_of_the_broker() -> None:
    master, standby = (
        pod("orders-1", **OF_ORDERS, **MASTER),
        pod("orders-0", **OF_ORDERS, **STANDBY),
    )
    other = pod("analysis")
    waiting = pod("orders-2", None, **OF_ORDERS, **MASTER)
    ended = {**pod("orders-3", **OF_ORDERS, **MASTER), "status": {"phase": "Failed"}}
    elsewhere = pod("billing-0", claim="billing-journal", **MASTER)
    pods = [other, standby, waiting, ended, elsewhere, master]
    assert user_of_claim(pods, "orders-journal") is master
    assert user_of_claim(pods[:-1], "orders-journal") is other
    assert user_of_claim(pods[2:-1], "orders-journal") is None
    assert [node_of(each) for each in (master, waiting, None)] == ["a", "", ""]
    assert labels_beside(master, "orders") == {**OF_ORDERS, **MASTER}
    assert labels_beside(standby, "orders") == OF_ORDERS
    assert labels_beside(master, "billing") == {}
    assert labels_beside(other, "orders") == labels_beside(None, "orders") == {}


def test_a_pod_that_has_mounted_the_volume_is_before_those_that_wait_for_it() -> None:
    waits = {"phase": "Pending", "conditions": [{**MOUNTED[0], "status": "False"}]}
    master = {**pod("orders-0", "b", **OF_ORDERS, **MASTER), "status": waits}
    fetches = {**pod("once"), "status": {"phase": "Pending", "conditions": MOUNTED}}
    runs = {**pod("analysis"), "status": {"phase": "Running"}}
    assert user_of_claim([master, fetches], "orders-journal") is fetches
    assert user_of_claim([master, runs], "orders-journal") is runs
    # A copy goes where the volume comes to, as far as that is known.
    assert user_of_claim([master], "orders-journal") is master
    assert [has_volumes(each) for each in (master, fetches, runs)] == [False, True, True]


def test_what_does_not_run_yet_is_told_with_what_keeps_it_from_that() -> None:
    job = there(run(subject()), status={"active": 1, "ready": 0})
    name = job["metadata"]["name"]
    status = told(observed(job), subject())
    assert (status["state"], true(status)) == ("Submitted", {"Reconciling": "Submitted"})
    assert status["conditions"][1]["message"] == f"Job {name} waits for its pod to run"
    labels = {"batch.kubernetes.io/job-name": name}
    failed = {"metadata": {"labels": labels}, "status": {"phase": "Failed"}}
    unplaced = {"conditions": [{"type": "PodScheduled", "status": "False"}], "phase": "Pending"}
    metadata = {"labels": labels, "creationTimestamp": "2027-03-01T03:09:00Z"}
    again = {"metadata": metadata, "status": unplaced}
    status = told(observed(job, pods=(again, failed)), subject())
    assert status["conditions"][1]["message"] == (
        f"Job {name} waits for its pod to run: Unschedulable"
    )
    # Between two tries there is none.
    said = {"terminated": {"exitCode": 1, "message": "noise\nNo space left on device\n"}}
    spoke = {"phase": "Failed", "containerStatuses": [{"state": said}]}
    evicted = {"phase": "Failed", "reason": "Evicted"}
    for left, words in ((spoke, "noise\nNo space left on device"), (evicted, "Evicted")):
        status = told(observed(job, pods=({**failed, "status": left},)), subject())
        assert status["conditions"][1]["message"] == (
            f"Job {name} waits for its pod to run: the one before failed: {words}"
        )
    runs = there(run(subject()), status={"active": 1, "ready": 1})
    status = told(observed(runs, pods=(failed,)), subject())
    assert status["conditions"][1]["message"] == f"Job {name} copies the journal"


CREATED = datetime(2027, 3, 1, 3, 1, tzinfo=UTC)
ASLEEP = replace(subject(replace(JOURNAL, node="")), sleeps=True)
ON_B = replace(subject(replace(JOURNAL, node="b")), held=True)
NIGHTLY_JOB = "nightly-backup-29100001"


def job_of(of: BackupSubject) -> tuple[Manifest, ...]:
    """The Job of a backup; of a schedule as its controller makes it, with the CronJob."""
    made = there(run(of))
    if of.spec.schedule is None:
        return (made,)
    labels = made["spec"]["jobTemplate"]["metadata"]["labels"]
    owner = {"kind": "CronJob", "name": made["metadata"]["name"], "uid": "uid", "controller": True}
    own = {"name": NIGHTLY_JOB, "labels": labels, "ownerReferences": [owner]}
    job = {"kind": "Job", "metadata": own, "spec": made["spec"]["jobTemplate"]["spec"]}
    return there(job), made


def waiting(
    of: BackupSubject, node: str = "", minutes: int = 1, phase: str = "Pending", **status: Any
) -> ObservedBackup:
    """A pod that waits for so many minutes, placed as for *of*, on a *node* or on none yet."""
    children = job_of(of)
    spec = {**pod_spec(of), **({"nodeName": node} if node else {})}
    owner = {"kind": "Job", "name": "-", "uid": "uid", "controller": True}
    metadata = {"ownerReferences": [owner], "creationTimestamp": T1}
    made = {"metadata": metadata, "spec": spec, "status": {"phase": phase, **status}}
    now = CREATED + timedelta(minutes=minutes)
    return replace(observed(*children, pods=(made,)), now=now)


def made_of(manifest: Manifest) -> Manifest:
    """The Job that was made instead of another one."""
    found = there(manifest)
    metadata = {**found["metadata"], "uid": "new", "creationTimestamp": "2027-03-01T03:05:00Z"}
    return {**found, "metadata": metadata}


def beside(**spec: Any) -> BackupSubject:
    return replace(subject(**spec), beside={**OF_ORDERS, **MASTER})


@pytest.mark.parametrize(
    ("found", "now"),
    [
        (waiting(beside(), minutes=0), ASLEEP),
        (waiting(subject(replace(JOURNAL, node="")), node="a"), ON_B),
        # Its node may be full, cordoned or gone: nobody has the volume there any more.
        (waiting(subject()), ASLEEP),
        (waiting(subject()), subject(replace(JOURNAL, node=""))),
        (waiting(subject()), ON_B),
    ],
)
def test_a_copy_that_waits_where_the_volume_does_not_come_to_is_begun_anew(
    found: ObservedBackup, now: BackupSubject
) -> None:
    (create,) = backup_plan(found, now)
    assert isinstance(create, Create)
    made = create.manifest
    assert made["spec"] == run(now)["spec"]
    assert made["metadata"]["name"] == f"{now.run}-{hash_of('uid')[:6]}"
    assert made["metadata"]["labels"] == labels_of(now)
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        "JournalBackup", now.uid, True,
    )  # fmt: skip
    # The one before goes once the other was seen, whose pod may wait in vain in its turn.
    both = {**found.children, key_of(made): made_of(made)}
    assert backup_plan(replace(found, children=both), now) == (Delete("Job", now.run, "uid"),)


@pytest.mark.parametrize("spec", [{}, NIGHTLY])
def test_a_copy_that_is_begun_anew_is_not_lost_on_the_way(spec: dict[str, Any]) -> None:
    asleep = replace(subject(replace(JOURNAL, node=""), **spec), sleeps=True)
    found = waiting(beside(**spec))
    cron = {key: each for key, each in found.children.items() if key[0] == "CronJob"}
    found = replace(found, status=told(found, asleep))
    (create,) = (each for each in backup_plan(found, asleep) if isinstance(each, Create))
    # Killed, or refused for now: all is as before, and tried again.
    refused = Refused("Job", create.manifest["metadata"]["name"], "exceeded quota")
    found = replace(found, status=told(found, asleep, (), refused))
    assert create in backup_plan(found, asleep)
    assert not any(isinstance(each, Delete) for each in backup_plan(found, asleep))
    # Killed before the one before is deleted, and after it, with nothing told of either.
    again = made_of(create.manifest)
    name = again["metadata"]["name"]
    both = replace(found, children={**found.children, key_of(again): again})
    assert [each for each in backup_plan(both, asleep) if not isinstance(each, Apply)] == [
        Delete("Job", NIGHTLY_JOB if spec else asleep.run, "uid")
    ]
    left = replace(found, children={**cron, key_of(again): again}, pods=())
    assert not any(isinstance(each, Create | Delete) for each in backup_plan(left, asleep))
    status = told(left, asleep)
    assert (status["state"], status["run"], true(status)) == (
        "Submitted", name, {"Reconciling": "Submitted"},
    )  # fmt: skip
    # Somebody who removes that one stops the copy, as any other.
    gone = replace(left, children=cron, status=status)
    assert not any(isinstance(each, Create | Delete) for each in backup_plan(gone, asleep))
    assert told(gone, asleep)["state"] == ("Scheduled" if spec else "Removed")


def test_a_copy_of_a_schedule_that_waits_in_vain_keeps_no_later_ones_waiting() -> None:
    asleep = replace(subject(replace(JOURNAL, node=""), **NIGHTLY), sleeps=True)
    apply, create = backup_plan(waiting(beside(**NIGHTLY)), asleep)
    assert apply == Apply(stamped(run(asleep)))
    assert isinstance(create, Create)
    made = create.manifest
    assert made["spec"] == run(asleep)["spec"]["jobTemplate"]["spec"]
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("CronJob", "uid", True)
    assert made["metadata"]["labels"] == labels_of(asleep)
    assert made["metadata"]["name"].startswith("nightly-backup-")
    # It is of the schedule as the one before was.
    again = {**made_of(made), "status": {"ready": 1}}
    assert backup_plan(observed(there(run(asleep)), again), asleep) == ()


NEW_JOB = there(run(ASLEEP))
NEW_JOB["metadata"]["uid"] = "another"


@pytest.mark.parametrize(
    ("found", "now"),
    [
        # Whoever is to be beside comes yet, or is about to go.
        (waiting(beside()), subject(replace(JOURNAL, node=""))),
        (waiting(beside()), replace(subject(), sleeps=True)),
        # It has the volume, or has just come, or waits for something else.
        (waiting(ON_B, node="b", minutes=9), ON_B),
        (waiting(subject(), node="a", phase="Running"), ON_B),
        (waiting(subject(), node="a", minutes=9, conditions=MOUNTED), ON_B),
        # Whoever is on the other node waits for the volume, too.
        (waiting(subject(), node="a", minutes=9), replace(ON_B, held=False)),
        # A volume that everybody may have.
        (waiting(subject(SHARED), node="a", minutes=9), replace(subject(SHARED), held=True)),
        (waiting(subject(), node="a", minutes=0), ON_B),
        (waiting(ASLEEP, minutes=9), ASLEEP),
        (waiting(ASLEEP, node="a", minutes=9), ASLEEP),
        # The volume is on the node that it waits for, or was a moment ago.
        (waiting(subject(), minutes=9), subject()),
        (waiting(subject(), minutes=0), ASLEEP),
        # It is what is left of a Job that was ended.
        (replace(waiting(beside()), children={("Job", subject().run): NEW_JOB}), ASLEEP),
        # Where the journal is, is not known at all.
        (waiting(beside()), replace(ASLEEP, journal=Journal(problem="ClaimMissing", why="-"))),
    ],
)
def test_a_copy_that_may_yet_run_is_left_alone(found: ObservedBackup, now: BackupSubject) -> None:
    assert backup_plan(found, now) == ()


def test_a_job_of_another_spec_goes_as_it_does_without_waiting() -> None:
    found = waiting(beside(keep=2, target={"claim": {"name": "elsewhere"}}))
    delete, create = backup_plan(found, ASLEEP)
    assert isinstance(delete, Delete)
    assert create == Create(stamped(run(ASLEEP)))
