"""Settings of kopf."""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import kopf
from kopf._cogs.structs.bodies import RawBody
from kopf._core.reactor.inventory import ResourceMemories, ResourceMemory

from lockkeeper_operator.kubernetes.api.server import PAGE_OBJECTS, REQUEST_SECONDS
from lockkeeper_operator.kubernetes.caches.caches import WATCHED, selector_of
from lockkeeper_operator.names import GROUP

IDLE_SECONDS = 0.1
WATCH_SECONDS = 300
LIST_SECONDS = 60.0
DELAYS = (0.5, 1.0, 2.0, 3.0, 5.0)


class Endless:
    """Seconds between attempts; after *DELAYS* the last of them, for ever."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain(DELAYS, itertools.repeat(DELAYS[-1]))


class NoDifferences(kopf.DiffBaseStorage):
    """Keeps no last state of objects: nothing here depends on what they were."""

    def build(self, *, body: Any, extra_fields: Iterable[Any] | None = None) -> Any:
        """Return nothing, at no cost."""
        return {}

    def fetch(self, *, body: Any) -> Any:
        """Return nothing."""
        return None

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        """Store nothing."""


class NoProgress(kopf.ProgressStorage):
    """Keeps no progress of handlers: they do one thing, at once."""

    def fetch(self, *, key: Any, body: Any) -> Any:
        """Return nothing."""
        return None

    def store(self, *, key: Any, record: Any, body: Any, patch: Any) -> None:
        """Store nothing."""

    def purge(self, *, key: Any, body: Any, patch: Any) -> None:
        """Remove nothing."""

    def touch(self, *, body: Any, patch: Any, value: Any) -> None:
        """Touch nothing."""

    def clear(self, *, essence: Any) -> Any:
        """Return what there is."""
        return essence


class NoMemories(ResourceMemories):
    """Keeps nothing of objects between two of their events.

    kopf would keep 1 KB of each, for daemons, indices and errors of what it writes: none of which
    there is here.
    """

    async def recall(
        self,
        raw_body: RawBody,
        *,
        memobase: Any = None,
        noticed_by_listing: bool = False,
        ephemeral: bool = False,
    ) -> ResourceMemory:
        """Return a memory that lasts as long as one event."""
        return await super().recall(
            raw_body, memobase=memobase, noticed_by_listing=noticed_by_listing, ephemeral=True
        )


def tune(settings: kopf.OperatorSettings, clusterwide: bool, class_name: str = "") -> None:
    """Let kopf watch and nothing else: it writes to no object, and tells nobody.

    Where it looks after all namespaces, kinds that come and go are followed; with *clusterwide*
    off it needs no rights but those in the namespaces. Of what people write it watches what is of
    the operator's class, all where it has none.
    """
    # It tells of each event of each object.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.scanning.disabled = not clusterwide
    settings.watching.chunk_size = PAGE_OBJECTS
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.connect_timeout = REQUEST_SECONDS
    settings.networking.connect_timeout = REQUEST_SECONDS
    settings.networking.request_timeout = LIST_SECONDS
    settings.networking.error_backoffs = Endless()
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.queueing.error_delays = Endless()
    settings.persistence.diffbase_storage = NoDifferences()
    settings.persistence.progress_storage = NoProgress()
    # kopf takes it away wherever it finds it, as no handler of it needs one: a name of nobody's.
    settings.persistence.finalizer = f"{GROUP}/none-of-kopf"
    by_selector: dict[str, set[tuple[str, str]]] = {}
    for kind in WATCHED:
        chosen = by_selector.setdefault(selector_of(kind, class_name), set())
        chosen.add((kind.group, kind.plural))
    for selector, kinds in by_selector.items():
        if selector:
            settings.watching.label_selectors[_one_of(kinds)] = selector


def _one_of(kinds: Collection[tuple[str, str]]) -> Callable[[Any], bool]:
    return lambda resource: (resource.group, resource.plural) in kinds
