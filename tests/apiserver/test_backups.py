"""The operator and JournalBackups: from a resource to a Job and back to a status."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world
from test_cordons import make_node

from lockkeeper_operator.backups.desired.placing import REQUIRED
from lockkeeper_operator.backups.names import BACKUP_LABEL
from lockkeeper_operator.backups.reconciler import BackupReconciler
from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import POD, Kind
from lockkeeper_operator.kubernetes.children.ownership import controller_of
from lockkeeper_operator.names import INSTANCE_LABEL

KIND = "JournalBackup"
JOB = Kind("batch/v1", "Job", "jobs")
CRON_JOB = Kind("batch/v1", "CronJob", "cronjobs")
T1, T2 = "2027-03-01T03:00:00Z", "2027-03-01T03:05:00Z"
SECONDS = 30.0
"""A backup is looked at every 5 s."""
TO_CLAIM = {"broker": "demo", "target": {"claim": {"name": "backups"}}}
REPORT = {
    "place": "/backups/once/20270301T030000Z", "takenAt": T1, "mark": "db-3.log:77", "epoch": 4,
    "files": 3, "size": 9000, "pending": 12,
}  # fmt: skip


async def jobs(found: World, kind: Kind = JOB) -> list[dict[str, Any]]:
    return [item async for page, _ in found.api.pages(kind, found.namespace) for item in page]


async def until(found: World, name: str, state: str) -> dict[str, Any]:
    async def holds() -> bool:
        return bool((await found.get(KIND, name)).get("status", {}).get("state") == state)

    await eventually(holds, SECONDS, lambda: found.get(KIND, name))
    status: dict[str, Any] = (await found.get(KIND, name))["status"]
    return status


def affinity_of(made: dict[str, Any]) -> dict[str, Any]:
    """Return the affinity of the pods of a Job or CronJob."""
    spec = made["spec"].get("jobTemplate", made)["spec"]
    affinity: dict[str, Any] = spec["template"]["spec"]["affinity"]
    return affinity


def label_of(job: dict[str, Any]) -> str:
    """Return the name of the JournalBackup that a Job is of."""
    return str(job["metadata"]["labels"][BACKUP_LABEL])


def uid_of(job: dict[str, Any]) -> str:
    return str(job["metadata"]["uid"])


def maker_of(job: dict[str, Any]) -> str:
    """Return the uid of what a Job is of."""
    return str((controller_of(job) or {}).get("uid"))


def patch_status(found: World, kind: str, name: str, **status: Any) -> None:
    """Play the part of the Job's controller, or of the kubelet."""
    found.control_plane.kubectl(
        *("patch", kind, name, "-n", found.namespace, "--subresource=status"),
        *("--type=merge", "-p", json.dumps({"status": status})),
    )


def make_pod(found: World, job: dict[str, Any], message: str) -> None:
    """Make the pod of a Job, ended with *message*."""
    name = job["metadata"]["name"]
    labels = {BACKUP_LABEL: "once", "batch.kubernetes.io/job-name": name}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": job["spec"]["template"]["spec"],
    }
    arguments = ("apply", "-n", found.namespace, "-f", "-")
    found.control_plane.kubectl(*arguments, text=json.dumps(pod))
    ended = {"exitCode": 0, "message": message, "reason": "Completed"}
    one = {"name": "backup", "image": "i", "imageID": "i", "ready": False, "restartCount": 0}
    status = {**one, "state": {"terminated": ended}}
    patch_status(found, POD.plural, name, phase="Succeeded", containerStatuses=[status])


def make_of(
    found: World, owner: dict[str, Any], kind: Kind, template: dict[str, Any], name: str
) -> dict[str, Any]:
    """Make what a controller of Kubernetes makes of the *template* in *owner*, and return it."""
    maker = JOB if kind is POD else CRON_JOB
    metadata = owner["metadata"]
    reference = {
        "apiVersion": maker.api_version, "kind": maker.name, "name": metadata["name"],
        "uid": metadata["uid"], "controller": True,
    }  # fmt: skip
    # The simulated nodes end all pods that have this one, and are no brokers.
    labels = {**template["metadata"]["labels"]}
    labels.pop(INSTANCE_LABEL)
    own = {"name": name, "labels": labels, "ownerReferences": [reference]}
    manifest = {
        "apiVersion": kind.api_version, "kind": kind.name, "metadata": own,
        "spec": template["spec"],
    }  # fmt: skip
    arguments = ("apply", "-n", found.namespace, "-f", "-", "-o", "json")
    made = found.control_plane.kubectl(*arguments, text=json.dumps(manifest))
    answer: dict[str, Any] = json.loads(made)
    return answer


async def begin_both(found: World) -> None:
    """Have a Broker, and of it a copy and a schedule of copies."""
    await found.broker()
    await found.ready("Broker", "demo")
    await found.make(KIND, "nightly", {**TO_CLAIM, "schedule": {"cron": "0 3 * * *"}})
    await found.make(KIND, "once", TO_CLAIM)
    await found.ready(KIND, "nightly", SECONDS)


