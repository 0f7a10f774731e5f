"""Cordoned nodes, so that masters there hand over before somebody drains them.

The API server picks them out: of a large cluster's nodes, whose objects are long and change all the
time, nothing is watched, and nothing is kept but these few names.
"""

import asyncio
import logging
from collections.abc import Callable

from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import NODE
from lockkeeper_operator.kubernetes.api.server import ApiServer

LOOK_SECONDS = 2.0
FORBIDDEN_SECONDS = 600.0
SELECTOR = "spec.unschedulable=true"
log = logging.getLogger(__name__)


class Cordons:
    """Keeps the names; *changed* is told of nodes that are, or are not any more."""

    def __init__(self, api: ApiServer, changed: Callable[[frozenset[str]], None]) -> None:
        self._api, self._changed = api, changed
        self.nodes: frozenset[str] = frozenset()

    async def keep(self) -> None:
        """Look again and again, for ever; that nodes may not be seen is a warning once."""
        told = False
        while True:
            delay = LOOK_SECONDS
            try:
                await self.look()
            except ApiError as error:
                if error.lacks_rights:
                    # What was known is of no use any more: a node may be as it was for ever.
                    self._know(frozenset())
                    delay = FORBIDDEN_SECONDS
                level = logging.WARNING if error.lacks_rights and not told else logging.DEBUG
                told = told or error.lacks_rights
                log.log(level, "which nodes are cordoned cannot be seen: %s", error)
            await asyncio.sleep(delay)

    async def look(self) -> None:
        """Read which nodes are cordoned. Raises ApiError."""
        names: set[str] = set()
        async for items, _ in self._api.pages(NODE, fields=SELECTOR, metadata_only=True):
            names.update(item["metadata"]["name"] for item in items)
        self._know(frozenset(names))

    def _know(self, nodes: frozenset[str]) -> None:
        before, self.nodes = self.nodes, nodes
        if nodes != before:
            self._changed(nodes ^ before)
