from copy import deepcopy
from typing import Any

import pytest
from cluster_objects import subject

from lockkeeper_operator.brokers.desired.target import Desired, desired_of
from lockkeeper_operator.brokers.observed import Observed, Pod
from lockkeeper_operator.brokers.plan import plan
from lockkeeper_operator.brokers.steps import DeletePod, Push, Step, SwitchOver
from lockkeeper_operator.kubernetes.children.steps import (
    Apply,
    Conflict,
    Create,
    Delete,
    Refused,
    Wait,
)
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.polling.report import Report


def desired(**options: Any) -> Desired:
    return desired_of(subject(**{"replicas": 2, **options}))


def applied(goal: Desired) -> dict[Key, Manifest]:
    """Return the children as the API server has them once a plan was carried out."""
    children: dict[Key, Manifest] = {}
    for step in plan(Observed(), goal):
        assert isinstance(step, Create)
        found = deepcopy(step.manifest)
        found["metadata"] |= {"uid": f"uid-{len(children)}", "resourceVersion": "7"}
        children[key_of(found)] = found
    stateful_set = children["StatefulSet", "departures"]
    stateful_set["metadata"]["generation"] = 2
    stateful_set["status"] = {"observedGeneration": 2}
    return children


def pod(number: int, revision: str, role: str = "standby", **more: Any) -> Pod:
    said = {"takes_over": role == "standby", "configuration": "old", **more.pop("says", {})}
    return Pod(
        **{
            "name": f"departures-{number}",
            "uid": f"{number}{revision}",
            "revision": revision,
            "role": role,
            "ready": True,
            "report": Report(role, **said),
            **more,
        }
    )


def after(goal: Desired, *pods: Pod, **changes: Any) -> tuple[Step, ...]:
    children = applied(goal)
    return plan(Observed(children, pods, **changes), goal)


def created(steps: tuple[Step, ...]) -> list[str]:
    return [step.manifest["kind"] for step in steps if isinstance(step, Create)]


def test_a_new_broker_gets_its_children_those_first_that_pods_need() -> None:
    kinds = created(plan(Observed(), desired()))
    assert kinds[0] == "ServiceAccount"
    # What a cluster may not know stands before nothing.
    assert kinds[-2:] == ["StatefulSet", "PodMonitor"]
    assert kinds.index("PersistentVolumeClaim") < kinds.index("StatefulSet")


def test_what_is_done_needs_nothing_more() -> None:
    goal = desired()
    says = {"configuration": goal.configuration}
    pods = (pod(0, goal.revision, "master", says=says), pod(1, goal.revision, says=says))
    assert after(goal, *pods) == ()


def test_what_others_add_is_left_to_them() -> None:
    goal = desired()
    children = applied(goal)
    service = children["Service", "departures-openwire"]
    service["spec"] |= {"clusterIP": "10.96.0.7", "sessionAffinity": "None"}
    service["metadata"]["annotations"]["load-balancer"] = "ours"
    service["metadata"]["labels"]["team"] = "network"
    (wait,) = plan(Observed(children), goal)
    assert isinstance(wait, Wait)


@pytest.mark.parametrize("kind", ["Service", "ConfigMap", "Role", "NetworkPolicy", "StatefulSet"])
def test_drift_is_repaired(kind: str) -> None:
    goal = desired()
    children = applied(goal)
    key = next(key for key in children if key[0] == kind)
    for part in ("spec", "data", "rules"):
        if part in children[key]:
            children[key][part] = type(children[key][part])()
    (step,) = plan(Observed(children), goal)
    assert isinstance(step, Apply)
    assert (key_of(step.manifest), step.drift) == (key, True)


def test_what_leaves_the_spec_leaves_the_child_though_all_the_rest_is_there() -> None:
    before = desired(pods={"tolerations": [{"operator": "Exists"}]})
    (step,) = plan(Observed(applied(before)), desired())
    assert isinstance(step, Apply)
    assert not step.drift
    assert "tolerations" not in step.manifest["spec"]["template"]["spec"]