@in_loop
async def test_a_backup_waits_for_its_broker_is_made_once_and_told(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.make(KIND, "once", TO_CLAIM)
        await until(found, "once", "BrokerMissing")
        assert await found.condition(KIND, "once", "Reconciling") == ("True", "BrokerMissing")
        await found.broker()
        await until(found, "once", "Submitted")
        (job,) = await jobs(found)
        name = job["metadata"]["name"]
        volumes = job["spec"]["template"]["spec"]["volumes"]
        claims = [each["persistentVolumeClaim"] for each in volumes if each["name"] != "temporary"]
        assert {each["claimName"] for each in claims} == {"demo-journal", "backups"}
        make_pod(found, job, json.dumps(REPORT))
        done = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
        patch_status(
            found, "job", name, startTime=T1, conditions=done, completionTime=T2, succeeded=1
        )
        status = await until(found, "once", "Succeeded")
        assert status["result"] == REPORT
        assert status["lastSuccessfulTime"] == T2
        assert await found.condition(KIND, "once") == ("True", "BackedUp")
        # What was made is not made again, also when its Job is gone.
        control_plane.kubectl("delete", "job", name, "-n", namespace, "--wait=false")
        await found.make(KIND, "once", {**TO_CLAIM, "keep": 2})

        async def is_seen() -> bool:
            resource = await found.get(KIND, "once")
            seen: int = resource["status"]["observedGeneration"]
            return bool(seen == resource["metadata"]["generation"])

        await eventually(is_seen, SECONDS, lambda: found.get(KIND, "once"))
        assert await jobs(found) == []
        assert (await found.get(KIND, "once"))["status"]["result"] == REPORT


@in_loop
async def test_a_schedule_is_a_cron_job_that_follows_its_spec(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        schedule = {"cron": "0 3 * * *", "timeZone": "Europe/Berlin"}
        await found.make(KIND, "nightly", {**TO_CLAIM, "schedule": schedule})
        await found.ready(KIND, "nightly", SECONDS)
        (cron,) = await jobs(found, CRON_JOB)
        assert cron["metadata"]["name"] == "nightly-backup"
        assert cron["spec"]["schedule"] == "0 3 * * *"
        await found.make(KIND, "nightly", {**TO_CLAIM, "schedule": {"cron": "0 4 * * *"}})

        async def is_later() -> bool:
            return [each["spec"]["schedule"] for each in await jobs(found, CRON_JOB)] == [
                "0 4 * * *"
            ]

        await eventually(is_later, SECONDS)
        await found.make(KIND, "nightly", TO_CLAIM)

        async def is_single() -> bool:
            return not await jobs(found, CRON_JOB) and len(await jobs(found)) == 1

        await eventually(is_single, SECONDS)


@in_loop
async def test_a_journal_is_backed_up_and_analysed_whatever_else_is_wrong_with_its_broker(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.ready("Broker", "demo")
        # What the API server lets pass, and the operator does not.
        await found.broker(analytics={"timeZone": "Mars/Olympus"})

        async def is_refused() -> bool:
            return await found.condition("Broker", "demo") == ("False", "InvalidSpec")

        await eventually(is_refused)
        await found.make(KIND, "once", TO_CLAIM)
        await until(found, "once", "Submitted")
        await found.make("JournalAnalysis", "once", {"source": {"broker": "demo"}})

        async def is_submitted() -> bool:
            return await found.condition("JournalAnalysis", "once", "Submitted") == (
                "True", "Submitted",
            )  # fmt: skip

        await eventually(is_submitted, SECONDS, lambda: found.get("JournalAnalysis", "once"))


@in_loop
async def test_a_backup_stays_with_its_broker(control_plane: ControlPlane, namespace: str) -> None:
    async with world(control_plane, namespace) as found:
        await found.make(KIND, "once", TO_CLAIM)
        with pytest.raises(ApiError, match="broker is immutable"):
            await found.make(KIND, "once", {**TO_CLAIM, "broker": "another"})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"broker": "demo", "target": {}}, "expected exactly one of claim, url"),
        ({"broker": "demo", "target": {"url": "s3://b/c"}}, "target.url needs image.name"),
        ({**TO_CLAIM, "keep": 0}, "spec.keep"),
        ({**TO_CLAIM, "schedule": {"cron": "tomorrow"}}, "spec.schedule.cron"),
    ],
)
@in_loop
async def test_the_api_server_refuses_what_makes_no_sense(
    control_plane: ControlPlane, namespace: str, spec: dict[str, Any], said: str
) -> None:
    async with world(control_plane, namespace) as found:
        with pytest.raises(ApiError) as refused:
            await found.make(KIND, "wrong", spec)
        assert said in refused.value.message


