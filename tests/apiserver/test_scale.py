"""Many Brokers with 20 Destinations each: memory, time from change to status, writes at rest.

Every second one has a TLS listener, whose certificate the operator issues. All the while the
Brokers' Leases are renewed, as their masters do every second.

10 Brokers unless LOCKKEEPER_SCALE_BROKERS says otherwise; `make scale` takes 500, which needs
twenty minutes or so on two cores.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from control_plane import ControlPlane
from ports import free_port
from simulated import in_loop

from lockkeeper_api.meta import API_VERSION
from lockkeeper_operator.kubernetes.api.kinds import BROKER, BY_NAME, DESTINATION
from lockkeeper_operator.kubernetes.api.server import ApiServer, connect

BROKERS = int(os.environ.get("LOCKKEEPER_SCALE_BROKERS", "10"))
EACH = 20
TLS_EVERY = 2
TLS_LISTENERS = [{"name": "openwire", "tls": {}}]
RENEWALS = float(os.environ.get("LOCKKEEPER_SCALE_RENEWALS", BROKERS))
"""Of the Brokers' Leases, a second; a master renews its own every second."""
MEMORY_BYTES_MAX = 220_000_000
CHANGE_SECONDS_MAX = 1.0
CHANGES, CHANGES_PER_SECOND = 200, 10
REST_SECONDS = 30
BEFORE_REST_SECONDS = 30
"""For so long what has just changed is asked for more often than the rest."""
CORE_SHARE_MAX = 0.1
START_SECONDS = 20 + BROKERS // 12
SETTLE_SECONDS = 1200.0
WRITES = re.compile(r'api_requests_total\{status="\d+",verb="(?:PATCH|POST|PUT|DELETE)"\} (\S+)')
HERE = Path(__file__).parent


