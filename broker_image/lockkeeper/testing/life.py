"""One life of a broker under test: from the journal that it reads to its end."""

import asyncio
import dataclasses
import time
from pathlib import Path

from lockkeeper.broker.core import Broker
from lockkeeper.broker.interceptors.timestamps import TimestampSettings
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.server.configuration import Configuration
from lockkeeper.server.conversion import converted
from lockkeeper.server.engine import Engine
from lockkeeper.server.listeners import Listeners
from lockkeeper.server.recorder import FlightRecorder, cause_of_start
from lockkeeper.server.settings import destination_of, policy_map
from lockkeeper.store.base import StoreError
from lockkeeper.testing.storage import FillableStore
from lockkeeper_api.broker import Listener

SETTLING_SECONDS_MAX = 1.0
ROUNDS_MIN = 3
"""Rounds of the event loop in which what clients have written is read, and carried out."""


class VirtualClock:
    """The clock of a broker under test, `ahead` ms of the machine's."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> int:
        """Return the time in ms since the epoch."""
        return time.time_ns() // 1_000_000 + self.ahead


class Life:
    """A broker that serves one port; everything here is called in its event loop."""

    def __init__(self, wanted: Configuration, directory: Path, clock: VirtualClock) -> None:
        """Read the journal in *directory*. Raises StoreError."""
        resource = wanted.broker
        self.failure: StoreError | None = None
        self._clock = clock
        self.store = FillableStore(directory, resource.spec)
        store = self.store.face
        self.broker = Broker(
            store,
            resource.metadata.name,
            "ID:test-0",
            policy_map(resource, wanted.destinations),
            _settings(wanted),
            clock(),
        )
        past = self.broker.recover()
        for each in wanted.destinations:
            self.broker.declare(destination_of(each))
        self._recorder = FlightRecorder(self.broker, store, resource.spec.journal.recorder)
        self.engine = Engine(self.broker, store, self._recorder, self._fail, wall=clock)
        self.engine.stamp()
        store.begin_term(past.epoch + 1, self.engine.now, self.broker.identity, self.broker.name)
        cause = cause_of_start(past.last_trace)
        self._recorder.event("start", self.engine.now, **({"cause": cause} if cause else {}))

    async def open(self, port: int) -> int:
        """Let clients in at *port* of loopback, 0 for any free one; returns it."""
        self._listeners = Listeners([Listener(name="openwire", port=port)])
        await self._listeners.bind(0)
        await self._listeners.open(self.engine)
        return self._listeners.ports["openwire"]

    def _fail(self, error: StoreError) -> None:
        self.failure = error

    async def advance(self, milliseconds: int) -> None:
        """Let so much time pass; what comes due on the way happens in order, each at its time."""
        left = milliseconds
        await self._settle()
        while left > 0:
            due = self.broker.next_deadline()
            step = left if due is None else min(left, max(1, due - self.broker.steady))
            self._clock.ahead += step
            self.engine.skip(step)
            left -= step
            await self._settle()

    async def _settle(self) -> None:
        """Wait until all is done that is due, and the disk has it."""
        until = time.monotonic() + SETTLING_SECONDS_MAX
        for _ in range(ROUNDS_MIN):
            await asyncio.sleep(0)
        while self._is_busy() and time.monotonic() < until:
            await asyncio.sleep(0)

    def _is_busy(self) -> bool:
        due = self.broker.next_deadline()
        is_due = due is not None and due <= self.broker.steady
        return is_due or self.broker.has_work() or self.store.face.urgent() > 0

    async def cut(self) -> None:
        """End all connections at once, as a network does that fails."""
        for peer in list(self.engine.peers):
            peer.abort()
        while self.engine.peers:
            await asyncio.sleep(0)

    def fill(self, is_full: bool) -> None:
        """Have no room for messages on the disk, or have some again."""
        self.store.is_full = is_full
        self.engine.wake()

    async def end(self, is_clean: bool) -> None:
        """Let go of the clients and the journal; what a clean end writes is kept from a killed
        broker's journal by whoever has copied that before.
        """
        self._listeners.close()
        self.engine.close()
        if is_clean and self.failure is None:
            self.engine.stamp()
            self._recorder.write_statistics(self.engine.now)
            self._recorder.event("stop", self.engine.now)
        # What was aborted goes in the next round.
        await asyncio.sleep(0)
        self.store.face.close()


def _settings(wanted: Configuration) -> BrokerSettings:
    """Return the settings of a Broker whose clock may be ahead of its clients'.

    Times to live are counted by the broker's clock: by the client's, messages would have expired.
    """
    settings = converted(wanted.broker.spec, BrokerSettings)
    if settings.timestamps is not None:
        return settings
    return dataclasses.replace(settings, timestamps=TimestampSettings())
