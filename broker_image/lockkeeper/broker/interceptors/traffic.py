"""Traffic of destinations, added up one by one, by the names of ActiveMQ's figures."""

from itertools import islice
from typing import Final

from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.statistics import LATENCY_BOUNDS
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.message.primitives import Value

# So many of the waiting messages tell how large messages are.
_SAMPLE: Final = 100
_COUNTERS: Final = {
    "enqueueCount": "enqueued",
    "dequeueCount": "dequeued",
    "dispatchCount": "dispatched",
    "expiredCount": "expired",
}


class Traffic:
    """Counts of what passed through some destinations, and of what is there now."""

    def __init__(self) -> None:
        self._waiting = self._in_flight = self._used = 0
        self._consumers = self._producers = 0
        self._counts = dict.fromkeys(_COUNTERS, 0)
        self._measured = self._bytes = 0
        self._latencies = [0] * len(LATENCY_BOUNDS)

    def add(self, region: Queue | Topic, producers: int) -> None:
        """Count a destination that has so many *producers*."""
        self._waiting += region.depth()
        self._in_flight += region.in_flight()
        self._used += region.body_cache.used
        self._consumers += len(region.takers())
        self._producers += producers
        sizes = [reference.size for reference in islice(region.upcoming(), _SAMPLE)]
        self._measured += len(sizes)
        self._bytes += sum(sizes)
        statistics = region.statistics
        for name, counter in _COUNTERS.items():
            self._counts[name] += getattr(statistics, counter)
        for index, count in enumerate(statistics.latency):
            self._latencies[index] += count

    def figures(self) -> dict[str, Value]:
        """Return all that was counted."""
        average = self._bytes / self._measured if self._measured else 0.0
        return {
            "size": self._waiting + self._in_flight,
            **self._counts,
            "inflightCount": self._in_flight,
            "messagesCached": int(self._used / average) if average else 0,
            "averageMessageSize": average,
            **self._times(),
            "consumerCount": self._consumers,
            "producerCount": self._producers,
        }

    def _times(self) -> dict[str, Value]:
        """Return how long messages were here until they were acknowledged, in ms.

        They are counted in classes; these are the upper bounds.
        """
        counts = [*zip(LATENCY_BOUNDS, self._latencies, strict=True)]
        found = [bound for bound, count in counts if count]
        total = sum(self._latencies)
        weighed = sum(bound * count for bound, count in counts)
        return {
            "averageEnqueueTime": weighed / total if total else 0.0,
            "maxEnqueueTime": max(found, default=0),
            "minEnqueueTime": min(found, default=0),
        }
