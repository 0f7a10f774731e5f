import json
from typing import Any

import pytest

from lockkeeper_operator.analyses.runs import runs_of
from lockkeeper_operator.kubernetes.jobs import Run
from lockkeeper_operator.kubernetes.manifests import Manifest

T1, T2 = "2027-03-01T03:00:00Z", "2027-03-01T03:05:00Z"


def made(kind: str, status: Manifest, name: str = "r", created: str = T1) -> Manifest:
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": created}
    return {"kind": kind, "metadata": metadata, "status": status}


def pod(label: str, run: str = "r", **more: Any) -> Manifest:
    labels = {label: run, "lockkeeper.dev/spark-role": "driver"}
    notes = {"lockkeeper.dev/progress": more.pop("progress", "")}
    created = more.pop("created", T1)
    return {
        "metadata": {
            "name": f"{run}-x", "uid": "u", "labels": labels, "annotations": notes,
            "creationTimestamp": created,
        },
        "status": more,
    }  # fmt: skip


def only(manifest: Manifest, *pods: Manifest) -> Run:
    (found,) = runs_of([manifest], pods)
    return found


def condition(kind: str) -> Manifest:
    return {"type": kind, "status": "True", "lastTransitionTime": T2, "message": "BackoffLimit"}


@pytest.mark.parametrize(
    ("status", "state", "finished"),
    [
        ({}, "Submitted", None),
        ({"startTime": T1, "active": 1, "ready": 0}, "Submitted", None),
        ({"startTime": T1, "active": 1, "ready": 1}, "Running", None),
        ({"conditions": [condition("Complete")], "completionTime": T2}, "Succeeded", T2),
        ({"conditions": [condition("Failed")]}, "Failed", T2),
        ({"ready": 1, "conditions": [{**condition("Failed"), "status": "False"}]}, "Running", None),
    ],
)
def test_a_jobs_state(status: Manifest, state: str, finished: str | None) -> None:
    found = only(made("Job", status))
    assert (found.state, found.finished) == (state, finished)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("", "Submitted"),
        ("SUBMITTED", "Submitted"),
        ("SUBMISSION_FAILED", "Submitted"),
        ("PENDING_RERUN", "Submitted"),
        ("RUNNING", "Running"),
        ("FAILING", "Running"),
        ("COMPLETED", "Succeeded"),
        ("FAILED", "Failed"),
    ],
)
def test_a_kubeflow_applications_state(said: str, state: str) -> None:
    told = {"state": said, "errorMessage": "no such image"}
    found = only(made("SparkApplication", {"applicationState": told, "terminationTime": T2}))
    assert found.state == state
    assert found.finished == (T2 if found.ended else None)
    assert found.message == "no such image"


def apache(*states: str) -> Manifest:
    told = [{"currentStateSummary": each, "lastTransitionTime": T2} for each in states]
    history = {str(number): each for number, each in enumerate(told)}
    return {"currentState": told[-1], "stateTransitionHistory": history}


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (("Submitted",), "Submitted"),
        (("Submitted", "DriverRequested"), "Submitted"),
        (("Submitted", "RunningHealthy"), "Running"),
        (("RunningHealthy", "Succeeded"), "Succeeded"),
        (("RunningHealthy", "Succeeded", "ResourceReleased"), "Succeeded"),
        (("Submitted",) * 10 + ("Succeeded", "ResourceReleased"), "Succeeded"),
        (("Failed", "ScheduledToRestart", "Succeeded", "ResourceReleased"), "Succeeded"),
        (("RunningHealthy", "Failed"), "Failed"),
        (("DriverEvicted", "TerminatedWithoutReleaseResources"), "Failed"),
        (("RunningHealthy", "ResourceReleased"), "Failed"),
        (("Failed", "ScheduledToRestart"), "Submitted"),
    ],
)
def test_an_apache_applications_state(states: tuple[str, ...], state: str) -> None:
    assert only(made("SparkApplication", apache(*states))).state == state


