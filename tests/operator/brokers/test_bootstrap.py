"""A Broker's journal is filled before its first start, once, and never over one that is there."""

from dataclasses import replace
from typing import Any

import pytest
from cluster_objects import subject

from lockkeeper_api.cluster.bootstrap import Bootstrap
from lockkeeper_operator.brokers.bootstrapping import BOOTSTRAP_FAILED, BOOTSTRAPPING, filling
from lockkeeper_operator.brokers.desired.first_journal import first_journal
from lockkeeper_operator.brokers.desired.subject import Installation, Subject
from lockkeeper_operator.brokers.desired.target import Desired, desired_of
from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.brokers.plan import plan
from lockkeeper_operator.brokers.status import ready, reconciling
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.brokers.steps import Step
from lockkeeper_operator.kubernetes.children.steps import Apply, Create, Delete, Wait
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of

FROM_CLAIM = {"claim": {"name": "backups", "path": "nightly"}}
BACKUP = {
    "metadata": {"name": "nightly"},
    "spec": {"broker": "departures", "target": {"claim": {"name": "backups"}}},
}


def bootstrapped(said: dict[str, Any], backup: Manifest | None = None, **spec: Any) -> Subject:
    wanted = Bootstrap.model_validate(said)
    made = subject(Installation("example/lockkeeper:1"), bootstrap=said, **spec)
    return replace(made, first_journal=first_journal(wanted, backup))


def job_of(said: dict[str, Any], backup: Manifest | None = None, **spec: Any) -> Manifest:
    found = desired_of(bootstrapped(said, backup, **spec)).bootstrap
    assert found is not None
    return found


