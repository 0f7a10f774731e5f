"""JournalBackups: what is made of one, when, and what its status tells."""

import json
from dataclasses import replace
from typing import Any

import pytest
from backup_objects import (
    JOURNAL,
    NIGHTLY,
    T1,
    T2,
    T3,
    observed,
    pod_spec,
    subject,
    there,
    told,
    true,
)

from lockkeeper_operator.backups.desired.run import run
from lockkeeper_operator.backups.plan import backup_plan
from lockkeeper_operator.backups.status.status import backup_status, refused_status
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.steps import (
    Apply,
    Conflict,
    Create,
    Delete,
    Refused,
    Wait,
)
from lockkeeper_operator.kubernetes.manifests import Manifest

REPORT = {
    "place": "/backups/nightly/20270301T030100Z", "takenAt": T1, "at": 1, "mark": "db-3.log:77",
    "epoch": 4, "files": 3, "size": 9000, "pending": 12, "format": "lockkeeper-backup/1",
}  # fmt: skip


def ended(kind: str) -> dict[str, Any]:
    condition = {"type": kind, "status": "True", "lastTransitionTime": T2, "message": "too often"}
    return {"startTime": T1, "completionTime": T2, "conditions": [condition]}


def pod(job: str, code: int, message: str, created: str = T1) -> Manifest:
    terminated = {"exitCode": code, "message": message}
    return {
        "metadata": {
            "labels": {"batch.kubernetes.io/job-name": job}, "creationTimestamp": created
        },
        "status": {"containerStatuses": [{"state": {"terminated": terminated}}]},
    }  # fmt: skip


def arguments(of: BackupSubject) -> list[str]:
    (container,) = pod_spec(of)["containers"]
    found: list[str] = container["args"]
    return found


def test_a_job_reads_the_journal_and_writes_to_the_claim_beside_it() -> None:
    spec = pod_spec(subject(keep=3))
    assert arguments(subject(keep=3)) == [
        "/var/lib/lockkeeper/kahadb", "/backups/nightly", "--keep", "3",
        "--report", "/dev/termination-log",
    ]  # fmt: skip
    claims = {
        each["name"]: each["persistentVolumeClaim"]
        for each in spec["volumes"]
        if "persistentVolumeClaim" in each
    }
    assert claims == {
        "journal": {"claimName": "orders-journal", "readOnly": True},
        "target": {"claimName": "backups"},
    }
    (container,) = spec["containers"]
    mounts = {each["name"]: each.get("readOnly", False) for each in container["volumeMounts"]}
    assert mounts == {"journal": True, "target": False, "temporary": False}
    assert spec["securityContext"]["fsGroup"] == 10001
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_a_url_needs_an_image_and_gets_the_credentials() -> None:
    target = {"url": "s3://bucket/orders"}
    with pytest.raises(ValueError, match=r"target\.url needs image\.name"):
        subject(target=target)
    found = subject(target=target, image={"name": "example/own:2"}, credentials="s3")
    (container,) = pod_spec(found)["containers"]
    assert arguments(found)[1] == "s3://bucket/orders"
    assert container["image"] == "example/own:2"
    assert container["envFrom"] == [{"secretRef": {"name": "s3"}}]
    assert "target" not in {each["name"] for each in container["volumeMounts"]}
    assert "imagePullSecrets" not in pod_spec(found)