@pytest.mark.parametrize(
    ("label", "manifest"),
    [
        ("batch.kubernetes.io/job-name", made("Job", {"ready": 1})),
        (
            "sparkoperator.k8s.io/app-name",
            made("SparkApplication", {"applicationState": {"state": "RUNNING"}}),
        ),
        ("spark.operator/spark-app-name", made("SparkApplication", apache("RunningHealthy"))),
    ],
)
def test_a_driver_tells_how_far_it_is(label: str, manifest: Manifest) -> None:
    said = json.dumps({"step": "report: totals", "tasks": 8, "completed": 3})
    assert only(manifest, pod(label, progress=said)).progress["completed"] == 3
    assert only(manifest, pod(label, progress="{half")).progress == {}
    assert only(manifest, pod(label, progress="[1]")).progress == {}
    assert only(manifest, pod(label, run="another", progress=said)).progress == {}


def test_of_a_failure_the_drivers_last_lines_are_told() -> None:
    log = "\n".join(f"line {number}" for number in range(40))
    ended = {"terminated": {"exitCode": 1, "message": log}}
    driver = pod("batch.kubernetes.io/job-name", containerStatuses=[{"state": ended}])
    failed = only(made("Job", {"conditions": [condition("Failed")]}), driver)
    assert failed.message.splitlines() == [f"line {number}" for number in range(28, 40)]
    silent = {"terminated": {"exitCode": 137}}
    killed = pod("batch.kubernetes.io/job-name", containerStatuses=[{"state": silent}])
    assert only(made("Job", {"conditions": [condition("Failed")]}), killed).message == (
        "exit code 137"
    )
    assert only(made("Job", {"conditions": [condition("Failed")]})).message == "BackoffLimit"


def test_a_driver_that_was_killed_for_memory_says_so_last() -> None:
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "report 22 of 22"}}
    driver = pod("batch.kubernetes.io/job-name", containerStatuses=[{"state": ended}])
    failed = only(made("Job", {"conditions": [condition("Failed")]}), driver)
    assert failed.message.splitlines() == [
        "report 22 of 22",
        "OOMKilled: more memory than its limit; raise resources.memoryOverhead",
    ]


def test_of_several_drivers_of_a_run_the_last_one_counts() -> None:
    label = "batch.kubernetes.io/job-name"
    early = pod(label, progress='{"step": "a"}')
    late = pod(label, progress='{"step": "b"}', created=T2)
    for pods in ((early, late), (late, early)):
        assert only(made("Job", {"ready": 1}), *pods).progress == {"step": "b"}


def test_a_driver_that_cannot_start_says_why() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff"}}
    driver = pod("batch.kubernetes.io/job-name", containerStatuses=[{"state": waiting}])
    assert only(made("Job", {"active": 1}), driver).trouble == "ImagePullBackOff"


def test_executors_that_do_not_start_are_told_of_while_a_run_goes_on() -> None:
    def executor(phase: str, scheduled: str) -> Manifest:
        found = pod("lockkeeper.dev/analysis", phase=phase)
        found["metadata"]["labels"]["lockkeeper.dev/spark-role"] = "executor"
        found["status"]["conditions"] = [{"type": "PodScheduled", "status": scheduled}]
        return found

    waiting, working = executor("Pending", "False"), executor("Running", "True")
    running, ended = made("Job", {"ready": 1}), made("Job", {"conditions": []})
    assert only(running, working).idle == ""
    assert only(running, waiting, working).idle == "1 executor does not start: Unschedulable"
    told = only(running, waiting, waiting).idle
    assert told == "2 executors do not start: Unschedulable"
    assert only(ended, waiting).idle == ""


def test_the_latest_run_is_the_first_and_other_objects_are_none() -> None:
    found = runs_of([made("Job", {}, "a"), made("Job", {}, "b", T2), made("CronJob", {}, "c")], [])
    assert [each.name for each in found] == ["b", "a"]
