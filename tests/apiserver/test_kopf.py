"""kopf as the operator's framework: what it does to objects, and what it does not see itself."""

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from control_plane import ControlPlane
from kopf.testing import KopfRunner
from ports import free_port
from simulated import World, eventually, in_loop, world
from test_faults import faulty, repairs

from lockkeeper_operator.destinations.plan import FINALIZER
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME, POD

FOREIGN = "kopf.zalando.org/KopfFinalizerMarker"
KINDS = ("Broker", "Destination", "Pod", "StatefulSet", "Service", "ConfigMap", "Secret", "Role")
SEEN_SECONDS = 15.0


async def objects(found: World) -> list[dict[str, Any]]:
    """Return all objects of the namespace that are of a kind that is watched."""
    return [
        item
        for kind in KINDS
        async for items, _ in found.api.pages(BY_NAME[kind], found.namespace)
        for item in items
    ]


@in_loop
async def test_objects_carry_no_trace_of_kopf_and_keep_what_others_put_there(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace) as found, found.operator():
        await found.broker()
        await found.destination(deletionPolicy="Delete")
        await found.ready("Broker", "demo")
        await found.ready("Destination", "orders")
        # Another operator on kopf, with kopf's own finalizer, looks after the same pod.
        theirs = {"metadata": {"finalizers": [FOREIGN]}}
        await found.api.merge(POD, namespace, "demo-0", theirs)
        await found.broker(replicas=2)
        await found.ready("Broker", "demo")
        await asyncio.sleep(2)
        metadata = [item["metadata"] for item in await objects(found)]
        assert len(metadata) > 10
        notes = {note for each in metadata for note in each.get("annotations", {})}
        assert [note for note in notes if "kopf" in note] == []
        finalizers = {note for each in metadata for note in each.get("finalizers", ())}
        assert finalizers == {FINALIZER, FOREIGN}
        assert "kopf" not in repr([each["managedFields"] for each in metadata]).replace(FOREIGN, "")
        await found.api.merge(POD, namespace, "demo-0", {"metadata": {"finalizers": None}})


@in_loop
async def test_what_went_while_a_watch_was_away_for_too_long_is_forgotten(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy") as operator,
    ):
        await found.broker()
        await found.destination()
        await found.destination("gone")
        await found.ready("Destination", "orders")
        await found.ready("Destination", "gone")
        proxy.go_down()
        await asyncio.sleep(1)
        await found.delete("Destination", "gone")
        await found.delete("Service", "demo-replicas")
        # Every watch that is begun where it ended is told that this is too long ago.
        proxy.outdated = True
        proxy.down = False

        async def is_forgotten() -> bool:
            return operator.caches.destinations.get(namespace, "gone") is None

        async def is_back() -> bool:
            return not await found.is_gone("Service", "demo-replicas")

        print(f"forgotten in {await eventually(is_forgotten, SEEN_SECONDS):.2f} s")
        print(f"made again in {await eventually(is_back, SEEN_SECONDS):.2f} s")
        assert proxy.gaps >= 10
        assert operator.caches.destinations.get(namespace, "orders") is not None
        print(f"repaired after the gap in {await repairs(found):.2f} s")


@in_loop
async def test_a_server_that_ends_each_watch_at_once_is_not_asked_without_pause(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with (
        world(control_plane, namespace) as found,
        faulty(found, tmp_path) as proxy,
        found.operator(tmp_path / "proxy"),
    ):
        await found.broker()
        await found.ready("Broker", "demo")
        proxy.brief = True
        proxy.cut()
        await asyncio.sleep(2)
        before, begun = proxy.watched, time.monotonic()
        await asyncio.sleep(6)
        each = (proxy.watched - before) / (time.monotonic() - begun) / len(proxy.kinds)
        assert each < 2, f"{each:.1f} watches a second of each kind"
        proxy.brief = False
        print(f"{each:.2f} watches a second of each kind")
        await eventually(lambda: _mended(found), SEEN_SECONDS)


async def _mended(found: World) -> bool:
    try:
        return await repairs(found) >= 0
    except AssertionError:
        return False


def test_kopf_run_works_as_developers_know_it(
    control_plane: ControlPlane,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    port, liveness = free_port(), free_port()
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    monkeypatch.setenv("LOCKKEEPER_PORT", str(port))
    monkeypatch.setenv("LOCKKEEPER_BROKER_IMAGE", "example/lockkeeper:1")

    async def asked(url: str) -> Any:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.json()

    @in_loop
    async def main() -> None:
        async with world(control_plane, namespace) as found:
            await found.broker()
            await found.ready("Broker", "demo", 40)
            await found.destination(deletionPolicy="Delete")
            await found.ready("Destination", "orders")
            assert await asked(f"http://127.0.0.1:{port}/readyz") == (
                200, {"ready": True, "problems": []},
            )  # fmt: skip
            assert await asked(f"http://127.0.0.1:{liveness}/healthz") == (200, {"problems": []})
            await found.delete("Destination", "orders")
            await eventually(lambda: found.is_gone("Destination", "orders"))

    command = ["run", "-A", "--standalone", "-m", "lockkeeper_operator.handlers"]
    probe = ["--liveness", f"http://127.0.0.1:{liveness}/healthz"]
    with KopfRunner([*command, *probe], timeout=60) as runner:
        main()
    assert runner.exit_code == 0
    assert runner.exception is None
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