def test_a_child_that_is_not_wanted_any_more_is_removed() -> None:
    two = [{"name": "openwire"}, {"name": "outside", "port": 61617}]
    children = applied(desired(listeners=two))
    steps = plan(Observed(children), desired())
    (gone,) = [step for step in steps if isinstance(step, Delete)]
    assert (gone.kind, gone.name) == ("Service", "departures-outside")
    assert gone.uid == children["Service", "departures-outside"]["metadata"]["uid"]


def test_a_claim_is_never_removed() -> None:
    before = desired(storage={"deletionPolicy": "Delete"})
    goal = desired(storage={"existingClaim": "another"})
    assert [
        step for step in plan(Observed(applied(before)), goal) if isinstance(step, Delete)
    ] == []


def test_a_strangers_object_is_left_alone_and_told() -> None:
    goal = desired()
    children = applied(goal)
    owner = {"kind": "Broker", "name": "another", "uid": "x", "controller": True}
    children["Service", "departures-openwire"]["metadata"]["ownerReferences"] = [owner]
    children["ConfigMap", "departures"] = {
        "kind": "ConfigMap",
        "metadata": {"name": "departures", "labels": {}},
    }
    conflicts = [step for step in plan(Observed(children), goal) if isinstance(step, Conflict)]
    assert conflicts == [
        Conflict("ConfigMap", "departures", "somebody else"),
        Conflict("Service", "departures-openwire", "Broker another"),
    ]


def test_a_claim_that_outlived_a_broker_of_the_same_name_is_used_again() -> None:
    claim = applied(desired())["PersistentVolumeClaim", "departures-journal"]
    assert "ownerReferences" not in claim["metadata"]
    steps = plan(Observed({key_of(claim): claim}), desired())
    assert all(isinstance(step, Create) for step in steps)
    assert "PersistentVolumeClaim" not in created(steps)


def test_a_child_that_is_being_deleted_is_waited_for() -> None:
    goal = desired()
    children = applied(goal)
    children["Lease", "departures"]["metadata"]["deletionTimestamp"] = "now"
    assert plan(Observed(children), goal) == (
        Wait("ChildEnds", "Lease departures is being deleted"),
    )


def test_storage_grows_and_nothing_else_of_a_claim_changes() -> None:
    children = applied(desired(replicas=1, storage={"size": "10Gi"}))
    children["PersistentVolumeClaim", "departures-journal"]["spec"]["storageClassName"] = "slow"
    steps = plan(Observed(children), desired(replicas=2, storage={"size": "20Gi"}))
    (claim,) = [
        step.manifest
        for step in steps
        if isinstance(step, Apply) and step.manifest["kind"] == "PersistentVolumeClaim"
    ]
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "20Gi"}},
        "storageClassName": "slow",
    }


def test_storage_never_shrinks() -> None:
    children = applied(desired(storage={"size": "20Gi"}))
    steps = plan(Observed(children), desired(storage={"size": "10Gi"}))
    sizes = [
        step.manifest["spec"]["resources"]["requests"]["storage"]
        for step in steps
        if isinstance(step, Apply) and step.manifest["kind"] == "PersistentVolumeClaim"
    ]
    assert set(sizes) <= {"20Gi"}


def test_a_paused_broker_is_left_as_it_is() -> None:
    assert plan(Observed(), desired(paused=True)) == ()


def test_a_hibernated_broker_loses_its_pods_and_nothing_else() -> None:
    awake, goal = desired(), desired(hibernated=True)
    steps = plan(Observed(applied(awake), (pod(0, awake.revision, "master"),)), goal)
    (stateful_set,) = [step for step in steps if isinstance(step, Apply)]
    assert stateful_set.manifest["spec"]["replicas"] == 0
    (budget,) = [step for step in steps if isinstance(step, Delete)]
    assert budget.kind == "PodDisruptionBudget"
    assert after(goal, pod(0, goal.revision)) == (Wait("PodsEnd", "the pods are being stopped"),)
    assert after(goal) == ()


def test_pods_wait_until_the_controller_knows_the_new_template() -> None:
    goal = desired()
    children = applied(goal)
    children["StatefulSet", "departures"]["metadata"]["generation"] = 3
    (step,) = plan(Observed(children, (pod(0, "old"), pod(1, "old", "master"))), goal)
    assert isinstance(step, Wait)
    assert step.reason == "ControllerBehind"


