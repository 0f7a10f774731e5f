"""The figures of a broker, its destinations and its consumers, by ActiveMQ's names."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.statistics import LATENCY_BOUNDS
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.message.primitives import Value
from lockkeeper.message.stamps import arrival

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.regions.registry import Registry
    from lockkeeper.broker.subscriptions.consumer import Consumer

# So many of the waiting messages tell how large messages are.
_SAMPLE = 100
_COUNTERS = {
    "enqueueCount": "enqueued",
    "dequeueCount": "dequeued",
    "dispatchCount": "dispatched",
    "expiredCount": "expired",
}


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

    def destination(self, region: Queue | Topic, with_first: bool) -> dict[str, Value]:
        """Return the figures of one destination, *with_first* the oldest message's time too."""
        used, limit = region.body_cache.used, region.policy.memory_limit
        limit = limit or self._context.memory.limit
        figures: dict[str, Value] = {
            "destinationName": str(region.destination),
            **self._traffic([region]),
            **_usage("memory", used, limit),
        }
        if with_first and (timestamp := _first_timestamp(region)) is not None:
            figures["firstMessageTimestamp"] = timestamp
        return figures

    def broker(self) -> dict[str, Value]:
        """Return the figures of all destinations together, and what they occupy.

        The limits of the store and of its temporary files are not known here.
        """
        memory, store = self._context.memory, self._context.store.usage()
        regions = [region for region in self._registry if not is_advisory(region.destination)]
        return {
            **self._traffic(regions),
            **_usage("memory", memory.used, memory.limit),
            **_usage("store", store.bytes_on_disk, 0),
            **_usage("temp", store.spooled_bytes, 0),
            **dict.fromkeys(("openwire", "stomp", "ssl", "stomp+ssl", "vm", "dataDirectory"), ""),
        }

    def consumers(self) -> Iterator[dict[str, Value]]:
        """Yield the figures of every consumer."""
        for connection in self._connections.values():
            for consumer in connection.consumers.values():
                yield _consumer(consumer)

    def _traffic(self, regions: list[Queue | Topic]) -> dict[str, Value]:
        in_flight = sum(region.in_flight() for region in regions)
        destinations = {region.destination for region in regions}
        producers = sum(
            destination in destinations
            for connection in self._connections.values()
            for destination in connection.producers.values()
        )
        sizes = [size for region in regions for size in _sizes(region)]
        average = sum(sizes) / len(sizes) if sizes else 0.0
        used = sum(region.body_cache.used for region in regions)
        return {
            "size": sum(region.depth() for region in regions) + in_flight,
            **{
                name: sum(getattr(region.statistics, counter) for region in regions)
                for name, counter in _COUNTERS.items()
            },
            "inflightCount": in_flight,
            "messagesCached": int(used / average) if average else 0,
            "averageMessageSize": average,
            **_times(regions),
            "consumerCount": sum(len(region.takers()) for region in regions),
            "producerCount": producers,
        }


def _usage(what: str, used: int, limit: int) -> dict[str, Value]:
    percent = used * 100 // limit if limit else 0
    return {f"{what}PercentUsage": percent, f"{what}Usage": used, f"{what}Limit": limit}


def _sizes(region: Queue | Topic) -> Iterable[int]:
    return [reference.size for reference in islice(region.upcoming(), _SAMPLE)]


def _times(regions: list[Queue | Topic]) -> dict[str, Value]:
    """Return how long messages were here until they were acknowledged, in ms.

    They are counted in classes; these are the upper bounds.
    """
    latencies = [region.statistics.latency for region in regions]
    counts = {
        bound: sum(latency[index] for latency in latencies)
        for index, bound in enumerate(LATENCY_BOUNDS)
    }
    found = [bound for bound, count in counts.items() if count]
    total = sum(counts.values())
    weighed = sum(bound * count for bound, count in counts.items())
    return {
        "averageEnqueueTime": weighed / total if total else 0.0,
        "maxEnqueueTime": max(found, default=0),
        "minEnqueueTime": min(found, default=0),
    }


def _first_timestamp(region: Queue | Topic) -> int | None:
    """Return when the next message came to the broker (ms since the epoch), if one waits."""
    first = next(iter(region.waiting()), None)
    if first is None:
        return None
    if first.message is None:
        region.body_cache.load([first])
    return arrival(first.loaded.body)


def _consumer(consumer: "Consumer") -> dict[str, Value]:
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
