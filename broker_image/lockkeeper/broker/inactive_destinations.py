"""Removing destinations that nobody uses any more (ActiveMQ's gcInactiveDestinations).

Nothing is noted per message: a sweep compares what each destination has seen with the last sweep.
"""

from collections.abc import Callable
from typing import TypeAlias

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.registry import Registry
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.routing.names import is_own
from lockkeeper.message.destination import Destination

Idle: TypeAlias = tuple[int, int]
"""Since when (ms of `steady`) a destination was idle, and how many messages it had seen."""


class InactiveDestinations:
    """Looks for unused destinations every *period* ms, and removes *sweep_max* at most (0: all).

    `kept` are never removed; `idle` are those that wait for their timeout to pass.
    """

    def __init__(
        self,
        context: Context,
        registry: Registry,
        connections: dict[str, Connection],
        awaiting: Callable[[], set[Destination]],
        remove: Callable[[Destination], None],
        period: int,
        sweep_max: int,
    ) -> None:
        self._context = context
        self._registry = registry
        self._connections = connections
        self._awaiting = awaiting
        self._remove = remove
        self._period = period
        self._sweep_max = sweep_max
        self.kept: set[Destination] = set()
        self.idle: dict[Destination, Idle] = {}
        if period:
            context.timers.call_at(context.steady + period, self._sweep)

    def _sweep(self) -> None:
        context, kept = self._context, self.kept
        context.timers.call_at(context.steady + self._period, self._sweep)
        unused = [
            region
            for region in self._registry
            if region.policy.inactivity.gc_inactive_destinations
            and not is_used(region)
            and region.destination not in kept
            and not is_own(region.destination)
        ]
        wanted = self._wanted() if unused else ()
        self.idle = {
            region.destination: (self._idle_since(region), region.statistics.enqueued)
            for region in unused
            if region.destination not in wanted
        }
        due = [region.destination for region in unused if self._is_due(region)]
        for destination in due[: self._sweep_max or None]:
            del self.idle[destination]
            self._remove(destination)

    def _idle_since(self, region: Queue | Topic) -> int:
        since, enqueued = self.idle.get(region.destination, (0, -1))
        return since if enqueued == region.statistics.enqueued else self._context.steady

    def _is_due(self, region: Queue | Topic) -> bool:
        idle = self.idle.get(region.destination)
        timeout = region.policy.inactivity.inactive_timeout_before_gc
        return idle is not None and self._context.steady - idle[0] >= timeout

    def _wanted(self) -> set[Destination]:
        """Return the destinations of all producers, and those that await messages."""
        found = self._awaiting()
        for connection in self._connections.values():
            for destination in connection.producers.values():
                found.update(destination.parts() if destination is not None else ())
        return found


def is_used(region: Queue | Topic) -> bool:
    """Tell whether a destination has consumers, durable subscriptions or messages.

    A temporary one belongs to its connection, which removes it.
    """
    return region.is_subscribed() or bool(region.depth()) or region.destination.is_temporary