def test_standbys_start_anew_before_the_master() -> None:
    goal = desired(replicas=3)
    pods = (pod(0, "old"), pod(1, "old", "master"), pod(2, "old"))
    assert after(goal, *pods) == (DeletePod("departures-2", "2old", "Outdated"),)
    pods = (pod(0, "old"), pod(1, "old", "master"), pod(2, goal.revision))
    assert after(goal, *pods) == (DeletePod("departures-0", "0old", "Outdated"),)


def test_the_master_is_switched_over_when_a_new_standby_is_proven() -> None:
    goal = desired()
    master = pod(0, "old", "master")
    unproven = pod(1, goal.revision, says={"takes_over": False})
    assert after(goal, master, unproven) == (
        Wait("NoSuccessor", "no standby is proven able to take over"),
    )
    assert after(goal, master, pod(1, goal.revision)) == (
        SwitchOver("departures-0", "0old", "departures-1"),
    )


def test_one_replica_alone_starts_anew() -> None:
    goal = desired(replicas=1)
    assert after(goal, pod(0, "old", "master")) == (DeletePod("departures-0", "0old", "Outdated"),)


def test_a_supervised_master_waits_for_approval() -> None:
    supervised: dict[str, Any] = {"update": {"strategy": "Supervised"}}
    goal = desired(**supervised)
    pods = (pod(0, "old", "master"), pod(1, goal.revision))
    (wait,) = after(goal, *pods)
    assert isinstance(wait, Wait)
    assert (wait.reason, goal.revision in wait.message) == ("ApprovalNeeded", True)
    approved = desired(**supervised, annotations={"lockkeeper.dev/approve": goal.revision})
    assert after(approved, *pods) == (SwitchOver("departures-0", "0old", "departures-1"),)


@pytest.mark.parametrize(
    "away",
    [{"ready": False}, {"terminating": True}, {"ready": False, "broken": True, "trouble": "x"}],
)
def test_nothing_starts_anew_while_another_pod_is_away(away: dict[str, Any]) -> None:
    goal = desired(replicas=3)
    pods = (pod(0, "old", "master"), pod(1, "old"), pod(2, goal.revision, **away))
    (wait,) = after(goal, *pods)
    assert isinstance(wait, Wait)
    assert wait.reason == "PodStarts"
    assert "departures-2" in wait.message


def test_a_missing_pod_is_waited_for() -> None:
    goal = desired()
    (wait,) = after(goal, pod(0, "old", "master"))
    assert wait == Wait("PodStarts", "pods that are not ready: departures-1")


def test_pods_of_an_old_revision_that_cannot_run_are_not_waited_for() -> None:
    goal = desired(replicas=3)
    pods = (
        pod(0, "old", "master"),
        pod(1, "bad", ready=False, broken=True),
        pod(2, "bad", ready=False, broken=True),
    )
    assert after(goal, *pods) == (
        DeletePod("departures-1", "1bad", "Broken"),
        DeletePod("departures-2", "2bad", "Broken"),
    )


def test_a_lease_that_is_not_wanted_any_more_stays_until_no_pod_can_hold_it() -> None:
    without = desired(locker={"lease": {"enabled": False}})
    children = applied(without)
    children["Lease", "departures"] = applied(desired())["Lease", "departures"]
    gone = Delete("Lease", "departures", children["Lease", "departures"]["metadata"]["uid"])
    begun = (pod(0, "old", "master"), pod(1, without.revision))
    assert plan(Observed(children, begun), without) == (
        SwitchOver("departures-0", "0old", "departures-1"),
    )
    rolled = (pod(0, without.revision), pod(1, without.revision, "master"))
    assert plan(Observed(children, rolled), without) == (gone,)


@pytest.mark.parametrize("storage", [{}, {"existingClaim": "old"}])
def test_pods_stay_as_they_are_while_their_claim_is_being_deleted(storage: Any) -> None:
    claim = storage.get("existingClaim", "departures-journal")
    ends = {"metadata": {"name": claim, "deletionTimestamp": "now"}}
    old = applied(desired(storage=storage))
    ending = {**old, ("PersistentVolumeClaim", claim): {**ends, "spec": {"volumeName": "pv-7"}}}
    pods = (pod(0, "old", "master"), pod(1, "old", begun=False, broken=True, ready=False))
    goal = desired(storage=storage, hibernated=True)
    steps = plan(Observed(ending, pods), goal)
    assert not [step for step in steps if isinstance(step, DeletePod | SwitchOver)]
    assert not [step for step in steps if isinstance(step, Apply) and is_stateful_set(step)]
    assert steps[-1] == Wait(
        "ClaimEnds",
        f"claim {claim} is being deleted, and goes with the last pod that uses it: set "
        "persistentVolumeReclaimPolicy of volume pv-7 to Retain to keep the journal",
    )
    # Nobody uses it any more: there is nothing to keep.
    assert not [step for step in plan(Observed(ending), goal) if step == steps[-1]]


