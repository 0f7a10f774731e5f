"""Demand for virtual destinations: consumers of what they bring messages to (useVirtualDestSubs).

A bridge that hears of it forwards what is sent to a composite or to a virtual topic, to where
somebody consumes behind it. On creation, a queue that collects counts like a consumer.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from lockkeeper.broker.advisories.structures import consumer_id_of, consumer_info
from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import ConsumerId, ConsumerInfo, RemoveInfo

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer

Sources: TypeAlias = Callable[[Destination], Sequence[Destination]]
"""Returns the virtual destinations whose messages come to a destination."""
Content = TypeVar("Content", ConsumerInfo, RemoveInfo)
Told: TypeAlias = list[tuple[Destination, Content]]
"""Contents of advisories, each with the virtual destination that it is about."""


class VirtualDemand:
    """Demand for the virtual destinations of one broker, each with the one that it is about.

    With *on_creation* queues without consumers are told of, too, by ids of *connection*.
    """

    def __init__(self, sources: Sources, on_creation: bool, connection: str) -> None:
        self.sources = sources
        self._on_creation = on_creation
        self._connection = connection
        self._numbers = itertools.count(1)
        self._queues: dict[Destination, Told[ConsumerInfo]] = {}

    def of_consumer(self, consumer: "Consumer") -> Iterator[tuple[Destination, ConsumerInfo]]:
        """Yield a consumer as one of each virtual destination."""
        for source in self.sources(consumer.destination):
            identifier = _id_behind(consumer, source)
            info = replace(consumer_info(consumer), consumer_id=identifier, destination=source)
            yield source, info

    def of_ended(self, consumer: "Consumer") -> Iterator[tuple[Destination, RemoveInfo]]:
        """Yield that a consumer has ended."""
        for source in self.sources(consumer.destination):
            yield source, RemoveInfo(object_id=_id_behind(consumer, source))

    def of_new(self, destination: Destination) -> Told[ConsumerInfo]:
        """Return a new queue as a consumer of each virtual destination, on creation."""
        if not self._on_creation or not destination.is_queue or destination.is_temporary:
            return []
        found = [
            (source, ConsumerInfo(consumer_id=self._next_id(), destination=source))
            for source in self.sources(destination)
        ]
        if found:
            self._queues[destination] = found
        return found

    def of_removed(self, destination: Destination) -> Told[RemoveInfo]:
        """Return that a queue is gone, and forget what was told of it."""
        told = self._queues.pop(destination, [])
        return [(source, RemoveInfo(object_id=info.consumer_id)) for source, info in told]

    def of_queues(self) -> Iterator[tuple[Destination, ConsumerInfo]]:
        """Yield what was told of all queues that are there."""
        return itertools.chain.from_iterable(self._queues.values())

    def _next_id(self) -> ConsumerId:
        return ConsumerId(self._connection, 1, next(self._numbers))


def _id_behind(consumer: "Consumer", source: Destination) -> ConsumerId:
    """Return by what id a consumer is one of *source*, the same each time.

    By its own one, ActiveMQ would take it for a second way to what it serves already.
    """
    own = consumer_id_of(consumer)
    return ConsumerId(f"{own.connection_id}-{source}", own.session_id, own.value)
