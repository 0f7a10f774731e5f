"""The label of a master that was lost with its node, which cannot take it away itself.

Its pod counts as ready for most of a minute, so that Services would lead half of the new clients
there. Whoever is master by the locks makes sure that no other pod of the Broker says so.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from lockkeeper.server.cluster.api_server import (
    CONFLICT,
    FORBIDDEN,
    JSON_PATCH,
    NOT_FOUND,
    ApiServer,
    ApiServerError,
)
from lockkeeper.server.cluster.identity import PodIdentity
from lockkeeper.server.roles import MASTER, STANDBY
from lockkeeper.store.locker import LockLostError
from lockkeeper_api.pod_names import ROLE_LABEL

logger = logging.getLogger(__name__)

REPLICAS_MAX = 9
ANSWER_SECONDS_MAX = 3.0
RETRY_SECONDS = 1.0
UNPROCESSABLE = 422
_PATH = "/metadata/labels/" + ROLE_LABEL.replace("/", "~1")
_CHANGE = [
    {"op": "test", "path": _PATH, "value": MASTER},
    {"op": "replace", "path": _PATH, "value": STANDBY},
]


class StaleMasters:
    """Looks at the other pods of a StatefulSet once, after a take-over."""

    def __init__(self, api: ApiServer, pod: PodIdentity, check: Callable[[], None]) -> None:
        """*check* raises LockLostError when this process may not be the master any more."""
        self._api = api
        self._check = check
        self._task: asyncio.Task[None] | None = None
        base, _, _ = pod.name.rpartition("-")
        others = [each for each in range(REPLICAS_MAX) if each != pod.ordinal]
        self._paths = [
            f"/api/v1/namespaces/{pod.namespace}/pods/{base}-{number}" for number in others
        ]
        if pod.ordinal is None:
            self._paths = []

    def begin(self) -> None:
        """Have the others' labels right as soon as that can be."""
        if self._task is None:
            self._task = asyncio.create_task(self._demote_all(), name="stale_masters")

    async def end(self) -> None:
        """Leave the others alone: this process is master no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, LockLostError):
                await self._task

    async def _demote_all(self) -> None:
        for path in self._paths:
            while True:
                try:
                    await self._demote(path)
                    break
                except (ApiServerError, OSError) as error:
                    code = error.code if isinstance(error, ApiServerError) else 0
                    if code == FORBIDDEN:
                        # The Role names the pods that there are, and this is none of them.
                        return
                    if code in (NOT_FOUND, CONFLICT, UNPROCESSABLE):
                        break
                await asyncio.sleep(RETRY_SECONDS)

    async def _demote(self, path: str) -> None:
        pod = await self._api.get(path, ANSWER_SECONDS_MAX)
        if pod.get("metadata", {}).get("labels", {}).get(ROLE_LABEL) != MASTER:
            return
        self._check()
        await self._api.patch(path, _CHANGE, ANSWER_SECONDS_MAX, JSON_PATCH)
        logger.info("%s is no master any more, its label says so now", path.rpartition("/")[2])
