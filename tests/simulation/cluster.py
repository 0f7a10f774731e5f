"""An API server with one Lease and the pods: what a broker in a cluster asks it."""

import asyncio
import copy
from typing import Any

from simulation.hub import SECOND, Hub, Process

from lockkeeper.server.cluster.api_server import CONFLICT, NOT_FOUND, ApiServerError


class Cluster:
    """The objects, and who cannot reach them at the moment."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.unreachable_until: dict[str, int] = {}
        self.refuses = False
        self.forgets_answers = 0.0
        self.slowness = 1
        self._version = 1
        self._objects: dict[str, dict[str, Any]] = {}

    def enter(self, path: str, spec: dict[str, Any] | None = None) -> None:
        """Make an object."""
        self._objects[path] = {"metadata": {"uid": "1", "resourceVersion": "1"}, "spec": spec or {}}

    def make_client(self) -> type:
        """Return what takes the place of `ApiServer`."""
        cluster = self

        class Client:
            def __init__(self, access: object) -> None:
                process = cluster.hub.process()
                assert process is not None
                self._process: Process = process

            async def get(self, path: str, timeout: float) -> dict[str, Any]:
                return await self._ask(path, timeout, lambda found: found)

            async def replace(self, path: str, value: Any, timeout: float) -> dict[str, Any]:
                def write(found: dict[str, Any]) -> dict[str, Any]:
                    if (
                        value["metadata"].get("resourceVersion")
                        != (found["metadata"]["resourceVersion"])
                    ):
                        raise ApiServerError(f"PUT {path}: conflict", CONFLICT)
                    return cluster.put(path, value)

                return await self._ask(path, timeout, write)

            async def patch(
                self, path: str, value: Any, timeout: float, kind: str = ""
            ) -> dict[str, Any]:
                return await self._ask(path, timeout, lambda found: found)

            async def close(self) -> None:
                pass

            async def _ask(self, path: str, timeout: float, act: Any) -> dict[str, Any]:
                chance = cluster.hub.chance
                await self._travel(timeout)
                if path not in cluster._objects:
                    raise ApiServerError(f"{path}: not found", NOT_FOUND)
                result = copy.deepcopy(act(cluster._objects[path]))
                if chance.random() < cluster.forgets_answers:
                    await asyncio.sleep(timeout)
                    raise ApiServerError(f"{path}: no answer within {timeout} s")
                await self._travel(timeout)
                return dict(result)

            async def _travel(self, timeout: float) -> None:
                hub = cluster.hub
                is_cut = cluster.unreachable_until.get(self._process.name, 0) > hub.now
                if is_cut and cluster.refuses:
                    await asyncio.sleep(cluster.travel_seconds())
                    raise ApiServerError("connection refused")
                if is_cut:
                    await asyncio.sleep(timeout)
                    raise ApiServerError(f"no answer within {timeout} s")
                await asyncio.sleep(cluster.travel_seconds())

        return Client

    def travel_seconds(self) -> float:
        """Return how long a request, or its answer, is under way."""
        return self.slowness * self.hub.chance.uniform(0.0005, 0.02)

    def put(self, path: str, value: dict[str, Any]) -> dict[str, Any]:
        """Store a new version of an object."""
        self._version += 1
        value = copy.deepcopy(value)
        value["metadata"]["resourceVersion"] = str(self._version)
        self._objects[path] = value
        return value

    def cut(self, name: str, seconds: float) -> None:
        """Keep a process from the API server for a while; it is refused, or hears nothing."""
        self.unreachable_until[name] = self.hub.now + int(seconds * SECOND)
