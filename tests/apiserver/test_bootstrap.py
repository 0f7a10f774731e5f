"""The operator and `spec.bootstrap`: a Job fills the journal, then the brokers start."""

import json
from typing import Any

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world

from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import JOB, POD, STATEFUL_SET
from lockkeeper_operator.names import BOOTSTRAP_LABEL

SECONDS = 30.0
"""A Broker that waits is looked at every 5 s."""
FROM_CLAIM = {"bootstrap": {"claim": {"name": "backups", "path": "nightly"}}}


async def jobs(found: World) -> list[dict[str, Any]]:
    pages = found.api.pages(JOB, found.namespace, f"{BOOTSTRAP_LABEL}=demo")
    return [item async for page, _ in pages for item in page]


async def until_reason(found: World, reason: str) -> str:
    async def holds() -> bool:
        return (await found.condition("Broker", "demo"))[1] == reason

    await eventually(holds, SECONDS, lambda: found.get("Broker", "demo"))
    conditions = (await found.get("Broker", "demo"))["status"]["conditions"]
    (message,) = [each["message"] for each in conditions if each["type"] == "Ready"]
    return str(message)


def end(found: World, job: str, kind: str) -> None:
    """Play the part of the Job's controller."""
    before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
    at = "2027-03-01T03:00:00Z"
    status: dict[str, Any] = {
        "startTime": at,
        "conditions": [{"type": each, "status": "True"} for each in (before, kind)],
    }
    if kind == "Complete":
        status |= {"completionTime": at, "succeeded": 1}
    found.control_plane.kubectl(
        *("patch", "job", job, "-n", found.namespace, "--subresource=status"),
        *("--type=merge", "-p", json.dumps({"status": status})),
    )


@in_loop
async def test_brokers_start_once_a_job_has_filled_the_journal(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(**FROM_CLAIM)
        await until_reason(found, "Bootstrapping")
        assert await found.api.read_if_there(STATEFUL_SET, namespace, "demo") is None
        (job,) = await jobs(found)
        name = job["metadata"]["name"]
        end(found, name, "Failed")
        message = await until_reason(found, "BootstrapFailed")
        assert "mend spec.bootstrap, or delete the Job to try again" in message
        assert await found.condition("Broker", "demo", "Stalled") == ("True", "BootstrapFailed")
        # Another spec ends the Job that failed, and begins one of its own.
        await found.broker(bootstrap={"claim": {"name": "backups", "path": "weekly"}})
        await until_reason(found, "Bootstrapping")

        async def is_another() -> bool:
            return [each["metadata"]["name"] for each in await jobs(found)] not in ([], [name])

        await eventually(is_another, SECONDS)
        (second,) = await jobs(found)
        end(found, second["metadata"]["name"], "Complete")
        await found.ready("Broker", "demo", SECONDS)
        # A started broker is not filled again, whatever the spec says then.
        await found.broker(**FROM_CLAIM)

        async def is_seen() -> bool:
            broker = await found.get("Broker", "demo")
            seen: int = broker["status"]["observedGeneration"]
            return bool(seen == broker["metadata"]["generation"])

        await eventually(is_seen, SECONDS)
        assert [each["metadata"]["name"] for each in await jobs(found)] == [
            second["metadata"]["name"]
        ]


@in_loop
async def test_no_broker_starts_beside_what_still_fills_the_journal(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(**FROM_CLAIM)
        await until_reason(found, "Bootstrapping")
        (job,) = await jobs(found)
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-x",
                "labels": job["spec"]["template"]["metadata"]["labels"],
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": job["spec"]["template"]["spec"],
        }
        await found.api.request("POST", POD.path(namespace), body=pod)
        # Somebody is tired of waiting, and wants an empty journal. A pod takes its time to end.
        await found.broker()
        await eventually(lambda: found.is_gone("Job", name), SECONDS)
        message = f"pod {name}-x still fills the journal, and must end first"

        async def is_told() -> bool:
            return await until_reason(found, "Bootstrapping") == message

        await eventually(is_told, SECONDS)
        assert await found.api.read_if_there(STATEFUL_SET, namespace, "demo") is None
        await found.delete("Pod", f"{name}-x")
        await found.ready("Broker", "demo", SECONDS)


@in_loop
async def test_a_backup_is_waited_for_until_its_resource_is_there(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(bootstrap={"backup": "nightly"})
        message = await until_reason(found, "BackupMissing")
        assert message == (
            "spec.bootstrap.backup: there is no JournalBackup nightly in this namespace"
        )
        target = {"claim": {"name": "backups", "path": "all"}}
        await found.make(
            "JournalBackup", "nightly", {"broker": "gone", "target": target, "suspend": True}
        )
        await until_reason(found, "Bootstrapping")
        (job,) = await jobs(found)
        assert job["spec"]["template"]["spec"]["containers"][0]["args"][0] == "/source/all"


@in_loop
async def test_a_broker_that_has_served_comes_back_without_the_backup_it_began_with(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        target = {"claim": {"name": "backups"}}
        await found.make(
            "JournalBackup", "nightly", {"broker": "gone", "target": target, "suspend": True}
        )
        await found.broker(bootstrap={"backup": "nightly"})
        await until_reason(found, "Bootstrapping")
        (job,) = await jobs(found)
        end(found, job["metadata"]["name"], "Complete")
        await found.ready("Broker", "demo", SECONDS)
        # Months later nobody needs that backup any more, and somebody deletes a child by mistake.
        await found.delete("JournalBackup", "nightly")
        before = (await found.api.read(STATEFUL_SET, namespace, "demo"))["metadata"]["uid"]
        control_plane.kubectl("delete", "statefulset", "demo", "-n", namespace, "--wait=false")

        async def is_made_again() -> bool:
            present = await found.api.read_if_there(STATEFUL_SET, namespace, "demo")
            return present is not None and present["metadata"]["uid"] != before

        await eventually(is_made_again, SECONDS, lambda: found.get("Broker", "demo"))
        await found.ready("Broker", "demo", SECONDS)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "expected exactly one of backup, claim, url, journal"),
        ({"backup": "a", "claim": {"name": "b"}}, "expected exactly one of"),
        ({"url": "s3://bucket/a"}, "url needs image"),
        ({"backup": "a", "until": "yesterday"}, "spec.bootstrap.until"),
    ],
)
@in_loop
async def test_the_api_server_refuses_what_makes_no_sense(
    control_plane: ControlPlane, namespace: str, said: dict[str, Any], reason: str
) -> None:
    async with world(control_plane, namespace) as found:
        with pytest.raises(ApiError) as refused:
            await found.broker(bootstrap=said)
        assert reason in refused.value.message
