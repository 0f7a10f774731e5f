"""The operator between a cluster that misbehaves and brokers that go on."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane
from faulty_proxy import FaultyProxy
from simulated import World, eventually, in_loop, world

from lockkeeper_operator.kubernetes.api.errors import ApiError

DRIFT_SECONDS = 5.0
OUTAGE_SECONDS = 60
FAILOVER_SECONDS = 20.0
AT_ONCE = 4
"""So many operators are killed at once; they mostly wait."""
PARTS = ("spec", "data", "rules", "roleRef", "subjects", "type")


@asynccontextmanager
async def faulty(found: World, directory: Path, name: str = "proxy") -> AsyncIterator[FaultyProxy]:
    """Start a proxy, whose kubeconfig is *directory*/*name*."""
    proxy = FaultyProxy(found.control_plane.url, found.control_plane.authority)
    await proxy.start()
    found.control_plane.write_kubeconfig(directory / name, proxy.url)
    try:
        yield proxy
    finally:
        await proxy.stop()


async def all_ready(found: World) -> None:
    await found.ready("Broker", "demo", 60)
    await found.ready("Destination", "orders", 60)


async def repairs(found: World) -> float:
    """Return how long it takes until a child that was changed is as it was."""
    role = await found.get("Role", "demo")
    found.control_plane.kubectl(
        "patch", "role", "demo", "-n", found.namespace, "--type=merge", "-p", '{"rules":[]}'
    )

    async def repaired() -> bool:
        return bool((await found.get("Role", "demo"))["rules"] == role["rules"])

    return await eventually(repaired, DRIFT_SECONDS)


@in_loop
async def test_a_busy_server_is_asked_again(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with world(control_plane, namespace) as found, faulty(found, tmp_path) as proxy:
        turns = itertools.count()
        proxy.busy = lambda _verb, _path: next(turns) % 3 == 0
        async with found.operator(tmp_path / "proxy"):
            await found.broker()
            await found.destination(deletionPolicy="Delete")
            await all_ready(found)
            await found.delete("Destination", "orders")
            await eventually(lambda: found.is_gone("Destination", "orders"), 30)


@in_loop
async def test_watches_that_are_cut_lose_nothing(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy"),
    ):

        async def cut_again_and_again() -> None:
            while True:
                await asyncio.sleep(0.7)
                proxy.cut()

        cutting = asyncio.create_task(cut_again_and_again())
        await found.broker()
        await found.destination()
        await all_ready(found)
        cutting.cancel()
        await asyncio.sleep(6)
        before = await found.versions()
        assert proxy.cut() > 10
        await asyncio.sleep(4)
        assert await found.versions() == before
        print(f"repaired after cuts in {await repairs(found):.2f} s")


def watches_destinations(_verb: str, path: str) -> bool:
    return "/destinations?" in path and "watch=true" in path


@in_loop
async def test_what_is_made_while_its_watch_is_behind_is_taken_over_afterwards(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        # A census every second, where it is every ten minutes otherwise.
        found.operator(tmp_path / "proxy", resync=1.0) as operator,
    ):
        await found.broker()
        await found.destination("before")
        await found.ready("Destination", "before")
        proxy.holds = watches_destinations
        proxy.cut()
        await found.destination("orders")
        counted = len([path for path in proxy.reads if "/destinations?limit" in path])

        async def are_counted() -> bool:
            lists = [path for path in proxy.reads if "/destinations?limit" in path]
            return len(lists) > counted + 2

        await eventually(are_counted)
        assert operator.caches.destinations.get(namespace, "orders") is None
        proxy.holds = lambda _verb, _path: False
        await found.ready("Destination", "orders")


@pytest.mark.slow
@pytest.mark.patient
@in_loop
async def test_a_server_that_is_down_for_a_minute_is_waited_for(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy"),
    ):
        await found.broker()
        await found.destination(deletionPolicy="Delete")
        await all_ready(found)
        proxy.go_down()
        control_plane.kubectl("delete", "service", "demo-openwire", "-n", namespace)
        await found.delete("Destination", "orders")
        await asyncio.sleep(OUTAGE_SECONDS)
        assert await found.is_gone("Service", "demo-openwire")
        proxy.down = False

        async def is_back() -> bool:
            return not await found.is_gone("Service", "demo-openwire")

        print(f"seen {await eventually(is_back, 20):.1f} s after the outage")
        await eventually(lambda: found.is_gone("Destination", "orders"), 20)


async def end_state(found: World) -> dict[tuple[str, str], Any]:
    """Return what children are like, apart from what differs between any two clusters."""
    state: dict[tuple[str, str], Any] = {}
    for kind, name in (
        ("ServiceAccount", "demo"), ("Role", "demo"), ("RoleBinding", "demo"), ("Lease", "demo"),
        ("ConfigMap", "demo"), ("Service", "demo-openwire"), ("Service", "demo-replicas"),
        ("NetworkPolicy", "demo"), ("StatefulSet", "demo"),
        ("PersistentVolumeClaim", "demo-journal"),
    ):  # fmt: skip
        child = await found.get(kind, name)
        kept = {part: child[part] for part in PARTS if part in child}
        for own in ("clusterIP", "clusterIPs"):
            kept.get("spec", {}).pop(own, None)
        state[kind, name] = kept, child["metadata"]["labels"]
    for name in ("demo-users", "demo-client", "demo-user-client", "demo-admin"):
        state["Secret", name] = sorted((await found.get("Secret", name))["data"])
    return state


def without(state: Any, words: tuple[str, ...]) -> str:
    text = repr(state)
    for word in words:
        text = text.replace(word, "")
    return text


@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.timeout(900)
def test_an_operator_that_is_killed_at_any_step_is_followed_by_one_that_ends_the_same(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async def lived(limit: int | None) -> tuple[str, int]:
        """Return the end state, and how many writes the first operator was let do."""
        name = f"killed-after-{limit}".lower()
        control_plane.kubectl("create", "namespace", name)
        async with world(control_plane, name) as found, faulty(found, tmp_path, name) as proxy:
            await found.broker()
            await found.destination(deletionPolicy="Delete")
            proxy.limit = limit
            try:
                # It cannot begin to work without the first of its writes.
                async with found.operator(tmp_path / name, wait=limit is None):
                    if limit is None:
                        await all_ready(found)
                    else:
                        await eventually(lambda: _is(proxy.down), 60)
            except ApiError:
                assert proxy.down
            count = len(proxy.writes)
            async with found.operator():
                await all_ready(found)
                state = await end_state(found)
            ports = str(found.simulated.port), str(found.simulated.tls_port)
            uids = [(await found.get("Broker", "demo"))["metadata"]["uid"]]
            return without(state, (name, *ports, *uids)), count

    async def all_lived() -> None:
        expected, count = await lived(None)
        print(f"{count} writes from nothing to ready")
        assert count > 15
        at_once = asyncio.Semaphore(AT_ONCE)

        async def ends_the_same(limit: int) -> None:
            async with at_once:
                state, _ = await lived(limit)
                assert _without_hashes(state) == _without_hashes(expected), limit

        async with asyncio.TaskGroup() as group:
            for limit in range(count - 2):
                group.create_task(ends_the_same(limit))

    asyncio.run(all_lived())


def _without_hashes(text: str) -> str:
    """Return *text* without what depends on the namespace and the port."""
    return re.sub(r"'[0-9a-f]{16}'|volumeName.{0,60}", "", text)


@in_loop
async def test_of_two_operators_one_works_and_the_other_takes_over(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        AsyncExitStack() as stack,
    ):
        one = found.operator(tmp_path / "proxy", identity="one", election=True)
        two = found.operator(identity="two", election=True)
        first = await stack.enter_async_context(one)
        entering = asyncio.create_task(stack.enter_async_context(two))
        await found.broker()
        await found.destination()
        await all_ready(found)
        assert first.leads and not entering.done()
        # Cut off from the server, the first must give up before the second begins.
        proxy.go_down()
        begun = asyncio.get_running_loop().time()
        gave_up = await eventually(lambda: _is(not first.leads), FAILOVER_SECONDS)
        assert not entering.done()
        async with asyncio.timeout(FAILOVER_SECONDS):
            second = await entering
        took = asyncio.get_running_loop().time() - begun
        print(f"gave up after {gave_up:.1f} s, the other worked after {took:.1f} s")
        assert second.leads
        assert await repairs(found) < DRIFT_SECONDS


@in_loop
async def test_one_that_is_stopped_gives_the_lease_back(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, AsyncExitStack() as stack:
        async with found.operator(identity="one", election=True):
            two = found.operator(identity="two", election=True)
            entering = asyncio.create_task(stack.enter_async_context(two))
            await asyncio.sleep(3)
            assert not entering.done()
        begun = asyncio.get_running_loop().time()
        async with asyncio.timeout(8):
            await entering
        print(f"the other worked {asyncio.get_running_loop().time() - begun:.1f} s later")


async def _is(value: bool) -> bool:
    return value


@in_loop
async def test_one_object_that_is_nested_too_deep_keeps_nobody_from_others(
    control_plane: ControlPlane, namespace: str
) -> None:
    levels = 3000
    patch = '{"a":' * levels + "1" + "}" * levels
    head = '{"apiVersion":"lockkeeper.dev/v1alpha1","kind":"Broker","metadata":{"name":"deep"},'
    text = f'{head}"spec":{{"pods":{{"templatePatch":{patch}}}}}}}'
    async with world(control_plane, namespace) as found:
        async with found.operator():
            arguments = ("create", "--validate=false", "-n", namespace, "-f", "-")
            control_plane.kubectl(*arguments, text=text)
            await found.broker()
            await found.ready("Broker", "demo")

            async def is_refused() -> bool:
                return await found.condition("Broker", "deep") == ("False", "InvalidSpec")

            await eventually(is_refused)
        # A process that finds it when it begins.
        async with found.operator():
            await found.broker("another")
            await found.ready("Broker", "another")
