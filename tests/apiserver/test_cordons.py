"""Nodes that are cordoned in a real API server, and what becomes of masters there."""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from control_plane import ControlPlane
from simulated import World, eventually, in_loop, world
from test_faults import faulty

from lockkeeper_operator.kubernetes.api import server
from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import NODE
from lockkeeper_operator.kubernetes.api.server import connect
from lockkeeper_operator.kubernetes.cordons import LOOK_SECONDS, Cordons

FENCING = "POST /api/v1/fence"
PATIENCE_SECONDS = 10.0


async def make_node(found: World, name: str, cordoned: bool = False) -> str:
    """Make a node that has this name within the test; returns its name in the cluster."""
    full = f"{found.namespace}-{name}"
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": full},
        "spec": {"unschedulable": cordoned},
    }
    await found.api.create(NODE, node)
    return full


def of(found: World, names: frozenset[str]) -> set[str]:
    """Return which of *names* are nodes of this test."""
    return {name for name in names if name.startswith(f"{found.namespace}-")}


async def pods_by_name(found: World) -> dict[str, str]:
    names = [f"demo-{number}" for number in range(3)]
    return {name: (await found.get("Pod", name))["metadata"]["uid"] for name in names}


@in_loop
async def test_masters_leave_cordoned_nodes_as_long_as_another_node_has_a_standby(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator(namespaces=None):
        for number in range(3):
            found.nodes.places[f"demo-{number}"] = await make_node(found, f"n{number}")
        await found.broker(replicas=3)
        await found.ready("Broker", "demo")
        broker, before = found.nodes.brokers["demo"], await pods_by_name(found)

        async def settled_on(name: str) -> bool:
            status = (await found.get("Broker", "demo"))["status"]
            standbys = await found.condition("Broker", "demo", "StandbysReady")
            return status.get("master") == name == broker.master and standbys[0] == "True"

        await eventually(lambda: settled_on("demo-0"))
        for node, successor in (("n0", "demo-1"), ("n1", "demo-2")):
            control_plane.kubectl("cordon", f"{namespace}-{node}")
            await eventually(partial(settled_on, successor))
        # Nobody is left to hand over to: the master stays, however often that is looked at.
        calls = broker.calls.count(FENCING)
        control_plane.kubectl("cordon", f"{namespace}-n2")

        async def is_told() -> bool:
            return "MasterStays" in await found.events()

        await eventually(is_told)
        await asyncio.sleep(2 * LOOK_SECONDS)
        assert await settled_on("demo-2")
        assert broker.calls.count(FENCING) == calls
        # The first node is back, which tells the master on the third to go there.
        control_plane.kubectl("uncordon", f"{namespace}-n0")
        await eventually(lambda: settled_on("demo-0"))
        # All of that without a pod less, and everybody who was fenced stands by again.
        assert await pods_by_name(found) == before
        assert not any(found.nodes.pod(name).fenced for name in before)
        await found.told("HandingOver")
        cause = (await found.get("Broker", "demo"))["status"]["lastFailover"]["cause"]
        assert cause.startswith("demo-2")


@in_loop
async def test_a_master_hands_over_again_when_its_node_is_cordoned_again(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = "lockkeeper_operator.brokers.handovers.TAKE_OVER_SECONDS_MAX"
    monkeypatch.setattr(limit, PATIENCE_SECONDS)
    async with world(control_plane, namespace) as found, found.operator(namespaces=None):
        for number in range(2):
            found.nodes.places[f"demo-{number}"] = await make_node(found, f"n{number}")
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        broker = found.nodes.brokers["demo"]

        async def settled_on(name: str) -> bool:
            status = (await found.get("Broker", "demo"))["status"]
            standbys = await found.condition("Broker", "demo", "StandbysReady")
            return status.get("master") == name == broker.master and standbys[0] == "True"

        await eventually(partial(settled_on, "demo-0"))
        control_plane.kubectl("cordon", f"{namespace}-n0")
        await eventually(partial(settled_on, "demo-1"))
        control_plane.kubectl("uncordon", f"{namespace}-n0")
        await asyncio.sleep(2 * LOOK_SECONDS)
        # The other one dies: the first is the master again, in the same pod as before.
        await found.delete("Pod", "demo-1")
        await eventually(partial(settled_on, "demo-0"))
        await asyncio.sleep(PATIENCE_SECONDS)
        control_plane.kubectl("cordon", f"{namespace}-n0")
        await eventually(partial(settled_on, "demo-1"), explain=found.events)


@in_loop
async def test_cordoned_nodes_are_read_by_the_page_and_changes_are_told(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(control_plane, namespace) as found:
        monkeypatch.setattr(server, "PAGE_OBJECTS", 1)
        cordoned = {await make_node(found, f"c{number}", cordoned=True) for number in range(3)}
        open_node = await make_node(found, "open")
        told: list[frozenset[str]] = []
        cordons = Cordons(found.api, told.append)
        await cordons.look()
        assert of(found, cordons.nodes) == of(found, told[-1]) == cordoned
        await cordons.look()
        assert len(told) == 1
        control_plane.kubectl("uncordon", min(cordoned))
        control_plane.kubectl("cordon", open_node)
        await cordons.look()
        assert of(found, told[-1]) == {min(cordoned), open_node}
        assert of(found, cordons.nodes) == cordoned - {min(cordoned)} | {open_node}


@in_loop
async def test_who_may_not_see_nodes_is_told_once_and_knows_none(
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lockkeeper_operator.kubernetes.cordons.FORBIDDEN_SECONDS", 0.05)
    async with world(control_plane, namespace) as found, faulty(found, tmp_path) as proxy:
        await make_node(found, "west", cordoned=True)
        api = await connect(str(tmp_path / "proxy"))
        told: list[frozenset[str]] = []
        cordons = Cordons(api, told.append)
        await cordons.look()
        assert of(found, cordons.nodes)
        proxy.user = f"blind-{namespace}"
        with pytest.raises(ApiError):
            await cordons.look()
        # One look that failed says nothing about nodes.
        assert of(found, cordons.nodes)
        keeping = asyncio.create_task(cordons.keep())

        async def is_blind() -> bool:
            return len(told) == 2 and not cordons.nodes

        await eventually(is_blind)
        await asyncio.sleep(0.3)
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        await api.close()
    warnings = [each for each in caplog.records if each.levelname == "WARNING"]
    assert len([each for each in warnings if "cordoned" in each.message]) == 1