@pytest.mark.parametrize("target", [{}, {"claim": {"name": "a"}, "url": "s3://b/c"}])
def test_there_is_exactly_one_target(target: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected exactly one of claim, url"):
        subject(target=target)


def test_a_single_backup_is_made_once_and_again_when_it_asks_for_something_else() -> None:
    (step,) = backup_plan(observed(), subject())
    assert isinstance(step, Create)
    name = step.manifest["metadata"]["name"]
    job = there(run(subject()))
    assert backup_plan(observed(job), subject()) == ()
    assert backup_plan(observed(job=name, state="Succeeded"), subject()) == ()
    assert backup_plan(observed(job=name, state="Failed"), subject(keep=2, suspend=True)) == ()
    other = subject(target={"claim": {"name": "elsewhere"}})
    delete, create = backup_plan(observed(job, job=name, state="Succeeded"), other)
    assert delete == Delete("Job", name, "uid")
    assert isinstance(create, Create)
    assert create.manifest["metadata"]["name"] != name


@pytest.mark.parametrize("status", [{"active": 1, "ready": 0}, {"active": 1, "ready": 1}])
def test_a_backup_whose_job_is_removed_to_stop_it_is_not_begun_again(
    status: dict[str, Any],
) -> None:
    job = there(run(subject()), status=status)
    going = told(observed(job), subject())
    gone = observed(**going)
    assert backup_plan(gone, subject()) == ()
    after = told(gone, subject())
    assert (after["state"], after["run"], true(after)) == (
        "Removed", subject().run, {"Stalled": "Removed"},
    )  # fmt: skip
    message = f"Job {subject().run} was removed before its end was seen"
    assert after["conditions"][2]["message"] == message
    assert backup_plan(observed(**after), subject()) == ()
    # Another spec asks for another one, which may be refused, and is tried again.
    other = subject(target={"claim": {"name": "elsewhere"}})
    (step,) = backup_plan(observed(**after), other)
    assert isinstance(step, Create)
    refused = Refused("Job", other.run, "exceeded quota")
    assert backup_plan(observed(**told(gone, other, (), refused)), other) == (step,)


def test_a_copy_of_a_schedule_that_is_removed_leaves_the_schedule() -> None:
    of = subject(**NIGHTLY)
    job = there(run(subject()), status={"active": 1, "ready": 1})
    going = told(observed(there(run(of)), job), of)
    assert (going["state"], going["run"]) == ("Running", job["metadata"]["name"])
    after = told(observed(there(run(of)), **going), of)
    assert (after["state"], true(after)) == ("Scheduled", {"Ready": "Scheduled"})
    assert "run" not in after and "job" not in after


def test_a_schedule_is_kept_as_it_is_to_be_and_ended_with_its_spec() -> None:
    (step,) = backup_plan(observed(), subject(**NIGHTLY))
    assert isinstance(step, Create)
    assert step.manifest["spec"]["concurrencyPolicy"] == "Forbid"
    assert step.manifest["spec"]["timeZone"] == "Europe/Berlin"
    cron = there(run(subject(**NIGHTLY)))
    assert backup_plan(observed(cron), subject(**NIGHTLY)) == ()
    (step,) = backup_plan(observed(cron), subject(**NIGHTLY, suspend=True))
    assert isinstance(step, Apply)
    assert step.manifest["spec"]["suspend"] is True
    delete, create = backup_plan(observed(cron), subject())
    assert delete == Delete("CronJob", "nightly-backup", "uid")
    assert isinstance(create, Create)


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (
            subject(Journal(problem="BrokerMissing", why="there is no Broker orders")),
            "BrokerMissing",
        ),
        (subject(replace(JOURNAL, claim="backups")), "TargetIsJournal"),
        (subject(suspend=True), "Suspended"),
        (subject(Journal(problem="ClaimMissing", why="-"), **NIGHTLY), "ClaimMissing"),
    ],
)
def test_a_backup_waits_and_says_what_for(of: BackupSubject, reason: str) -> None:
    (step,) = backup_plan(observed(), of)
    assert isinstance(step, Wait)
    assert step.reason == reason
    status = told(observed(), of, (step,))
    assert status["state"] == reason
    verdict = "Reconciling" if reason.endswith("Missing") else "Stalled"
    assert true(status) == {verdict: reason}


def test_a_job_of_somebody_else_is_left_alone() -> None:
    job = there(run(subject()))
    job["metadata"]["ownerReferences"] = [{**job["metadata"]["ownerReferences"][0], "uid": "x"}]
    (step,) = backup_plan(observed(job), subject())
    assert isinstance(step, Conflict)
    assert true(told(observed(job), subject(), (step,))) == {"Stalled": "Conflict"}


