"""The flight recorder: what the journal's own records do not tell, as trace records.

ActiveMQ ignores the text of trace records. The format is docs/reference/flight-recorder.md.
"""

import json
from typing import Any

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.core import Broker
from lockkeeper.broker.regions.statistics import LATENCY_BOUNDS
from lockkeeper.journal.counters import COUNTERS
from lockkeeper.server.client_recorder import ClientRecorder
from lockkeeper.server.conversion import milliseconds
from lockkeeper.server.views import destination_view
from lockkeeper.store.base import Store
from lockkeeper_api.broker import Recorder as RecorderSettings

PREFIX = "lk1 "
EVENTS_PER_WRITE_MAX = 50
"""So many events go with one write: making their lines takes less than a millisecond."""
_FIGURES = (*(counter.json_name for counter in COUNTERS), "depth", "consumers")


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
        self._written: dict[str, dict[str, Any]] = {}
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

    def write_due_statistics(self, now: int) -> None:
        """Note the figures of changed destinations, if they are due."""
        if not self._enabled:
            return
        steady = self._broker.steady
        if steady - self._statistics_at < self._statistics_interval:
            return
        self._statistics_at = steady
        connections = self._broker.connections.values()
        self._clients.note_slow_consumers(
            [each for one in connections for each in one.consumers.values()]
        )
        self.write_statistics(now)

    def write_statistics(self, now: int) -> None:
        """Note the figures of the destinations that changed since the last note."""
        changed: dict[str, dict[str, Any]] = {}
        for region in self._broker.registry:
            if is_advisory(region.destination):
                continue
            view = destination_view(region)
            figures = {name: view[name] for name in _FIGURES}
            figures["latency"] = {"le": LATENCY_BOUNDS, "n": list(region.statistics.latency)}
            name = str(region.destination)
            if self._written.get(name) != figures:
                self._written[name] = changed[name] = figures
        if changed and self._enabled:
            self._write(
                {"t": "stats", "at": now, "broker": self._broker.name, "destinations": changed}
            )

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
