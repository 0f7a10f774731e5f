"""Backups of volumes that one node at a time can have: where their pods go, and what is told."""

from dataclasses import replace
from typing import Any

import pytest
from backup_objects import JOURNAL, NIGHTLY, observed, pod_spec, subject, there, told, true

from lockkeeper_operator.backups.desired.placing import labels_beside
from lockkeeper_operator.backups.desired.run import run
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.unwatched import node_of, user_of_claim
from lockkeeper_operator.kubernetes.manifests import Manifest

SHARED = Journal(claim="orders-journal", path="kahadb", group=10001)
OF_ORDERS = {"app.kubernetes.io/name": "lockkeeper", "app.kubernetes.io/instance": "orders"}
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
    runs = there(run(subject()), status={"active": 1, "ready": 1})
    status = told(observed(runs, pods=(failed,)), subject())
    assert status["conditions"][1]["message"] == f"Job {name} copies the journal"
