"""The label on a broker's pod that Services select the master by.

The label follows the role without anybody waiting for it: a task writes what is wanted last,
again and again until the API server has taken it. Only a clean stop gives it a moment.
"""

import asyncio
import contextlib
import logging
from typing import Any

from lockkeeper.server.cluster.api_server import ApiServer, ApiServerError
from lockkeeper.server.cluster.identity import PodIdentity
from lockkeeper_api.pod_names import ROLE_LABEL

logger = logging.getLogger(__name__)

ANSWER_SECONDS_MAX = 5.0
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.25, 10.0
LOOK_SECONDS = 5.0
"""How often to see whether the label is still there."""


class RoleLabel:
    """Keeps the label of one pod what it is wanted to be."""

    def __init__(self, api: ApiServer, pod: PodIdentity) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        self._uid = pod.uid
        self._wanted = ""
        self._written = ""
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def want(self, role: str) -> None:
        """Have the label say *role* as soon as that can be."""
        self._wanted = role
        self._settled.clear()
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._keep(), name="role-label")

    async def settled(self, seconds: float) -> None:
        """Wait until the label says what is wanted, *seconds* at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()

    async def close(self) -> None:
        """Leave the label as it is."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _keep(self) -> None:
        delay = RETRY_SECONDS_MIN
        while True:
            self._changed.clear()
            try:
                await self._look_or_write()
            except (ApiServerError, OSError) as error:
                if delay == RETRY_SECONDS_MIN:
                    logger.warning("cannot label this pod %s: %s", self._wanted, error)
                await self._pause(delay)
                delay = min(2 * delay, RETRY_SECONDS_MAX)
                continue
            delay = RETRY_SECONDS_MIN
            await self._pause(LOOK_SECONDS)

    async def _pause(self, seconds: float) -> None:
        """Wait *seconds*, or until another role is wanted."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _look_or_write(self) -> None:
        """Write the label, unless it was written before and still stands there."""
        wanted = self._wanted
        if self._written != wanted or self._label(await self._read()) != wanted:
            await self._write(wanted)
        if wanted == self._wanted:
            self._settled.set()

    async def _read(self) -> dict[str, Any]:
        return await self._api.get(self._path, ANSWER_SECONDS_MAX)

    def _label(self, pod: dict[str, Any]) -> str:
        return str(pod.get("metadata", {}).get("labels", {}).get(ROLE_LABEL, ""))

    async def _write(self, role: str) -> None:
        """Label the pod; one of the same name that came after it is left alone."""
        value = {"metadata": {"uid": self._uid, "labels": {ROLE_LABEL: role}}}
        await self._api.patch(self._path, value, ANSWER_SECONDS_MAX)
        self._written = role
        logger.info("this pod's label says %s", role)
