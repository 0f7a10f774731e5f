from dataclasses import replace
from typing import Any

import pytest

from lockkeeper_api.status import BrokerStatus
from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed, Pod
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.brokers.status.status import (
    broker_status,
    failed_status,
    invalid_status,
)
from lockkeeper_operator.brokers.steps import Step
from lockkeeper_operator.kubernetes.children.steps import Conflict, Wait
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import MASTER, STANDBY
from lockkeeper_operator.polling.report import Report

NOW, LATER = "2027-03-01T12:00:00Z", "2027-03-01T12:05:00Z"
DESIRED = Desired(
    "b", "uid", pods=("b-0", "b-1"), revision="new", configuration="c", claim="journal"
)
CLAIM: Manifest = {
    "metadata": {"name": "journal"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "10Gi"}}},
    "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}},
}


ENDING: Manifest = {**CLAIM, "metadata": {"name": "journal", "deletionTimestamp": NOW}}


def claim(**status: Any) -> Manifest:
    return {**CLAIM, "status": status}


def pod(number: int, role: str, **more: Any) -> Pod:
    report = Report(role, takes_over=role == STANDBY, epoch=7, configuration="c", version="1.0")
    usual = {"revision": "new", "role": role, "ready": True, "selected": role == MASTER}
    return Pod(**{"name": f"b-{number}", "report": report, **usual, **more})


PAIR = (pod(0, MASTER), pod(1, STANDBY))


def facts(
    pods: tuple[Pod, ...] = PAIR,
    claim: Manifest | None = CLAIM,
    desired: Desired = DESIRED,
    steps: tuple[Step, ...] = (),
) -> Facts:
    children = {} if claim is None else {("PersistentVolumeClaim", "journal"): claim}
    return Facts(Observed(children, pods), desired, steps)


def status_of(found: Facts, previous: dict[str, Any] | None = None, now: str = NOW) -> Any:
    return broker_status(found, previous or {}, 3, now)


def condition(found: Facts, kind: str) -> tuple[str, str]:
    (only,) = [each for each in status_of(found)["conditions"] if each["type"] == kind]
    return only["status"], only["reason"]


def test_a_pair_that_serves_says_so_in_every_condition() -> None:
    status = status_of(facts())
    assert {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]} == {
        "Ready": ("True", "Serving"),
        "Exposed": ("True", "Exposed"),
        "MasterElected": ("True", "Elected"),
        "StandbysReady": ("True", "Proven"),
        "StorageBound": ("True", "Bound"),
        "ConfigurationApplied": ("True", "Applied"),
        "Upgrading": ("False", "UpToDate"),
        "Paused": ("False", "Active"),
        "Reconciling": ("False", "Done"),
        "Stalled": ("False", "GettingOn"),
    }
    assert (status["master"], status["epoch"], status["version"]) == ("b-0", 7, "1.0")
    assert status["binding"] == {"name": "b-client"}
    assert status["observedGeneration"] == 3
    assert "phase" not in status
    assert BrokerStatus.model_validate(status).replicas == 2


def test_a_status_that_says_the_same_is_not_written_again() -> None:
    status = status_of(facts())
    assert status_of(facts(), status, LATER) is None


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    before = status_of(facts((pod(0, MASTER),)))
    after = status_of(facts(), before, LATER)
    times = {each["type"]: each["lastTransitionTime"] for each in after["conditions"]}
    assert times["StandbysReady"] == LATER
    assert times["Ready"] == NOW


BROKEN = pod(0, "", ready=False, broken=True, trouble="ImagePullBackOff", report=None)


