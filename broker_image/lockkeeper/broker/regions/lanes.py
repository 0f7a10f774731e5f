"""Selective dispatch: messages sorted by which of a queue's consumers want them.

Every message is looked at once. It goes to the lane of exactly those consumers that want it,
so one that nobody wants, or whose consumers are all busy, keeps nobody else waiting.
"""

from collections import deque
from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from lockkeeper.store.base import Reference

if TYPE_CHECKING:
    from lockkeeper.broker.regions.queue import Queue
    from lockkeeper.broker.subscriptions.consumer import Consumer


class _Waiting(NamedTuple):
    order: int
    reference: Reference


class Lanes:
    """The lanes of one queue, for its present consumers; remade when one comes or goes."""

    __slots__ = ("_lanes", "_order", "_queue")

    def __init__(self, queue: "Queue") -> None:
        self._queue = queue
        self._lanes: dict[tuple[Consumer, ...], deque[_Waiting]] = {}
        self._order = 0

    def depth(self) -> int:
        """Return how many messages wait in all lanes."""
        return sum(map(len, self._lanes.values()))

    def in_order(self) -> list[Reference]:
        """Return what waits in all lanes, in the queue's order."""
        return [waiting.reference for waiting in merge(*self._lanes.values(), key=_order_of)]

    def dispatch(self) -> None:
        """Send what consumers have room for, looking at no more messages than that takes."""
        while True:
            if self._send_oldest():
                continue
            queue = self._queue
            if not queue.ready or not any(c.credit() > 0 for c in queue.consumers):
                return
            self._sort_next()

    def _send_oldest(self) -> bool:
        """Send the oldest message that a consumer with room wants."""
        best: tuple[int, tuple[Consumer, ...]] | None = None
        for consumers, lane in self._lanes.items():
            is_older = bool(lane) and (best is None or lane[0].order < best[0])
            if is_older and any(consumer.credit() > 0 for consumer in consumers):
                best = (lane[0].order, consumers)
        if best is None:
            return False
        reference = self._lanes[best[1]].popleft().reference
        if reference.message is None:
            self._queue.residency.load([reference])
        if self._queue.is_expired(reference.loaded):
            self._queue.expire(reference)
            return True
        # Whoever has most room is next: turns, without keeping one for each lane.
        self._queue.hand_over(max(best[1], key=_room_of), [reference])
        return True

    def _sort_next(self) -> None:
        """Put the next message of the queue into its lane."""
        queue = self._queue
        if queue.ready[0].message is None:
            queue.page_in()
        reference = queue.ready.popleft()
        message = reference.loaded
        wanted_by = tuple(c for c in queue.consumers if c.accepts(message))
        self._order += 1
        self._lanes.setdefault(wanted_by, deque()).append(_Waiting(self._order, reference))


def _order_of(waiting: _Waiting) -> int:
    return waiting.order


def _room_of(consumer: "Consumer") -> int:
    return consumer.credit()
