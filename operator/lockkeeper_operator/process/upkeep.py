"""Keeps stores true where watches cannot: first lists, what went unseen, kinds that come and go."""

import asyncio
import logging
from collections.abc import Callable

from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.kinds import OPTIONAL_KINDS
from lockkeeper_operator.kubernetes.api.watching import Place
from lockkeeper_operator.kubernetes.caches.caches import WATCHED
from lockkeeper_operator.kubernetes.caches.census import Census
from lockkeeper_operator.process.metrics import Metrics
from lockkeeper_operator.process.queue import WorkQueue

LIST_DELAY_SECONDS_MAX = 10.0
COUNTERS = 2
log = logging.getLogger(__name__)

OptionalKindsChanged = Callable[[frozenset[str]], None]


def places_of(namespaces: tuple[str, ...] | None) -> tuple[Place, ...]:
    """Return all that is watched in *namespaces*, None for all of them."""
    return tuple(Place(kind, each) for kind in WATCHED for each in namespaces or (None,))


class Upkeep:
    """Watches the watches: is told of them, and counts what is there where they may have missed
    something. *changed* is told which kinds of monitors the cluster has, when that changes.
    """

    def __init__(
        self,
        census: Census,
        places: tuple[Place, ...],
        metrics: Metrics,
        changed: OptionalKindsChanged,
    ) -> None:
        self._census, self._places, self._metrics = census, places, metrics
        self._changed = changed
        self._queue: WorkQueue[Place] = WorkQueue()
        self.optional_kinds: frozenset[str] = frozenset()
        self.unlisted: dict[Place, str] = dict.fromkeys(places, "not listed yet")
        """What was never listed whole, and why."""

    async def fill(self) -> None:
        """List everything, as long as that takes."""
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(self._fill(place), name=f"list {place}")

    async def keep(self, resync: float) -> None:
        """Count what is there after each list of kopf's, and every *resync* seconds."""
        async with asyncio.TaskGroup() as group:
            for number in range(COUNTERS):
                group.create_task(self._count_all(), name=f"census {number}")
            while True:
                await asyncio.sleep(resync)
                for place in self._places:
                    self._queue.add(place)

    def begun(self, place: Place, what: str) -> None:
        """Take note of a `list` or `watch`."""
        self._metrics.watches.labels(place.kind.name, what).inc()
        self._note(place, there=True)

    def listed(self, place: Place) -> None:
        """Take note that a place was listed anew: what went before that was not told."""
        self._queue.add(place)

    def absent(self, place: Place) -> None:
        """Take note of a kind that the server does not know."""
        self._note(place, there=False)

    def lost(self, kind: str) -> None:
        """Take note of an optional kind that turned out not to be known any more."""
        if kind in self.optional_kinds:
            self.optional_kinds -= {kind}
            self._changed(self.optional_kinds)

    async def _fill(self, place: Place) -> None:
        delay = 0.5
        while True:
            try:
                self._note(place, await self._census.fill(place))
                del self.unlisted[place]
                return
            except ApiError as error:
                if self.unlisted[place] != str(error):
                    log.warning("the operator cannot list %s: %s", place, error)
                self.unlisted[place] = str(error)
                await asyncio.sleep(delay)
                delay = min(LIST_DELAY_SECONDS_MAX, 2 * delay)

    async def _count_all(self) -> None:
        while True:
            place, _ = await self._queue.take()
            try:
                self._note(place, await self._census.count(place))
                self._queue.succeeded(place)
            except ApiError as error:
                log.info(
                    "census of %s: %s; again in %.1f s", place, error, self._queue.retry(place)
                )
            finally:
                self._queue.done(place)

    def _note(self, place: Place, there: bool) -> None:
        """Take note whether the cluster has an optional kind."""
        name = place.kind.name
        if place.kind not in OPTIONAL_KINDS or there == (name in self.optional_kinds):
            return
        self.optional_kinds = (
            self.optional_kinds | {name} if there else self.optional_kinds - {name}
        )
        self._changed(self.optional_kinds)
