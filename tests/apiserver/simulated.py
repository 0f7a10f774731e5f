"""An operator with a control plane, and with simulated nodes and brokers, in one event loop."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

from control_plane import ControlPlane
from simulated_brokers import SimulatedBrokers
from simulated_nodes import SimulatedNodes

from lockkeeper_api.meta import API_VERSION
from lockkeeper_operator.brokers.desired.subject import Installation
from lockkeeper_operator.embedded import run
from lockkeeper_operator.kubernetes.api.errors import NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import BROKER, BY_NAME, DESTINATION, EVENT
from lockkeeper_operator.kubernetes.api.server import ApiServer, connect
from lockkeeper_operator.process.operator import Operator
from lockkeeper_operator.process.options import Options

WAIT_SECONDS = 20.0


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Let a coroutine be a test."""

    @wraps(test)
    def run(**arguments: Any) -> None:
        async def main() -> None:
            await test(**arguments)

        asyncio.run(main())

    return run


@dataclass(slots=True)
class World:
    """One namespace, what runs there, and a client of the test's own."""

    control_plane: ControlPlane
    namespace: str
    api: ApiServer
    simulated: SimulatedBrokers
    nodes: SimulatedNodes
    operators: list[Operator] = field(default_factory=list)

    @asynccontextmanager
    async def operator(
        self, kubeconfig: Path | None = None, *, wait: bool = True, **options: Any
    ) -> AsyncIterator[Operator]:
        """Run an operator that looks after the namespace, with or without an election.

        It works already, unless nobody is to *wait* for that.
        """
        chosen = {"identity": "one", "election": False, "namespaces": (self.namespace,), **options}
        installation = Installation("example/lockkeeper:1", operator_namespace=self.namespace)
        told = Options(installation, host="127.0.0.1", port=0, **chosen)
        path = str(kubeconfig or self.control_plane.kubeconfig)
        async with running(told, path, wait) as operator:
            self.operators.append(operator)
            yield operator

    async def broker(self, name: str = "demo", /, **spec: Any) -> dict[str, Any]:
        """Make a Broker, or change it."""
        ports = {"port": self.simulated.port, "tlsPort": self.simulated.tls_port}
        spec = {"admin": ports, **spec}
        return await self.make(BROKER.name, name, spec)

    async def destination(self, name: str = "orders", /, **spec: Any) -> dict[str, Any]:
        """Make a Destination, or change it."""
        return await self.make(DESTINATION.name, name, {"brokerRef": {"name": "demo"}, **spec})

    async def make(self, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Write a resource as a person does."""
        metadata = {"name": name, "namespace": self.namespace}
        resource = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        path = BY_NAME[kind].path(self.namespace, name)
        query = {"fieldManager": "person", "force": "true"}
        return await self.api.request(
            "PATCH", path, query, resource, "application/apply-patch+yaml"
        )

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object."""
        return await self.api.read(BY_NAME[kind], self.namespace, name)

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object, as kubectl does."""
        await self.api.request("DELETE", BY_NAME[kind].path(self.namespace, name))

    async def is_gone(self, kind: str, name: str) -> bool:
        """Return whether there is no such object."""
        return await self.api.read_if_there(BY_NAME[kind], self.namespace, name) is None

    async def condition(self, kind: str, name: str, type: str = "Ready") -> tuple[str, str]:
        """Return a condition's status and reason."""
        found = (await self.get(kind, name)).get("status", {}).get("conditions", [])
        for each in found:
            if each["type"] == type:
                return each["status"], each["reason"]
        return "", ""

    async def ready(self, kind: str, name: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until a resource is ready, by a status that is about its present spec."""

        async def is_ready() -> bool:
            found = await self.get(kind, name)
            status = found.get("status", {})
            return status.get("observedGeneration") == found["metadata"]["generation"] and any(
                (each["type"], each["status"]) == ("Ready", "True")
                for each in status.get("conditions", [])
            )

        await eventually(is_ready, seconds, lambda: self.get(kind, name))

    async def events(self) -> list[str]:
        """Return the reasons of all events so far."""
        found = []
        async for items, _ in self.api.pages(EVENT, self.namespace):
            found += [item["reason"] for item in items]
        return found

    async def told(self, *reasons: str) -> None:
        """Wait until there are events with these *reasons*: they may come later than a status."""

        async def are_there() -> bool:
            return set(reasons) <= set(await self.events())

        await eventually(are_there, explain=self.events)

    async def versions(self) -> dict[tuple[str, str], str]:
        """Return the version of every object of the namespace, Leases and events apart."""
        found = {}
        for kind in BY_NAME.values():
            if kind.namespaced and kind.name not in ("Lease", "Event"):
                try:
                    async for items, _ in self.api.pages(kind, self.namespace):
                        for item in items:
                            metadata = item["metadata"]
                            found[kind.name, metadata["name"]] = metadata["resourceVersion"]
                except ApiError as error:
                    if error.status != NOT_FOUND:
                        raise
        return found


@asynccontextmanager
async def running(options: Options, kubeconfig: str, wait: bool = True) -> AsyncIterator[Operator]:
    """Run an operator in a thread of its own, as kopf ends all tasks of its loop with itself."""
    made: list[Operator] = []
    stops: list[Callable[[], object]] = []

    def begun(operator: Operator) -> None:
        loop = asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(operator.request_stop))
        made.append(operator)

    thread = asyncio.create_task(
        asyncio.to_thread(lambda: asyncio.run(run(options, kubeconfig, begun)))
    )
    try:
        while not (thread.done() or (made and (made[0].working.is_set() or not wait))):
            await asyncio.sleep(0.02)
        if thread.done():
            thread.result()
        yield made[0]
    finally:
        for stop in stops:
            with suppress(RuntimeError):  # It has ended by itself.
                stop()
        await asyncio.gather(thread, return_exceptions=True)
        # What its loop left is found now, and not while something is compiled.
        gc.collect()


async def eventually(
    holds: Callable[[], Awaitable[Any]],
    seconds: float = WAIT_SECONDS,
    explain: Callable[[], Awaitable[Any]] | None = None,
) -> float:
    """Wait until *holds* says something true; returns how many seconds that took."""
    begun = time.monotonic()
    while not await holds():
        if time.monotonic() > begun + seconds:
            raise AssertionError(f"not within {seconds} s: {await explain() if explain else ''}")
        await asyncio.sleep(0.05)
    return time.monotonic() - begun


@asynccontextmanager
async def world(control_plane: ControlPlane, namespace: str) -> AsyncIterator[World]:
    """Begin a world without an operator."""
    api = await connect(str(control_plane.kubeconfig))
    simulated = SimulatedBrokers()
    await simulated.start()
    nodes = SimulatedNodes(api, namespace, simulated)
    playing = asyncio.create_task(nodes.run())
    try:
        yield World(control_plane, namespace, api, simulated, nodes)
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        await simulated.stop()
        await api.close()