@pytest.mark.parametrize(
    ("found", "kind", "expected"),
    [
        (facts((pod(0, STANDBY), pod(1, STANDBY))), "MasterElected", ("False", "NoMaster")),
        (facts((pod(0, MASTER), pod(1, MASTER))), "MasterElected", ("False", "TwoMasters")),
        (facts((pod(0, "recovering"),)), "MasterElected", ("False", "Recovering")),
        (facts((pod(0, MASTER, ready=False),)), "MasterElected", ("False", "NoMaster")),
        (facts((BROKEN,)), "MasterElected", ("False", "PodsBroken")),
        (facts((BROKEN,)), "Ready", ("False", "PodsBroken")),
        (facts((pod(0, MASTER),)), "StandbysReady", ("False", "NotProven")),
        (facts((pod(0, MASTER),)), "Ready", ("True", "NoSafetyNet")),
        (
            facts((pod(0, MASTER),), desired=replace(DESIRED, pods=("b-0",))),
            "StandbysReady",
            ("True", "NoneWanted"),
        ),
        (
            facts((), desired=replace(DESIRED, pods=(), hibernated=True)),
            "Ready",
            ("False", "Hibernated"),
        ),
        (facts(claim=None), "StorageBound", ("False", "ClaimMissing")),
        (facts(claim=None), "Ready", ("False", "ClaimMissing")),
        (facts(claim=claim(phase="Lost")), "StorageBound", ("False", "ClaimLost")),
        (facts(claim=claim()), "StorageBound", ("False", "ClaimPending")),
        (facts(claim=ENDING), "StorageBound", ("False", "ClaimEnds")),
        (facts(claim=ENDING), "Ready", ("False", "ClaimEnds")),
        (facts(claim=ENDING), "Stalled", ("True", "ClaimEnds")),
        (
            facts(claim={**CLAIM, "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}}}),
            "StorageBound",
            ("True", "Growing"),
        ),
        (
            facts(claim={**CLAIM, "spec": {**CLAIM["spec"], "accessModes": ["ReadWriteOnce"]}}),
            "StorageBound",
            ("True", "OneNodeOnly"),
        ),
        (
            facts(desired=replace(DESIRED, configuration="d")),
            "ConfigurationApplied",
            ("False", "Pending"),
        ),
        (facts((PAIR[0],)), "ConfigurationApplied", ("Unknown", "NotReported")),
        (
            facts((pod(0, MASTER, report=Report(MASTER, refused="c", refusal="no")),)),
            "ConfigurationApplied",
            ("False", "Refused"),
        ),
        (facts((pod(0, MASTER, revision="old"), PAIR[1])), "Upgrading", ("True", "RollingOut")),
        (
            facts((pod(0, MASTER, revision="old"),), steps=(Wait("ApprovalNeeded", "x"),)),
            "Upgrading",
            ("True", "ApprovalNeeded"),
        ),
        (facts(desired=replace(DESIRED, paused=True)), "Paused", ("True", "Paused")),
        (facts(steps=(Conflict("Service", "b-x", "Broker y"),)), "Ready", ("False", "Conflict")),
    ],
)
def test_what_is_wrong_is_told_with_its_reason(
    found: Facts, kind: str, expected: tuple[str, str]
) -> None:
    assert condition(found, kind) == expected


@pytest.mark.parametrize(
    ("master", "why"),
    [
        (pod(0, MASTER, selected=False), "b-0 has no label lockkeeper.dev/role=master"),
        (pod(0, MASTER, terminating=True), "b-0 is being stopped"),
    ],
)
def test_a_master_to_which_no_service_leads_serves_no_new_client(master: Pod, why: str) -> None:
    found = facts((master, PAIR[1]))
    assert condition(found, "MasterElected") == ("True", "Elected")
    assert condition(found, "Ready") == ("False", "NoEndpoint")
    assert condition(found, "Reconciling") == ("True", "NoEndpoint")
    assert condition(found, "Stalled") == ("False", "GettingOn")
    messages = {each["type"]: each["message"] for each in status_of(found)["conditions"]}
    assert messages["Ready"] == f"no Service leads to the master: {why}"


def test_the_first_master_is_no_failover() -> None:
    assert "lastFailover" not in status_of(facts())


@pytest.mark.parametrize(
    ("old", "cause"),
    [
        ((), "b-0 is gone"),
        ((pod(0, "", terminating=True, ready=False),), "b-0 was stopped"),
        ((pod(0, "", ready=False),), "b-0 is not ready"),
        ((BROKEN,), "b-0: ImagePullBackOff"),
        ((pod(0, STANDBY),), "b-0 started anew or lost the lock"),
    ],
)
def test_a_failover_is_told_with_time_and_cause(old: tuple[Pod, ...], cause: str) -> None:
    before = status_of(facts())
    between = status_of(facts((*old, pod(1, STANDBY))), before, LATER)
    assert (between["master"], between["epoch"]) == ("b-0", 7)
    assert "lastFailover" not in between
    after = status_of(facts((*old, pod(1, MASTER))), between, LATER)
    assert after["lastFailover"] == {"time": LATER, "cause": cause}
    settled = status_of(facts((pod(0, STANDBY), pod(1, MASTER))), after, "2027-03-02T00:00:00Z")
    assert settled is None or settled["lastFailover"] == after["lastFailover"]


def test_a_master_that_started_anew_in_its_place_is_a_failover() -> None:
    before = status_of(facts())
    again = pod(0, MASTER, report=Report(MASTER, epoch=8, configuration="c"))
    after = status_of(facts((again, PAIR[1])), before, LATER)
    assert (after["epoch"], after["lastFailover"]["time"]) == (8, LATER)


def test_the_term_of_a_master_that_stops_is_remembered() -> None:
    serves = status_of(facts())
    stopping = pod(0, MASTER, report=Report(MASTER, configuration="c", version="1.0"))
    assert status_of(facts((stopping, PAIR[1])), serves, LATER) is None


def test_a_term_that_becomes_known_is_no_failover() -> None:
    before = status_of(facts((pod(0, MASTER, report=None), PAIR[1])))
    assert before["master"] == "b-0"
    assert "epoch" not in before
    after = status_of(facts(), before, LATER)
    assert after["epoch"] == 7
    assert "lastFailover" not in after


def test_a_refused_spec_is_told_and_the_rest_of_the_status_stays() -> None:
    before = status_of(facts())
    after = invalid_status("spec.listeners[0].frameBytesMax: expected 1Ki", before, 4, LATER)
    assert after is not None
    ready, reconciling, stalled, *others = after["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "InvalidSpec")
    assert (reconciling["type"], reconciling["status"]) == ("Reconciling", "False")
    assert (stalled["type"], stalled["status"]) == ("Stalled", "True")
    assert others == before["conditions"][1:-2]
    assert (after["observedGeneration"], after["master"]) == (4, "b-0")
    assert invalid_status(ready["message"], after, 4, NOW) is None


def test_a_roll_out_is_not_done_and_a_broken_one_needs_somebody() -> None:
    rolling = facts((pod(0, MASTER, revision="old"), pod(1, STANDBY)))
    assert condition(rolling, "Ready") == ("True", "Serving")
    assert condition(rolling, "Reconciling") == ("True", "RollingOut")
    assert condition(rolling, "Stalled") == ("False", "GettingOn")
    trouble = {"trouble": "ImagePullBackOff", "broken": True, "ready": False, "report": None}
    broken = facts((pod(0, MASTER, revision="old"), pod(1, "", **trouble)))
    assert condition(broken, "Ready") == ("False", "RolloutBroken")
    assert condition(broken, "Reconciling") == ("False", "Stalled")
    assert condition(broken, "Stalled") == ("True", "RolloutBroken")
    # A node may yet be found: it is waited for.
    nowhere = {**trouble, "trouble": "Unschedulable"}
    waiting = facts((pod(0, MASTER, revision="old"), pod(1, "", **nowhere)))
    assert condition(waiting, "Ready") == ("True", "NoSafetyNet")
    assert condition(waiting, "Reconciling")[0] == "True"
    assert condition(waiting, "Stalled") == ("False", "GettingOn")
    new = facts((pod(0, "", **nowhere), pod(1, "", **nowhere)))
    assert condition(new, "Ready") == ("False", "PodsBroken")
    assert condition(new, "Reconciling") == ("True", "PodsBroken")
    assert condition(new, "Stalled") == ("False", "GettingOn")
    lost = facts((pod(0, "", **trouble), pod(1, "", **nowhere)))
    assert condition(lost, "Stalled") == ("True", "PodsBroken")
    # Without a roll-out the same trouble costs the safety net only.
    lone = facts((pod(0, MASTER), pod(1, "", **trouble)))
    assert condition(lone, "Ready") == ("True", "NoSafetyNet")


def test_what_the_server_keeps_refusing_is_told_and_the_rest_of_the_status_stays() -> None:
    before = status_of(facts())
    after = failed_status("500 InternalError: no", before, 4, LATER)
    assert after is not None
    said = {each["type"]: (each["status"], each["reason"]) for each in after["conditions"]}
    assert said["Ready"] == ("False", "Failed")
    assert said["Stalled"] == ("True", "Failed")
    assert said["Reconciling"] == ("False", "Stalled")
    assert said["MasterElected"] == ("True", "Elected")
    assert after["observedGeneration"] == 4
    assert failed_status("500 InternalError: no", after, 4, LATER) is None
    assert broker_status(facts(), after, 4, LATER) is not None


@pytest.mark.parametrize("reason", ["HandingOver", "NoSuccessor", "PodsEnd", "ChildEnds"])
def test_what_is_not_as_the_spec_says_is_not_done_although_clients_are_served(reason: str) -> None:
    # The master is among the pods that go, say, and has nobody to hand over to.
    waiting = facts((*PAIR, pod(2, STANDBY)), steps=(Wait(reason, "b-2 goes"),))
    assert condition(waiting, "Ready") == ("True", "Serving")
    assert condition(waiting, "Reconciling") == ("True", reason)
    assert condition(facts(steps=(Wait("MasterStays", "x"),)), "Reconciling") == ("False", "Done")
