"""The figures of a broker, its destinations and its consumers, by ActiveMQ's names."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.interceptors.traffic import Traffic
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.message.destination import Destination
from lockkeeper.message.primitives import Value
from lockkeeper.message.stamps import arrival

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.regions.registry import Registry
    from lockkeeper.broker.subscriptions.consumer import Consumer

_Figures: TypeAlias = dict[str, Value]


class Figures:
    """Looks everything up when asked; nothing is counted for it."""

    def __init__(
        self,
        context: "Context",
        registry: "Registry",
        connections: "Mapping[str, Connection]",
    ) -> None:
        self._context = context
        self._registry = registry
        self._connections = connections

    def destinations(
        self, regions: "Iterable[Queue | Topic]", with_first: bool
    ) -> Iterator[_Figures]:
        """Yield the figures of each destination, *with_first* the oldest message's time too."""
        producers = self._producers()
        for region in regions:
            if not region.is_gone:
                yield self._destination(region, producers[region.destination], with_first)

    def _destination(self, region: Queue | Topic, producers: int, with_first: bool) -> _Figures:
        used, limit = region.body_cache.used, region.policy.memory_limit
        limit = limit or self._context.memory.limit
        traffic = Traffic()
        traffic.add(region, producers)
        figures: _Figures = {
            "destinationName": str(region.destination),
            **traffic.figures(),
            **_usage("memory", used, limit),
        }
        if with_first and (timestamp := _first_timestamp(region)) is not None:
            figures["firstMessageTimestamp"] = timestamp
        return figures

    def broker(self) -> Iterator[_Figures | None]:
        """Yield the figures of all destinations together, and what they occupy; None before.

        The limits of the store and of its temporary files are not known here.
        """
        producers, traffic = self._producers(), Traffic()
        for region in self._registry:
            if not is_advisory(region.destination) and not region.is_gone:
                traffic.add(region, producers[region.destination])
            yield None
        memory, store = self._context.memory, self._context.store.usage()
        yield {
            **traffic.figures(),
            **_usage("memory", memory.used, memory.limit),
            **_usage("store", store.bytes_on_disk, 0),
            **_usage("temp", store.spooled_bytes, 0),
            **dict.fromkeys(("openwire", "stomp", "ssl", "stomp+ssl", "vm", "dataDirectory"), ""),
        }

    def consumers(self) -> Iterator[_Figures]:
        """Yield the figures of every consumer."""
        connections = self._connections.values()
        there = [each for connection in connections for each in connection.consumers.values()]
        for consumer in there:
            if not consumer.closed:
                yield _consumer(consumer)

    def _producers(self) -> Counter[Destination | None]:
        """Return how many producers each destination has."""
        connections = self._connections.values()
        return Counter(chain.from_iterable(each.producers.values() for each in connections))


def _usage(what: str, used: int, limit: int) -> _Figures:
    percent = used * 100 // limit if limit else 0
    return {f"{what}PercentUsage": percent, f"{what}Usage": used, f"{what}Limit": limit}


def _first_timestamp(region: Queue | Topic) -> int | None:
    """Return when the next message came to the broker (ms since the epoch), if one waits."""
    first = region.first()
    if first is None:
        return None
    if first.message is None:
        region.body_cache.load([first])
    return arrival(first.loaded.body)


def _consumer(consumer: "Consumer") -> _Figures:
    identifier, request = consumer.identifier, consumer.request
    held = len(consumer.dispatched)
    waiting = sum(backlog.depth() for backlog in consumer.backlogs)
    is_topic = consumer.destination.is_topic
    return {
        "destinationName": consumer.destination.name,
        "clientId": consumer.connection.client_id,
        "connectionId": consumer.connection.identifier,
        "sessionId": getattr(identifier, "session_id", 0),
        "selector": request.selector,
        "enqueueCounter": consumer.delivered + (waiting if is_topic else 0),
        "dequeueCounter": consumer.delivered - held,
        "dispatchedCounter": consumer.delivered,
        "dispatchedQueueSize": held,
        "prefetchSize": consumer.prefetch,
        "maximumPendingMessageLimit": request.pending_limit,
        "exclusive": request.exclusive,
        "retroactive": request.retroactive,
        "slowConsumer": consumer.is_slow(),
    }
