"""Whether a replica is ready, and what it says where it is not."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import aiohttp
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world
from test_faults import faulty

from lockkeeper_operator.kubernetes.api.kinds import BY_NAME
from lockkeeper_operator.process.election import RENEW_DEADLINE_SECONDS
from lockkeeper_operator.process.operator import Operator

PLURALS = sorted({kind.plural for kind in BY_NAME.values() if kind.namespaced})
STATUSES = ["brokers/status", "destinations/status", "journalanalyses/status"]
FINALIZERS = ["brokers/finalizers", "destinations/finalizers"]
LATE_SECONDS = 1.5


async def readiness(operator: Operator) -> tuple[int, list[str]]:
    """Return what the operator's endpoint answers to a kubelet."""
    url = f"http://127.0.0.1:{operator.endpoint.port}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        said = await answer.json()
        assert said["ready"] == (answer.status == 200) == (not said["problems"])
        return answer.status, said["problems"]


def allow(found: World, user: str, resources: list[str], verbs: list[str]) -> None:
    """Let *user* do that, and nothing else, in the namespace."""
    rule = {"apiGroups": ["*"], "resources": resources, "verbs": verbs}
    metadata = {"name": user, "namespace": found.namespace}
    api = "rbac.authorization.k8s.io"
    subject = {"kind": "User", "name": user, "apiGroup": api}
    for manifest in (
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": user},
            "subjects": [subject],
        },
    ):
        found.control_plane.kubectl("apply", "-f", "-", text=json.dumps(manifest))


@in_loop
async def test_an_operator_that_may_not_see_or_write_all_is_not_ready_and_says_why(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    user = f"limited-{namespace}"
    all_there_is = [*PLURALS, *STATUSES, *FINALIZERS]

    async def says(operator: Operator, *words: str) -> bool:
        status, problems = await readiness(operator)
        return status == 503 and all(word in " ".join(problems) for word in words)

    async with world(control_plane, namespace) as found, faulty(found, tmp_path) as proxy:
        proxy.user = user
        allow(found, user, [name for name in all_there_is if name != "secrets"], ["*"])
        async with found.operator(tmp_path / "proxy", wait=False) as operator:
            await eventually(lambda: _is(operator.endpoint.port))
            await eventually(lambda: says(operator, "secrets", "cannot list resource"))
            await asyncio.sleep(1)
            assert not operator.working.is_set()
            allow(found, user, all_there_is, ["*"])
            await eventually(lambda: _is(operator.working.is_set()), 30)
            assert await readiness(operator) == (200, [])
            await found.broker()
            await found.ready("Broker", "demo", 40)
            # A right is taken away under way: to watch one kind, then to write another.
            allow(found, user, [name for name in all_there_is if name != "services"], ["*"])
            proxy.cut()
            await eventually(lambda: says(operator, "services", "not watched"))
            allow(found, user, all_there_is, ["*"])
            await eventually(lambda: _ready(operator), 30)
            allow(found, user, all_there_is, ["get", "list", "watch"])
            await found.broker(destinationPolicies=[{"match": "A.>", "recorded": True}])
            await eventually(lambda: says(operator, "cannot patch resource"))
            allow(found, user, all_there_is, ["*"])
            await eventually(lambda: _ready(operator), 40)
            await found.ready("Broker", "demo")


@in_loop
async def test_a_standby_is_ready_as_soon_as_it_knows_who_leads(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(identity="one", election=True) as first,
    ):
        assert await readiness(first) == (200, [])
        proxy.go_down()
        second = found.operator(tmp_path / "proxy", wait=False, identity="two", election=True)
        async with second as waiting:
            await eventually(lambda: _is(waiting.endpoint.port))
            status, (problem,) = await readiness(waiting)
            assert status == 503
            assert problem.startswith("no leader is known")
            proxy.down = False
            await eventually(lambda: _ready(waiting))
            assert not waiting.leads


@in_loop
async def test_a_leader_whose_server_does_not_answer_gives_up_in_time_and_writes_no_more(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy", identity="one", election=True) as first,
    ):
        await found.broker()
        await found.ready("Broker", "demo")
        renewals = len(proxy.renewals)
        await eventually(lambda: _is(len(proxy.renewals) > renewals))
        proxy.hangs = lambda _verb, path: "/leases/lockkeeper-operator" in path
        begun = time.monotonic()
        took = await eventually(lambda: _is(not first.leads), 2 * RENEW_DEADLINE_SECONDS)
        print(f"gave up after {time.monotonic() - begun:.1f} s")
        assert took < RENEW_DEADLINE_SECONDS + LATE_SECONDS
        written = len(proxy.writes)
        await found.broker(destinationPolicies=[{"match": "A.>", "recorded": True}])
        await asyncio.sleep(3)
        assert len(proxy.writes) == written
        assert "could not be renewed" in first.failure


async def _ready(operator: Operator) -> bool:
    return (await readiness(operator))[0] == 200


async def _is(value: Any) -> Any:
    return value
