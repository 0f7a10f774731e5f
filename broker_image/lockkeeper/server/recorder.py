"""The flight recorder: what the journal's own records do not tell, as trace records.

ActiveMQ ignores the text of trace records. The format is docs/reference/flight-recorder.md.
"""

import json
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.core import Broker
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.statistics import LATENCY_BOUNDS, Statistics
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.journal.counters import COUNTERS
from lockkeeper.message.destination import Destination
from lockkeeper.server.client_recorder import ClientRecorder
from lockkeeper.server.conversion import milliseconds
from lockkeeper.server.counted import CountedStatistics
from lockkeeper.store.base import Store
from lockkeeper_api.broker import Recorder as RecorderSettings

PREFIX = "lk1 "
EVENTS_PER_WRITE_MAX = 50
"""So many events go with one write: making their lines takes less than a millisecond."""
DESTINATIONS_AT_ONCE_MAX = 500
"""So many are looked at before others have their turn: that takes a few milliseconds."""
_FIGURES = (*(counter.json_name for counter in COUNTERS), "depth", "consumers")
_counted: Callable[[Statistics], tuple[int, ...]] = attrgetter(*(each.name for each in COUNTERS))


class FlightRecorder:
    """Writes clock, statistics and event records of one master; never forces a sync."""

    def __init__(self, broker: Broker, store: Store, settings: RecorderSettings) -> None:
        self._broker = broker
        self._store = store
        self._enabled = settings.enabled
        self._clock_interval = milliseconds(settings.clock_interval)
        self._statistics_interval = milliseconds(settings.statistics_interval)
        self._clock_at = 0
        self._statistics_at = broker.steady
        self._left: list[Queue | Topic] = []
        # The figures of each destination in the look before and in this one, as far as it has come.
        self._before: dict[Destination, tuple[int, ...]] = {}
        self._written: dict[Destination, tuple[int, ...]] = {}
        self._clients = ClientRecorder(broker)
        if self._enabled:
            broker.listen(self._clients)

    def before_write(self, now: int) -> None:
        """Add events that wait, and the time if the last note of it is old.

        To be called when something else is about to be written.
        """
        if not self._enabled:
            return
        for told in self._clients.take_events(EVENTS_PER_WRITE_MAX):
            self._write_event(told, {})
        steady = self._broker.steady
        if steady - self._clock_at >= self._clock_interval:
            self._clock_at = steady
            self._write({"t": "clock", "at": now})

    def write_due_statistics(self, now: int) -> bool:
        """Note the figures of some changed destinations, if they are due.

        Returns whether there are more, which are due as soon as others have had their turn.
        """
        if not self._enabled:
            return False
        steady = self._broker.steady
        if not self._left:
            if steady - self._statistics_at < self._statistics_interval:
                return False
            self._statistics_at = steady
            connections = self._broker.connections.values()
            self._clients.note_bridges(connections)
            self._clients.note_slow_consumers(
                [each for one in connections for each in one.consumers.values()]
            )
            self._begin_statistics()
        return self._note_some(now)

    def write_statistics(self, now: int) -> None:
        """Note the figures of all destinations that changed since the last note."""
        if self._enabled:
            self._begin_statistics()
            while self._note_some(now):
                pass

    def _begin_statistics(self) -> None:
        self._left = [each for each in self._broker.registry if not is_advisory(each.destination)]
        self._left.reverse()
        # What an unfinished look has not come to stands as it stood before.
        self._before, self._written = self._before | self._written, {}

    def _note_some(self, now: int) -> bool:
        """Note the next destinations, if they changed; tell whether there are more."""
        changed: dict[str, dict[str, Any]] = {}
        counted = CountedStatistics(self._broker)
        for _ in range(min(DESTINATIONS_AT_ONCE_MAX, len(self._left))):
            region = self._left.pop()
            destination = region.destination
            if self._broker.registry.find(destination) is not region:
                continue
            statistics = counted.of(region.statistics)
            figures = _figures(region, statistics)
            self._written[destination] = figures
            if self._before.get(destination) != figures:
                latency = {"le": LATENCY_BOUNDS, "n": list(statistics.latency)}
                told = dict(zip(_FIGURES, figures, strict=True))
                changed[str(destination)] = {**told, "latency": latency}
        if changed:
            self._write(
                {"t": "stats", "at": now, "broker": self._broker.name, "destinations": changed}
            )
        if not self._left:
            self._before = {}
        return bool(self._left)

    def event(self, event: str, now: int, **details: object) -> None:
        """Note that something happened to the broker: start, takeover, configuration, stop."""
        if self._enabled:
            for told in self._clients.take_events():
                self._write_event(told, {})
            self._write_event({"at": now, "event": event}, details)

    def _write_event(self, told: dict[str, Any], details: dict[str, object]) -> None:
        self._write({"t": "event", **told, "broker": self._broker.name, **details})

    def _write(self, record: dict[str, Any]) -> None:
        self._store.trace(PREFIX + json.dumps(record, separators=(",", ":")))


def _figures(region: Queue | Topic, statistics: Statistics) -> tuple[int, ...]:
    """Return what of a destination a line tells; the latencies change only with `dequeued`."""
    depth = region.depth() + region.in_flight()
    if isinstance(region, Queue):
        # What is being written has come, and is in none of its lists yet.
        depth += statistics.enqueued - region.statistics.enqueued
    return (*_counted(statistics), depth, len(region.takers()))


def cause_of_start(last_trace: str) -> str | None:
    """Return why a master was needed, by the last trace record of the one before.

    None when that was no Lockkeeper with its recorder on.
    """
    if not last_trace.startswith(PREFIX):
        return None
    try:
        line = json.loads(last_trace.removeprefix(PREFIX))
    except ValueError:
        return None
    if not isinstance(line, dict):
        return None
    if line.get("t") == "event" and line.get("event") == "stop":
        return f"{line.get('replica', line.get('broker'))} stopped cleanly"
    return "the master before did not stop cleanly"
