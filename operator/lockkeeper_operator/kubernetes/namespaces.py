"""Labels of namespaces, where a Broker lets Destinations and networks in by them.

Few are of interest, and an operator of some namespaces may not watch any: they are read one by one.
"""

import asyncio
import logging

from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import NAMESPACE
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.caches.store import Store

REFRESH_SECONDS = 10.0
INTEREST_SECONDS = 1800.0
"""For how long after it was asked for a namespace is looked at: longer than until a resync."""
log = logging.getLogger(__name__)


class Namespaces:
    """Keeps a store of those that somebody has asked for."""

    def __init__(self, api: ApiServer, store: Store) -> None:
        self._api, self._store = api, store
        self._wanted: dict[str, float] = {}

    async def labels(self, name: str) -> dict[str, str]:
        """Return the labels of a namespace, none where it is gone. Raises ApiError."""
        known = name in self._wanted
        self._wanted[name] = asyncio.get_running_loop().time()
        if not known:
            await self._read(name)
        found = self._store.get("", name) or {}
        labels: dict[str, str] = found.get("metadata", {}).get("labels", {})
        return labels

    async def readable_labels(self, name: str) -> dict[str, str]:
        """Return the labels of a namespace, none where they may not be read. Raises ApiError."""
        try:
            return await self.labels(name)
        except ApiError as error:
            if not error.lacks_rights:
                raise
            log.warning("the operator cannot read the labels of namespace %s: %s", name, error)
            return {}

    async def keep(self) -> None:
        """Read again what is wanted, for ever; the store tells of what has changed."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            now = asyncio.get_running_loop().time()
            for name, wanted in tuple(self._wanted.items()):
                if now - wanted > INTEREST_SECONDS:
                    del self._wanted[name]
                    continue
                try:
                    await self._read(name)
                except ApiError as error:
                    log.info("the operator cannot read namespace %s: %s", name, error)

    async def _read(self, name: str) -> None:
        found = await self._api.read_if_there(NAMESPACE, None, name)
        if found is not None:
            self._store.put(found)
            return
        gone = self._store.get("", name)
        if gone is not None:
            self._store.drop(gone)