@in_loop
async def test_a_backup_of_a_volume_of_one_node_goes_wherever_its_master_goes(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        first, second = await make_node(found, "a"), await make_node(found, "b")
        found.nodes.places["demo-0"] = first
        await begin_both(found)
        await until(found, "once", "Submitted")
        made = [*await jobs(found), *await jobs(found, CRON_JOB)]
        uid = (await found.get("Pod", "demo-0"))["metadata"]["uid"]
        found.nodes.places["demo-0"] = second
        await found.delete("Pod", "demo-0")

        async def has_moved() -> bool:
            pod = await found.api.read_if_there(POD, namespace, "demo-0")
            return pod is not None and pod["metadata"]["uid"] != uid

        await eventually(has_moved)
        await found.ready("Broker", "demo")
        (beside, also) = (affinity_of(each) for each in made)
        assert beside == also
        (term,) = beside["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        wanted = term["labelSelector"]["matchLabels"]

        async def leads_there() -> bool:
            pod = await found.get("Pod", "demo-0")
            labels: dict[str, str] = pod["metadata"]["labels"]
            return bool(pod["spec"]["nodeName"] == second) and wanted.items() <= labels.items()

        await eventually(leads_there, SECONDS, lambda: found.get("Pod", "demo-0"))
        assert await found.condition(KIND, "once", "Reconciling") == ("True", "Submitted")


@in_loop
async def test_a_backup_that_waits_beside_a_broker_which_is_hibernated_is_begun_anew(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        found.nodes.places["demo-0"] = await make_node(found, "a")
        await begin_both(found)
        await until(found, "once", "Submitted")
        (once,), (cron,) = await jobs(found), await jobs(found, CRON_JOB)
        template = cron["spec"]["jobTemplate"]
        made = [once, make_of(found, cron, JOB, template, "nightly-backup-29100001")]
        for job in made:
            assert affinity_of(job)["podAffinity"]
            make_of(found, job, POD, job["spec"]["template"], job["metadata"]["name"])
        await found.broker(hibernated=True)

        async def are_others() -> bool:
            before = {each["metadata"]["uid"] for each in made}
            present = await jobs(found)
            return len(present) == 2 and not before & {each["metadata"]["uid"] for each in present}

        await eventually(are_others, SECONDS, lambda: jobs(found))
        again = await jobs(found)
        assert sorted(map(maker_of, again)) == sorted(map(maker_of, made))
        assert not any("affinity" in each["spec"]["template"]["spec"] for each in again)
        assert await found.condition(KIND, "once", "Reconciling") == ("True", "Submitted")


@in_loop
async def test_of_two_backups_that_wait_on_two_nodes_the_one_that_has_the_volume_stays(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()
    reconcile = BackupReconciler.reconcile

    async def reconcile_and_count(self: BackupReconciler, space: str, name: str) -> float | None:
        after = await reconcile(self, space, name)
        looks[name] += 1
        return after

    async def looked_at_both() -> None:
        # One look may be under way.
        wanted = {name: looks[name] + 2 for name in ("once", "also")}

        async def have_looked() -> bool:
            return all(looks[name] >= many for name, many in wanted.items())

        await eventually(have_looked, SECONDS)

    monkeypatch.setattr(BackupReconciler, "reconcile", reconcile_and_count)
    async with world(control_plane, namespace) as found, found.operator() as operator:
        await found.broker(hibernated=True)
        nodes = {"once": await make_node(found, "a"), "also": await make_node(found, "b")}
        for name, node in nodes.items():
            await found.make(KIND, name, TO_CLAIM)
            await until(found, name, "Submitted")
            (job,) = [each for each in await jobs(found) if label_of(each) == name]
            template = job["spec"]["template"]
            placed = {**template, "spec": {**template["spec"], "nodeName": node}}
            make_of(found, job, POD, placed, job["metadata"]["name"])
        made = {label_of(job): job for job in await jobs(found)}
        operator._backups.now = lambda: datetime.now(UTC) + timedelta(minutes=2)
        await looked_at_both()
        assert {label_of(job): uid_of(job) for job in await jobs(found)} == {
            name: uid_of(job) for name, job in made.items()
        }
        # Its image is fetched after that.
        mounted = {"type": "PodReadyToStartContainers", "status": "True"}
        pod = made["once"]["metadata"]["name"]
        patch_status(found, POD.plural, pod, phase="Pending", conditions=[mounted])

        async def has_moved() -> bool:
            present = {label_of(job): job for job in await jobs(found)}
            return len(await jobs(found)) == 2 and uid_of(present["also"]) != uid_of(made["also"])

        await eventually(has_moved, SECONDS, lambda: jobs(found))
        await looked_at_both()
        now = {label_of(job): job for job in await jobs(found)}
        assert uid_of(now["once"]) == uid_of(made["once"])
        (term,) = affinity_of(now["also"])["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        assert term["matchFields"][0]["values"] == [nodes["once"]]
