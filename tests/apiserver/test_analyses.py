"""The operator and JournalAnalyses: from a resource to a Job and back to a status."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world
from test_faults import faulty

from lockkeeper_operator.analyses.names import (
    ANALYSIS_LABEL,
    DRIVER,
    PROGRESS_ANNOTATION,
    SPARK_ROLE_LABEL,
)
from lockkeeper_operator.analyses.reconciler import ACTIVE_SECONDS
from lockkeeper_operator.kubernetes.api.kinds import EVENT, POD, Kind
from lockkeeper_operator.kubernetes.api.server import MERGE, ApiServer
from lockkeeper_operator.kubernetes.children.unwatched import UnwatchedChildren
from lockkeeper_operator.kubernetes.jobs import JOB_LABEL
from lockkeeper_operator.kubernetes.times import written
from lockkeeper_operator.process.operator import analytics_image

KIND = "JournalAnalysis"
JOB = Kind("batch/v1", "Job", "jobs")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
T1, T2 = "2027-03-01T03:00:00Z", "2027-03-01T03:05:00Z"
SUCCEEDED = {
    "state": "Succeeded", "Submitted": "True", "Running": "False", "Succeeded": "True",
    "Failed": "False",
}  # fmt: skip
RULED = {
    "source": {"claim": {"name": "journal"}}, "engine": "local", "rules": ["p99 > 5s for 10m"],
}  # fmt: skip
BROKEN = "p99 > 5s for 10m: ORDERS for 660 s from 2027-03-01T01:00:00Z on, up to 7 s"
SECONDS = 30.0
"""A run is looked at every 5 s."""


def make_claim(found: World, name: str) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    arguments = ("apply", "-n", found.namespace, "-f", "-")
    found.control_plane.kubectl(*arguments, text=json.dumps(claim))


async def jobs(found: World) -> list[dict[str, Any]]:
    pages = found.api.pages(JOB, found.namespace)
    return [item async for page, _ in pages for item in page]


async def until(found: World, name: str, state: str) -> dict[str, Any]:
    async def holds() -> bool:
        return bool((await found.get(KIND, name)).get("status", {}).get("state") == state)

    await eventually(holds, SECONDS, lambda: found.get(KIND, name))
    status: dict[str, Any] = (await found.get(KIND, name))["status"]
    return status


async def until_seen(found: World, name: str) -> None:
    """Wait for a status that is about the present spec."""

    async def is_seen() -> bool:
        resource = await found.get(KIND, name)
        seen: int = resource["status"]["observedGeneration"]
        return bool(seen == resource["metadata"]["generation"])

    await eventually(is_seen, SECONDS, lambda: found.get(KIND, name))


async def how_it_ended(found: World, name: str) -> dict[str, str]:
    """Return the state, and the status of each condition."""
    status = (await found.get(KIND, name))["status"]
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    return {"state": status["state"], **conditions}


async def make_driver(found: World, analysis: str, job: str) -> None:
    labels = {ANALYSIS_LABEL: analysis, SPARK_ROLE_LABEL: DRIVER, JOB_LABEL: job}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "driver", "namespace": found.namespace, "labels": labels},
        "spec": {"containers": [{"name": "driver", "image": "example/none:1"}]},
    }
    await found.api.create(POD, pod)


async def is_told_as_broken(found: World, message: str) -> bool:
    """Return whether there is an event about a broken rule with this *message*."""
    pages = found.api.pages(EVENT, found.namespace)
    said = [(item["reason"], item["message"]) async for items, _ in pages for item in items]
    return ("RuleBroken", message) in said


def report(found: World, job: str, **status: Any) -> None:
    """Play the part of the Job's controller."""
    text = json.dumps({"status": status})
    found.control_plane.kubectl(
        *("patch", "job", job, "-n", found.namespace, "--subresource=status"),
        *("--type=merge", "-p", text),
    )