@contextmanager
def program(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    paths = os.pathsep.join([str(HERE), *sys.path])
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def figures(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def peak(pid: int) -> int:
    """Return the most memory, in bytes, that a process has had at any time."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(re.findall(r"^VmHWM:\s+(\d+) kB", status, re.M)[0]) * 1024


def memory(pid: int) -> str:
    resident = psutil.Process(pid).memory_info().rss
    return f"memory {resident / 1e6:.0f} MB, at most {peak(pid) / 1e6:.0f} MB"


def writes(port: int) -> float:
    return sum(map(float, WRITES.findall(figures(port))))


async def make_all(api: ApiServer, namespace: str, ports: dict[str, int]) -> None:
    """Make all resources, a few at a time."""
    wanted: list[tuple[str, str, dict[str, Any]]] = []
    for number in range(BROKERS):
        broker = f"b{number}"
        listeners = {} if number % TLS_EVERY else {"listeners": TLS_LISTENERS}
        wanted.append((BROKER.name, broker, {"admin": ports, **listeners}))
        for each in range(EACH):
            spec = {"brokerRef": {"name": broker}, "policy": {"recorded": True}}
            wanted.append((DESTINATION.name, f"{broker}-d{each}", spec))
    pending = iter(wanted)

    async def work() -> None:
        for kind, name, spec in pending:
            metadata = {"name": name, "namespace": namespace}
            resource = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}
            await api.create(BY_NAME[kind], {**resource, "spec": spec})

    await asyncio.gather(*(work() for _ in range(8)))


async def certificates(api: ApiServer, namespace: str) -> int:
    """Return how many listeners have the certificate that they are to have."""
    names = [
        item["metadata"]["name"]
        async for items, _ in api.pages(BY_NAME["Secret"], namespace, metadata_only=True)
        for item in items
    ]
    return sum(name.endswith("-openwire-tls") for name in names)


async def ready(api: ApiServer, namespace: str) -> int:
    """Return how many resources are not ready."""
    missing = 0
    for kind in (BROKER, DESTINATION):
        async for items, _ in api.pages(kind, namespace):
            for item in items:
                conditions = item.get("status", {}).get("conditions", ())
                missing += not any(
                    (each["type"], each["status"]) == ("Ready", "True") for each in conditions
                )
    return missing


async def watched(api: ApiServer, namespace: str, version: str) -> AsyncIterator[dict[str, Any]]:
    """Yield Destinations as they change."""
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "900"}
    headers = {"Authorization": await api.credentials()}
    connector = aiohttp.TCPConnector(ssl=api.tls)
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(
            connector=connector, timeout=timeout, read_bufsize=1 << 21
        ) as session,
        session.get(api.url + DESTINATION.path(namespace), params=query, headers=headers) as answer,
    ):
        async for line in answer.content:
            yield json.loads(line)["object"]


async def time_changes(api: ApiServer, namespace: str) -> list[float]:
    """Return, in order, the seconds from a change to the status that is about it."""
    begun: dict[tuple[str, int], float] = {}
    took: list[float] = []
    watching = asyncio.Event()

    async def look() -> None:
        version = ""
        async for _, listed in api.pages(DESTINATION, namespace):
            version = listed
        watching.set()
        async for item in watched(api, namespace, version):
            observed = item.get("status", {}).get("observedGeneration", 0)
            key = (item["metadata"]["name"], observed)
            if key in begun:
                took.append(time.monotonic() - begun.pop(key))

    looking = asyncio.create_task(look())
    await watching.wait()
    await asyncio.sleep(5)
    for number in range(CHANGES):
        name = f"b{number % BROKERS}-d{number // BROKERS}"
        begun[name, 2] = time.monotonic()
        await api.merge(DESTINATION, namespace, name, {"spec": {"policy": {"recorded": False}}})
        await asyncio.sleep(1 / CHANGES_PER_SECOND)
    end = time.monotonic() + 30
    while begun and time.monotonic() < end:
        await asyncio.sleep(0.1)
    looking.cancel()
    assert not begun
    return sorted(took)


async def settle(api: ApiServer, namespace: str) -> None:
    end = time.monotonic() + SETTLE_SECONDS
    while (missing := await ready(api, namespace)) and time.monotonic() < end:
        print(f"{missing} are not ready", flush=True)
        await asyncio.sleep(20)
    assert not missing


@pytest.mark.slow
@pytest.mark.timeout(2400)
@in_loop
async def test_hundreds_of_brokers_with_thousands_of_destinations(
    control_plane: ControlPlane, namespace: str
) -> None:
    api = await connect(str(control_plane.kubeconfig))
    kubeconfig, port = str(control_plane.kubeconfig), free_port()
    brokers = (str(HERE / "scale_brokers.py"), kubeconfig, namespace, str(BROKERS), str(RENEWALS))
    options = ("--port", str(port), "--host", "127.0.0.1", "--log-level", "warning")
    # Where its authority's Secret is, too: who begins anew issues nothing anew.
    where = ("--namespaces", namespace, "--operator-namespace", namespace)
    operator = ("-m", "lockkeeper_operator", "--no-leader-election", *where)
    with program(*brokers) as simulated:
        assert simulated.stdout is not None
        ports = map(int, simulated.stdout.readline().split())
        await make_all(api, namespace, dict(zip(("port", "tlsPort"), ports, strict=True)))
        begun = time.monotonic()
        with program(*operator, *options, KUBECONFIG=kubeconfig) as process:
            await settle(api, namespace)
            print(f"all ready after {time.monotonic() - begun:.0f} s")
            assert await certificates(api, namespace) == -(-BROKERS // TLS_EVERY)
            took = await time_changes(api, namespace)
            p50, p90, p99 = (took[len(took) * share // 100] for share in (50, 90, 99))
            print(f"change to status: p50 {p50:.3f} s, p90 {p90:.3f} s, p99 {p99:.3f} s")
            await asyncio.sleep(BEFORE_REST_SECONDS)
            before = writes(port)
            cpu = sum(psutil.Process(process.pid).cpu_times()[:2])
            await asyncio.sleep(REST_SECONDS)
            cpu = sum(psutil.Process(process.pid).cpu_times()[:2]) - cpu
            print(f"{memory(process.pid)}, at rest {100 * cpu / REST_SECONDS:.0f} % of a core")
            print(f"writes in {REST_SECONDS} s at rest: {writes(port) - before:g}")
            assert peak(process.pid) < MEMORY_BYTES_MAX
            assert p99 < CHANGE_SECONDS_MAX
            assert writes(port) == before
            assert cpu / REST_SECONDS < CORE_SHARE_MAX
        # A process that begins with all of it there.
        with program(*operator, *options, KUBECONFIG=kubeconfig) as process:
            await asyncio.sleep(START_SECONDS)
            print(f"started anew: {memory(process.pid)}")
            assert peak(process.pid) < MEMORY_BYTES_MAX
    await api.close()
