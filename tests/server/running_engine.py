"""An engine on the event loop of a test, with listeners and a clock that can be set."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

from lockkeeper.broker.access.authenticator import Authenticator
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message import openwire
from lockkeeper.message.openwire import ConnectionId, ConnectionInfo
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.server.engine import Engine
from lockkeeper.server.listeners import Listeners
from lockkeeper.server.recorder import FlightRecorder
from lockkeeper.store.base import Store, StoreError
from lockkeeper.store.memory import MemoryStore
from lockkeeper_api.broker import Listener, Recorder


class Clock:
    """A clock that people see; `by` is how far it was set, in ms."""

    def __init__(self) -> None:
        self.by = 0

    def __call__(self) -> int:
        """Return the time, in ms since the epoch."""
        return time.time_ns() // 1_000_000 + self.by


class Running:
    """A broker that serves a free port, until the context ends."""

    def __init__(
        self,
        listener: Listener | None = None,
        authenticator: Authenticator | None = None,
        settings: BrokerSettings | None = None,
        store: Store | None = None,
    ) -> None:
        """A *store* is the caller's to close. `failures` are those on which the engine stopped."""
        self.clock = Clock()
        self.failures: list[StoreError] = []
        self._store: Store = store or MemoryStore()
        self._listener = listener or Listener(name="openwire", port=0)
        self._authenticator = authenticator
        self._settings = settings or BrokerSettings()

    async def __aenter__(self) -> "Running":
        store = self._store
        self.broker = Broker(
            store, "b", "ID:b", PolicyMap(), self._settings, self.clock(), self._authenticator
        )
        self.broker.recover()
        recorder = FlightRecorder(self.broker, store, Recorder())
        self.engine = Engine(self.broker, store, recorder, self._failed, wall=self.clock)
        self._listeners = Listeners([self._listener])
        await self._listeners.bind(0)
        await self._listeners.open(self.engine)
        self.port = self._listeners.ports[self._listener.name]
        return self

    def _failed(self, error: StoreError) -> None:
        self.failures.append(error)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listeners.close()
        self.engine.close()


@asynccontextmanager
async def greeted(
    running: Running, name: str = "", **fields: Any
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect and shake hands; with a *name*, say who it is, too."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    try:
        writer.write(framed(openwire.encode(offer(ListenerSettings()))))
        if name:
            writer.write(framed(openwire.encode(introduction(name, **fields))))
        yield reader, writer
    finally:
        writer.close()


def introduction(name: str, **fields: Any) -> ConnectionInfo:
    """Return what a client called *name* says first, and wants answered."""
    return ConnectionInfo(
        command_id=1, response_required=True, connection_id=ConnectionId(name), **fields
    )


async def is_cut(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Tell whether the broker ends the connection within *seconds*."""
    try:
        async with asyncio.timeout(seconds):
            await reader.read(-1)
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True