@in_loop
async def test_an_analysis_waits_for_its_journal_runs_once_and_tells_how_it_went(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        spec = {"source": {"claim": {"name": "journal"}}, "engine": "local"}
        await found.make(KIND, "once", spec)
        status = await until(found, "once", "ClaimMissing")
        assert status["engine"] == "local"
        assert await jobs(found) == []
        make_claim(found, "journal")
        await until(found, "once", "Submitted")
        (job,) = await jobs(found)
        name = job["metadata"]["name"]
        report(found, name, startTime=T1, active=1, ready=1)
        await until(found, "once", "Running")
        done = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
        report(found, name, conditions=done, completionTime=T2, active=0, ready=0, succeeded=1)
        status = await until(found, "once", "Succeeded")
        assert status["history"][0]["finished"] == T2
        assert status["result"] == f"{status['page']}{name}/"
        await found.told("RunSucceeded")
        # What is left of a run is not made again.
        control_plane.kubectl("delete", "deployment", "once-page", "-n", namespace, "--wait=false")
        control_plane.kubectl("delete", "job", name, "-n", namespace, "--wait=false")
        await found.make(KIND, "once", {**spec, "backoffLimit": 9})

        async def page_is_back() -> bool:
            return await found.api.read_if_there(DEPLOYMENT, namespace, "once-page") is not None

        await eventually(page_is_back, SECONDS)
        await until_seen(found, "once")
        assert await jobs(found) == []
        assert await how_it_ended(found, "once") == SUCCEEDED
        # Another question is another run.
        await found.make(KIND, "once", {**spec, "since": "1h"})
        await until(found, "once", "Submitted")
        assert [each["metadata"]["name"] == name for each in await jobs(found)] == [False]
        # The first one was answered already.
        await found.make(KIND, "once", spec)
        await until(found, "once", "Succeeded")
        assert await how_it_ended(found, "once") == SUCCEEDED


@in_loop
async def test_a_broken_rule_is_told_of_whenever_the_run_ends(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may end between any two answers of the API server."""
    ending: list[str] = []
    pods, children = UnwatchedChildren.pods, UnwatchedChildren.children

    async def end(api: ApiServer) -> None:
        """Let the driver write what it found and end, and its Job be complete."""
        said = {PROGRESS_ANNOTATION: json.dumps({"broken": [BROKEN]})}
        change = {"metadata": {"annotations": said}}
        await api.merge(POD, namespace, "driver", change)
        done = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
        ended = {"active": 0, "ready": 0, "succeeded": 1}
        status = {"conditions": done, "completionTime": T2, **ended}
        path = JOB.path(namespace, ending.pop(), "status")
        await api.request("PATCH", path, {}, {"status": status}, MERGE)

    async def pods_then_end(self: UnwatchedChildren, *of: Any) -> Any:
        seen = await pods(self, *of)
        if ending:
            await end(self._api)
        return seen

    async def children_then_end(self: UnwatchedChildren, *of: Any) -> Any:
        seen = await children(self, *of)
        if ending:
            await end(self._api)
        return seen

    async with world(control_plane, namespace) as found, found.operator():
        make_claim(found, "journal")
        for name, (read, replacement) in {
            "first": ("pods", pods_then_end), "second": ("children", children_then_end),
        }.items():  # fmt: skip
            await found.make(KIND, name, RULED)
            await until(found, name, "Submitted")
            job = (await found.get(KIND, name))["status"]["history"][0]["name"]
            await make_driver(found, name, job)
            report(found, job, startTime=T1, active=1, ready=1)
            await until(found, name, "Running")
            with monkeypatch.context() as patched:
                patched.setattr(UnwatchedChildren, read, replacement)
                ending.append(job)
                status = await until(found, name, "Succeeded")
            assert status["history"][0]["brokenRules"] == [BROKEN]
            assert await found.condition(KIND, name, "RulesKept") == ("False", "Broken")
            await eventually(partial(is_told_as_broken, found, f"{job}: {BROKEN}"), SECONDS)
            await found.delete("Pod", "driver")


@in_loop
async def test_a_broker_that_asks_for_analyses_has_them_by_its_schedule(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker(analytics={"schedule": "0 3 * * *", "timeZone": "Europe/Berlin"})
        await found.ready("Broker", "demo")
        resource = await found.get(KIND, "demo-regular")
        assert resource["spec"]["source"] == {"broker": "demo"}

        async def is_scheduled() -> bool:
            status = (await found.get(KIND, "demo-regular")).get("status", {})
            return any(
                (each["type"], each["reason"]) == ("Submitted", "Scheduled")
                for each in status.get("conditions", ())
            )

        await eventually(is_scheduled, SECONDS, lambda: found.get(KIND, "demo-regular"))
        await found.broker(analytics={})

        async def is_gone() -> bool:
            return await found.is_gone(KIND, "demo-regular")

        await eventually(is_gone, SECONDS)


@in_loop
async def test_what_the_api_server_refuses_is_told_and_tried_again_later(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        make_claim(found, "journal")
        await found.make(
            KIND,
            "wrong",
            {
                "source": {"claim": {"name": "journal"}},
                "engine": "local",
                "pods": {"templatePatch": {"spec": {"restartPolicy": "Always"}}},
            },
        )

        async def is_refused() -> bool:
            return bool((await found.get(KIND, "wrong")).get("status", {}).get("submission"))

        await eventually(is_refused, SECONDS, lambda: found.get(KIND, "wrong"))
        status = (await found.get(KIND, "wrong"))["status"]
        assert "restartPolicy" in status["submission"]["message"]
        assert await found.condition(KIND, "wrong", "Submitted") in (
            ("False", "Refused"), ("False", "BackOff"),
        )  # fmt: skip


@in_loop
async def test_a_run_that_is_refused_again_and_again_is_tried_when_its_time_has_come(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockkeeper_operator.analyses.plan.FIRST_DELAY", timedelta(seconds=1))
    async with world(control_plane, namespace) as found, found.operator():
        make_claim(found, "journal")
        wrong = {"templatePatch": {"spec": {"restartPolicy": "Always"}}}
        await found.make(
            KIND,
            "wrong",
            {"source": {"claim": {"name": "journal"}}, "engine": "local", "pods": wrong},
        )

        async def is_refused_for_the_fourth_time() -> bool:
            status = (await found.get(KIND, "wrong")).get("status", {})
            return bool(status.get("submission", {}).get("failures", 0) >= 4)

        # After 1 s, 2 s and 4 s, and not once a minute.
        await eventually(is_refused_for_the_fourth_time, SECONDS, lambda: found.get(KIND, "wrong"))


@in_loop
async def test_an_analysis_goes_with_what_it_made_as_soon_as_its_time_has_come(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        make_claim(found, "journal")
        spec = {"source": {"claim": {"name": "journal"}}, "engine": "local"}
        await found.make(KIND, "once", {**spec, "ttlSecondsAfterFinished": 5})
        await until(found, "once", "Submitted")
        (job,) = await jobs(found)
        name = job["metadata"]["name"]
        report(found, name, startTime=written(datetime.now(UTC)), active=1, ready=1)
        await until(found, "once", "Running")
        done = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
        now = written(datetime.now(UTC))
        report(found, name, conditions=done, completionTime=now, active=0, ready=0, succeeded=1)
        await eventually(lambda: found.is_gone(KIND, "once"), SECONDS)


@in_loop
async def test_what_somebody_applies_of_an_analysis_is_left_and_told(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        make_claim(found, "journal")
        await found.make(
            KIND, "once", {"source": {"claim": {"name": "journal"}}, "engine": "local"}
        )
        await until(found, "once", "Submitted")
        theirs = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "once-page", "namespace": namespace},
            "spec": {"replicas": 0},
        }
        path = DEPLOYMENT.path(namespace, "once-page")
        query = {"fieldManager": "gitops", "force": "true"}
        await found.api.request("PATCH", path, query, theirs, "application/apply-patch+yaml")

        async def is_told() -> bool:
            pages = found.api.pages(EVENT, namespace)
            said = [item["message"] async for items, _ in pages for item in items]
            return "Deployment once-page: belongs to gitops (.spec.replicas)" in said

        await eventually(is_told, SECONDS)
        assert (await found.api.read(DEPLOYMENT, namespace, "once-page"))["spec"]["replicas"] == 0


@in_loop
async def test_an_operator_that_carries_out_no_analyses_says_so(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator(analytics=False):
        make_claim(found, "journal")
        await found.make(
            KIND, "once", {"source": {"claim": {"name": "journal"}}, "engine": "local"}
        )
        status = await until(found, "once", "Disabled")
        (condition,) = status["conditions"]
        assert (condition["type"], condition["status"]) == ("Submitted", "False")
        assert await jobs(found) == []


@in_loop
async def test_while_a_run_goes_on_nobody_looks_at_all_pods(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy"),
    ):
        make_claim(found, "journal")
        await found.make(
            KIND, "once", {"source": {"claim": {"name": "journal"}}, "engine": "local"}
        )
        await until(found, "once", "Submitted")
        (job,) = await jobs(found)
        report(found, job["metadata"]["name"], startTime=T1, active=1, ready=1)
        await until(found, "once", "Running")
        await asyncio.sleep(1)
        proxy.reads.clear()
        await asyncio.sleep(3 * ACTIVE_SECONDS)
        pods = [path for path in proxy.reads if "/pods?" in path]
        assert len(pods) >= 2
        assert [path for path in pods if "labelSelector" not in path] == []


def test_analyses_have_the_image_of_the_same_release() -> None:
    assert analytics_image("host:5000/a/lockkeeper:1.2") == "host:5000/a/lockkeeper-analytics:1.2"
    assert analytics_image("lockkeeper") == "lockkeeper-analytics"
    assert analytics_image("a/lockkeeper@sha256:0") == "a/lockkeeper-analytics"