def is_stateful_set(step: Apply) -> bool:
    return bool(step.manifest["kind"] == "StatefulSet")


def test_a_pod_of_an_old_revision_that_never_began_is_not_waited_for() -> None:
    # Its Secret is not there, say: the spec was mended, and the pod is as it was made.
    goal = desired(replicas=1)
    waiting = pod(0, "old", "", ready=False, begun=False, report=None)
    assert after(goal, waiting) == (DeletePod("departures-0", "0old", "Not begun"),)
    begins = pod(0, goal.revision, "", ready=False, begun=False, report=None)
    assert after(goal, begins) == (Wait("PodStarts", "pods that are not ready: departures-0"),)


def test_nothing_starts_anew_while_two_say_they_are_master() -> None:
    goal = desired()
    (wait,) = after(goal, pod(0, "old", "master"), pod(1, "old", "master"))
    assert isinstance(wait, Wait)
    assert wait.reason == "TwoMasters"


def test_a_broker_that_reads_its_journal_is_not_disturbed() -> None:
    goal = desired()
    assert after(goal, pod(0, "old", "recovering"), pod(1, "old")) == (
        Wait("Recovery", "departures-0 reads the journal"),
    )


def test_a_pod_too_many_is_waited_for() -> None:
    goal = desired()
    (wait,) = after(goal, pod(0, "old"), pod(1, "old"), pod(2, "old", "master"))
    assert isinstance(wait, Wait)
    assert wait.reason == "PodsEnd"


def test_a_change_that_needs_no_restart_is_pushed_to_running_brokers() -> None:
    goal = desired()
    current = {"configuration": goal.configuration}
    pods = (pod(0, goal.revision, "master"), pod(1, goal.revision, says=current))
    assert after(goal, *pods) == (Push("departures-0", goal.configuration),)
    refused = pod(0, goal.revision, "master", says={"refused": goal.configuration})
    assert after(goal, refused, pods[1]) == ()


def test_a_child_that_is_stuck_waits_alone() -> None:
    goal = desired()
    children = applied(goal)
    children["Service", "departures-openwire"]["spec"]["type"] = "NodePort"
    pods = (pod(0, "old", "master"), pod(1, "old"))
    (repair,) = plan(Observed(children, pods), goal)
    assert isinstance(repair, Apply)
    theirs = Conflict("Service", "departures-openwire", "gitops (.spec.type)")
    stuck = {(theirs.kind, theirs.name): theirs}
    said, step = plan(Observed(children, pods, stuck=stuck), goal)
    assert said == theirs
    assert isinstance(step, DeletePod)


@pytest.mark.parametrize("kind", ["StatefulSet", "ConfigMap"])
def test_pods_wait_for_what_they_are_made_of(kind: str) -> None:
    goal = desired()
    children = applied(goal)
    children[kind, "departures"]["data" if kind == "ConfigMap" else "spec"] = {}
    refused = Refused(kind, "departures", "no")
    pods = (pod(0, "old", "master"), pod(1, "old"))
    found = Observed(children, pods, stuck={(kind, "departures"): refused})
    assert plan(found, goal) == (refused,)


def test_what_comes_back_however_often_it_is_removed_is_borne() -> None:
    goal = desired()
    children = applied(goal)
    key = ("StatefulSet", "departures")
    where = ("spec", "template", "spec", "tolerations")
    children[key]["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    (repair,) = plan(Observed(children), goal)
    assert isinstance(repair, Apply) and repair.drift
    borne = Observed(children, tolerated={key: frozenset({where})})
    assert [step for step in plan(borne, goal) if isinstance(step, Apply)] == []