def arguments(job: Manifest) -> list[str]:
    found: list[str] = job["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def claims(job: Manifest) -> dict[str, Any]:
    volumes = job["spec"]["template"]["spec"]["volumes"]
    return {
        each["name"]: each["persistentVolumeClaim"]
        for each in volumes
        if "persistentVolumeClaim" in each
    }


def there(goal: Desired, *more: Manifest) -> dict[Key, Manifest]:
    """Return all children but the StatefulSet, as they are once they were made."""
    made = [
        step.manifest
        for step in plan(Observed(), goal)
        if isinstance(step, Create) and step.manifest["kind"] != "Job"
    ]
    return {
        key_of(each): {**each, "metadata": {**each["metadata"], "uid": "u"}}
        for each in (*made, *more)
    }


def ended(job: Manifest, kind: str) -> Manifest:
    return {**job, "status": {"conditions": [{"type": kind, "status": "True"}]}}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (FROM_CLAIM, ["/source/nightly", "/var/lib/lockkeeper", "--if-empty"]),
        (
            {"journal": {"name": "old", "path": "data/kahadb"}},
            ["/source/data/kahadb", "/var/lib/lockkeeper", "--if-empty", "--journal"],
        ),
        (
            {"url": "s3://b/nightly", "image": "own:1", "until": "2026-11-24T03:50:00Z"},
            [
                "s3://b/nightly",
                "/var/lib/lockkeeper",
                "--if-empty",
                "--until",
                "2026-11-24T03:50:00Z",
            ],
        ),
    ],
)
def test_a_job_restores_what_the_spec_names(said: dict[str, Any], told: list[str]) -> None:
    job = job_of(said)
    assert arguments(job) == told
    assert claims(job)["journal"] == {"claimName": "departures-journal"}
    name = (said.get("claim") or said.get("journal") or {}).get("name")
    assert claims(job).get("source", {}).get("claimName") == name
    image = job["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == said.get("image", "example/lockkeeper:1")


def test_a_backup_is_where_its_resource_says() -> None:
    job = job_of({"backup": "nightly"}, BACKUP, storage={"path": "data"})
    assert arguments(job) == ["/source/nightly", "/var/lib/lockkeeper/data", "--if-empty"]
    assert claims(job)["source"] == {"claimName": "backups", "readOnly": True}
    target = {"url": "s3://b/c"}
    spec = {"broker": "d", "target": target, "image": {"name": "own:1"}, "credentials": "keys"}
    remote = job_of({"backup": "nightly"}, {**BACKUP, "spec": spec})
    (container,) = remote["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == "s3://b/c"
    assert container["image"] == "own:1"
    assert container["envFrom"] == [{"secretRef": {"name": "keys"}}]


def test_pods_that_fill_a_journal_are_none_that_services_and_budgets_select() -> None:
    labels = job_of(FROM_CLAIM)["spec"]["template"]["metadata"]["labels"]
    template = desired_of(subject()).children
    (stateful_set,) = [each for each in template if each["kind"] == "StatefulSet"]
    selector = stateful_set["spec"]["selector"]["matchLabels"]
    assert not selector.items() <= labels.items()


def test_brokers_wait_until_the_journal_is_filled() -> None:
    goal = desired_of(bootstrapped(FROM_CLAIM))
    first = plan(Observed(), goal)
    kinds = [step.manifest["kind"] for step in first if isinstance(step, Create)]
    assert "StatefulSet" not in kinds
    assert kinds[-1] == "Job"
    assert "PersistentVolumeClaim" in kinds
    job = job_of(FROM_CLAIM)
    running = plan(Observed(there(goal, job)), goal)
    assert [step.reason for step in running if isinstance(step, Wait)] == [BOOTSTRAPPING]
    assert not any(isinstance(step, Create) for step in running)
    done = plan(Observed(there(goal, ended(job, "Complete"))), goal)
    made = [step.manifest["kind"] for step in done if isinstance(step, Create)]
    assert "StatefulSet" in made


def test_a_broker_that_was_started_is_not_filled_again() -> None:
    goal = desired_of(bootstrapped(FROM_CLAIM))
    (stateful_set,) = [each for each in goal.children if each["kind"] == "StatefulSet"]
    steps = plan(Observed(there(goal, stateful_set)), goal)
    assert not any(isinstance(step, Create) and step.manifest["kind"] == "Job" for step in steps)
    assert not any(isinstance(step, Wait) and step.reason == BOOTSTRAPPING for step in steps)


@pytest.mark.parametrize("said", [{"backup": "nightly"}, FROM_CLAIM, {"snapshot": "before-1"}])
def test_a_broker_that_has_served_starts_whatever_became_of_what_it_began_with(
    said: dict[str, Any],
) -> None:
    # Somebody deletes its StatefulSet; the JournalBackup is gone, and so may be claim and URL.
    goal = desired_of(bootstrapped(said))
    present = there(desired_of(subject(Installation("example/lockkeeper:1"))))
    present.pop(("StatefulSet", "departures"))
    first = plan(Observed(present), goal)
    assert begun(first) == ("backup" not in said)
    again = plan(Observed(present, has_served=True), goal)
    made = [key_of(step.manifest) for step in again if isinstance(step, Create)]
    assert made == [("StatefulSet", "departures")]
    assert only(again) == []
    # What still writes to the volume ends first all the same.
    steps = plan(Observed(present, has_served=True, filling={"old-x": "u"}), goal)
    assert not begun(steps)
    assert [each.reason for each in only(steps) if isinstance(each, Wait)] == [BOOTSTRAPPING]


def test_a_failure_tells_the_last_words_of_the_job_and_the_way_out() -> None:
    goal = desired_of(bootstrapped(FROM_CLAIM))
    job = ended(job_of(FROM_CLAIM), "Failed")
    name = job["metadata"]["name"]
    observed = Observed(there(goal, job), bootstrap_failures={name: "no whole backup"})
    steps = plan(observed, goal)
    verdict = ready.condition(Facts(observed, goal, steps))
    assert (verdict.status, verdict.reason) == ("False", BOOTSTRAP_FAILED)
    way_out = "mend spec.bootstrap, or delete the Job to try again"
    assert verdict.message == f"Job {name}: no whole backup; {way_out}"
    assert reconciling.stalled(Facts(observed, goal, steps)).status == "True"


def test_a_mended_spec_ends_the_job_before_another_begins() -> None:
    old = job_of({"claim": {"name": "wrong"}})
    goal = desired_of(bootstrapped(FROM_CLAIM))
    children = there(goal, {**old, "metadata": {**old["metadata"], "uid": "u"}})
    steps = only(plan(Observed(children), goal))
    assert steps[0] == Delete("Job", old["metadata"]["name"], "u")
    assert isinstance(steps[1], Wait)
    after = {key: child for key, child in children.items() if key[0] != "Job"}
    names = [
        step.manifest["metadata"]["name"]
        for step in plan(Observed(after), goal)
        if isinstance(step, Create)
    ]
    assert names == [job_of(FROM_CLAIM)["metadata"]["name"]]


@pytest.mark.parametrize("said", [None, FROM_CLAIM, {"snapshot": "before-1"}])
def test_nothing_begins_before_a_job_of_an_earlier_spec_and_its_pods_have_ended(
    said: dict[str, Any] | None,
) -> None:
    # Whatever is wanted now: the files of two that write at a time would be nobody's.
    goal = desired_of(subject() if said is None else bootstrapped(said))
    old = job_of({"claim": {"name": "wrong"}})
    children = there(goal, {**old, "metadata": {**old["metadata"], "uid": "u"}})
    children.pop(("StatefulSet", "departures"), None)
    name = old["metadata"]["name"]
    steps = plan(Observed(children), goal)
    assert only(steps) == [
        Delete("Job", name, "u"), Wait(BOOTSTRAPPING, f"Job {name} must end first"),
    ]  # fmt: skip
    assert not begun(steps)
    # The Job is gone, by whomever; its pod takes half a minute to end.
    without = {key: child for key, child in children.items() if key[0] != "Job"}
    steps = plan(Observed(without, filling={"old-x": "u"}), goal)
    assert [each.reason for each in only(steps) if isinstance(each, Wait)] == [BOOTSTRAPPING]
    assert not begun(steps)
    assert begun(plan(Observed(without), goal))


def test_a_job_of_an_earlier_broker_of_the_name_has_filled_nothing() -> None:
    goal = desired_of(bootstrapped(FROM_CLAIM))
    job = ended(job_of(FROM_CLAIM), "Complete")
    (owner,) = job["metadata"]["ownerReferences"]
    job["metadata"]["ownerReferences"] = [{**owner, "uid": "of-another"}]
    steps = plan(Observed(there(goal, job)), goal)
    # Kubernetes is about to collect it.
    name = job["metadata"]["name"]
    assert only(steps) == [Wait(BOOTSTRAPPING, f"Job {name} must end first")]
    assert not begun(steps)


def test_pods_that_go_on_are_those_that_have_not_ended() -> None:
    def pod(name: str, phase: str) -> Manifest:
        owner = {"kind": "Job", "uid": f"job-of-{name}", "controller": True}
        return {"metadata": {"name": name, "ownerReferences": [owner]}, "status": {"phase": phase}}

    pods = [pod("a", "Running"), pod("b", "Succeeded"), pod("c", "Failed"), pod("d", "Pending")]
    assert filling(pods) == {"a": "job-of-a", "d": "job-of-d"}


def begun(steps: tuple[Step, ...]) -> bool:
    """Return whether something that writes the journal is made."""
    made = [step.manifest["kind"] for step in steps if isinstance(step, Create)]
    return "Job" in made or "StatefulSet" in made


def only(steps: tuple[Step, ...]) -> list[Step]:
    return [step for step in steps if isinstance(step, Delete | Wait)]


def test_a_backup_that_is_not_there_is_waited_for() -> None:
    goal = desired_of(bootstrapped({"backup": "nightly"}))
    steps = plan(Observed(), goal)
    assert any(isinstance(step, Wait) and step.reason == "BackupMissing" for step in steps)
    kinds = {step.manifest["kind"] for step in steps if isinstance(step, Create)}
    assert not {"Job", "StatefulSet", "PersistentVolumeClaim"} & kinds
    assert plan(Observed(), replace(goal, paused=True)) == ()


def claim_of(found: Subject) -> Manifest:
    (claim,) = [
        each for each in desired_of(found).children if each["kind"] == "PersistentVolumeClaim"
    ]
    return claim


SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "before-1"}


def test_a_snapshot_makes_the_claim_and_needs_no_job() -> None:
    found = bootstrapped({"snapshot": "before-1"})
    assert claim_of(found)["spec"]["dataSource"] == SNAPSHOT
    kinds = {step.manifest["kind"] for step in plan(Observed(), desired_of(found))
             if isinstance(step, Create)}  # fmt: skip
    assert "StatefulSet" in kinds
    assert "Job" not in kinds
    target: dict[str, Any] = {"snapshot": {}}
    backup = {**BACKUP, "spec": {"broker": "d", "target": target}}
    by_backup = bootstrapped({"backup": "before"}, {**backup, "status": {"snapshot": "before-1"}})
    assert claim_of(by_backup)["spec"]["dataSource"] == SNAPSHOT
    waiting = desired_of(bootstrapped({"backup": "before"}, backup)).first_journal_problem
    assert waiting == Wait("BackupMissing", "JournalBackup before has made no snapshot yet")


def test_a_claim_that_is_there_is_not_asked_to_be_made_of_something_else() -> None:
    present = {
        **claim_of(subject()),
        "metadata": {**claim_of(subject())["metadata"], "uid": "u"},
    }
    goal = desired_of(bootstrapped({"snapshot": "before-1"}))
    steps = plan(Observed({key_of(present): present}), goal)
    applied = [
        step.manifest
        for step in steps
        if isinstance(step, Apply) and step.manifest["kind"] == "PersistentVolumeClaim"
    ]
    assert all("dataSource" not in each["spec"] for each in applied)


def test_a_snapshot_and_a_claim_that_is_there_are_a_contradiction() -> None:
    found = bootstrapped({"snapshot": "before-1"}, storage={"existingClaim": "old"})
    (wait,) = [step for step in plan(Observed(), desired_of(found)) if isinstance(step, Wait)]
    assert wait.reason == "ClaimExists"
