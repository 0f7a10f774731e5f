"""Keeps a store as the API server has it: lists, then watches, for ever."""

import asyncio
import logging
import random
from typing import Protocol

from lockkeeper_operator.api.errors import ApiError
from lockkeeper_operator.api.kinds import Kind
from lockkeeper_operator.api.server import ApiServer
from lockkeeper_operator.caches.store import Name, Store

WATCH_SECONDS = (240, 480)
DELAY_SECONDS_MIN = 0.2
DELAY_SECONDS_MAX = 10.0
STEADY_SECONDS = 10.0
"""A watch that lasted so long was none of a row of failures."""
log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Is told when a watch begins anew."""

    def __call__(self, kind: str, reason: str) -> None:
        """Take note of a new list (*reason* `list`) or watch (`watch`)."""


class Reflector:
    """One kind, in one namespace or (None) all, as far as *selector* selects."""

    def __init__(
        self,
        api: ApiServer,
        kind: Kind,
        store: Store,
        namespace: str | None,
        selector: str = "",
        metadata_only: bool = False,
        told: Watcher | None = None,
    ) -> None:
        self._api, self._kind, self._store = api, kind, store
        self._namespace, self._selector = namespace, selector
        self._metadata_only, self._told = metadata_only, told
        self._version = ""
        self.listed = asyncio.Event()
        """Set once the store has been complete."""
        self.problem = ""
        """Why it is not kept up to date at present, empty while it is."""

    async def run(self) -> None:
        """Keep the store; ends only by being cancelled."""
        failures = 0
        while True:
            begun = asyncio.get_running_loop().time()
            try:
                if not self._version:
                    await self._list()
                    self.listed.set()
                self.problem = ""
                await self._watch()
                failures = 0
            except ApiError as error:
                lasted = asyncio.get_running_loop().time() - begun
                failures = 1 if lasted > STEADY_SECONDS else failures + 1
                self.problem = str(error)
                if error.status:
                    # Refused, or too old: what is known may be out of date, so all is listed.
                    self._version = ""
                level = logging.WARNING if failures > 1 else logging.INFO
                log.log(level, "watching %s: %s", self._kind.plural, error)
                await asyncio.sleep(_delay(failures, error.retry_after))

    async def _list(self) -> None:
        """Make the store equal to a list of everything."""
        self._tell("list")
        names: set[Name] = set()
        version = ""
        pages = self._api.pages(self._kind, self._namespace, self._selector, self._metadata_only)
        async for items, listed in pages:
            version = listed
            for item in items:
                metadata = item["metadata"]
                names.add((metadata.get("namespace", ""), metadata["name"]))
                self._store.put(item)
            # Whoever else waits for a turn gets it: pages of thousands of objects take long.
            await asyncio.sleep(0)
        self._store.keep_only(names, self._namespace, version)
        self._version = version

    async def _watch(self) -> None:
        """Keep the store by one watch, until the server ends it."""
        self._tell("watch")
        changes = self._api.watch(
            self._kind,
            self._namespace,
            self._version,
            random.randint(*WATCH_SECONDS),
            self._selector,
            self._metadata_only,
        )
        async for change, manifest in changes:
            if change == "DELETED":
                self._store.drop(manifest)
            elif change != "BOOKMARK":
                self._store.put(manifest)
            self._version = manifest["metadata"]["resourceVersion"]

    def _tell(self, reason: str) -> None:
        if self._told is not None:
            self._told(self._kind.name, reason)


def _delay(failures: int, retry_after: float | None) -> float:
    """Return the seconds to wait, growing and scattered."""
    growing = min(DELAY_SECONDS_MAX, DELAY_SECONDS_MIN * 2.0 ** min(failures, 10))
    return max(retry_after or 0.0, growing) * random.uniform(0.7, 1.3)