def test_what_was_made_is_told_and_outlives_its_pod() -> None:
    manifest = run(subject())
    name = manifest["metadata"]["name"]
    status = told(observed(there(manifest, status={"ready": 1})), subject())
    assert (status["state"], true(status)) == ("Running", {"Reconciling": "Running"})
    done = there(manifest, status=ended("Complete"))
    pods = (pod(name, 1, "no room"), pod(name, 0, json.dumps(REPORT), T2))
    status = told(observed(done, pods=pods), subject())
    assert (status["state"], true(status)) == ("Succeeded", {"Ready": "BackedUp"})
    assert status["lastSuccessfulTime"] == T2
    assert status["result"] == {
        name: value for name, value in REPORT.items() if name not in ("at", "format")
    }
    assert backup_status(observed(**status), subject(), (), (), 2, "later") is None
    again = told(observed(there(manifest, status={"ready": 1}), **status), subject())
    assert (again["result"], true(again)) == (status["result"], {"Reconciling": "Running"})


def test_the_last_result_stays_when_its_job_is_removed_before_an_earlier_one() -> None:
    of = subject(**NIGHTLY)
    cron, jobs, pods = there(run(of)), [], []
    for name, at in (("nightly-1", T1), ("nightly-2", T2)):
        job = there(run(subject()), status={**ended("Complete"), "completionTime": at})
        job["metadata"] |= {"name": name, "creationTimestamp": at}
        jobs.append(job)
        pods.append(pod(name, 0, json.dumps({**REPORT, "takenAt": at})))
    both = told(observed(cron, *jobs, pods=tuple(pods)), of)
    assert (both["run"], both["result"]["takenAt"]) == ("nightly-2", T2)
    left = told(observed(cron, jobs[0], pods=(pods[0],), **both), of)
    assert (left["lastSuccessfulTime"], left["result"]) == (T2, both["result"])


def test_what_went_wrong_is_told_with_the_last_words() -> None:
    manifest = run(subject())
    name = manifest["metadata"]["name"]
    words = "\n".join(["noise"] * 9 + ["lockkeeper: /backups/nightly: No space left on device"])
    job = there(manifest, status=ended("Failed"))
    status = told(observed(job, pods=(pod(name, 1, words),), result=REPORT_KEPT), subject())
    assert true(status) == {"Stalled": "Failed"}
    message = status["conditions"][2]["message"]
    assert message.startswith(f"Job {name}: noise")
    assert message.endswith("No space left on device")
    assert message.count("noise") == 4
    assert status["result"] == REPORT_KEPT


REPORT_KEPT = {name: value for name, value in REPORT.items() if name not in ("at", "format")}


def test_a_schedule_is_ready_before_its_first_backup() -> None:
    of = subject(**NIGHTLY)
    status = told(observed(there(run(of))), of)
    assert (status["state"], true(status)) == ("Scheduled", {"Ready": "Scheduled"})


def test_what_the_api_server_refuses_is_told() -> None:
    refused = Refused("Job", "nightly-backup-1", "exceeded quota")
    status = told(observed(), subject(), (), refused)
    assert true(status) == {"Stalled": "Refused"}
    assert "exceeded quota" in status["conditions"][2]["message"]


def test_a_report_that_is_none_is_passed_over() -> None:
    manifest = run(subject())
    name = manifest["metadata"]["name"]
    done = there(manifest, status=ended("Complete"))
    status = told(observed(done, pods=(pod(name, 0, "{}"),)), subject())
    assert "result" not in status
    assert true(status) == {"Ready": "BackedUp"}


def test_a_spec_that_is_none_is_told_once() -> None:
    status = refused_status("InvalidSpec", "spec.keep: too many", {"state": "Succeeded"}, 3, T3)
    assert status is not None
    assert (status["state"], true(status)) == ("Succeeded", {"Stalled": "InvalidSpec"})
    assert refused_status("InvalidSpec", "spec.keep: too many", status, 3, "later") is None
