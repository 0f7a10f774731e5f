"""The broker's work for a load, in this process: no sockets, no disk's time, no clients.

A load is recorded first: which bytes came from whom, and when the event loop had a turn. Then the
same is played to a fresh broker, as often as one likes: engine, peers, sessions, core and store
are the real ones, only what is below them is not.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

import uvloop
from loads import Load

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.server import engine
from lockkeeper.server.engine import Engine
from lockkeeper.server.recorder import FlightRecorder
from lockkeeper.store.kahadb import store as kahadb_store
from lockkeeper.store.kahadb.store import KahaDBStore
from lockkeeper.transport.peer import Peer
from lockkeeper_api.broker import Recorder

NOW = 1_700_000_000_000
TURNS_MAX = 10_000


def pin_times() -> None:
    """Let nothing depend on how fast the machine is; for a process that does nothing else.

    What need not be written soon is not, what may be gathered is, and nobody waits in vain.
    """
    for module, name, value in (
        (kahadb_store, "REMOVES_DELAY_MICROSECONDS", 1 << 31),
        (kahadb_store, "HOLD_MICROSECONDS", 1),
        (engine, "GATHERING_SECONDS", 3600),
    ):
        assert hasattr(module, name)
        setattr(module, name, value)


class InstantDisk:
    """A disk that is done as soon as it is asked; `syncs` counts how often that was."""

    def __init__(self) -> None:
        self.syncs = 0
        self._eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def submit(self, descriptor: int) -> None:
        """See `Disk.submit`."""
        self.syncs += 1
        os.eventfd_write(self._eventfd, 1)

    def completed(self) -> bool:
        """See `Disk.completed`."""
        os.eventfd_read(self._eventfd)
        return True

    def wait(self) -> None:
        """See `Disk.wait`."""

    def fileno(self) -> int:
        """See `Disk.fileno`."""
        return self._eventfd

    def close(self) -> None:
        """See `Disk.close`."""
        os.close(self._eventfd)


class Transport:
    """Takes what a peer writes; `written` only while it is recorded."""

    def __init__(self, served: "Served") -> None:
        self.written: list[bytes] = []
        self._served = served
        self._keeps = served.keeps

    def write(self, data: bytes) -> None:
        """Take *data*."""
        self._served.sent += len(data)
        self._served.writes += 1
        if self._keeps:
            self.written.append(data)

    def writelines(self, pieces: list[bytes]) -> None:
        """Take all of *pieces*."""
        self.write(b"".join(pieces))

    def is_closing(self) -> bool:
        """Tell that nothing ends here."""
        return False

    def set_write_buffer_limits(self, high: int) -> None:
        """Have no limits."""

    def pause_reading(self) -> None:
        """Go on: who plays waits for turns anyway."""

    resume_reading = abort = close = pause_reading


class Step(NamedTuple):
    """Bytes that came from a peer, once so many bytes had been sent to all of them."""

    peer: int
    data: bytes
    sent: int


class TurnCounter:
    """The event loop as an engine uses it: counts the turns that the engine has of it."""

    def __init__(self, served: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self.turns = 0
        self.call_later, self.remove_reader = loop.call_later, loop.remove_reader
        self._call_soon = loop.call_soon
        self._turn = served._turn

    def call_soon(self, _: Callable[[], None]) -> None:
        """Have the engine's turn soon: it asks for nothing else."""
        self._call_soon(self._count)

    def _count(self) -> None:
        self.turns += 1
        self._turn()


class Served:
    """A broker with an engine, driven by hand; it counts what it asks of the system."""

    def __init__(self, directory: Path, keeps: bool) -> None:
        self.disk = InstantDisk()
        store = KahaDBStore(directory, disk=lambda _: self.disk)
        self._broker = Broker(store, "bench", "ID:bench", PolicyMap(()), BrokerSettings(), NOW)
        self._broker.recover()
        recorder = FlightRecorder(self._broker, store, Recorder(enabled=False))
        self._store = store
        self._engine = Engine(self._broker, store, recorder, self._fail, wall=lambda: NOW)
        self._turns = TurnCounter(self._engine, asyncio.get_running_loop())
        self._engine._loop = cast("Any", self._turns)
        self._engine.stamp()
        self.keeps = keeps
        self.sent = self.writes = 0
        self.peers: list[Peer] = []
        self.transports: list[Transport] = []

    def _fail(self, error: Exception) -> None:
        raise error

    def connect(self) -> int:
        """Let a peer come; returns its number."""
        session = OpenWireSession(self._broker, ListenerSettings(), "tcp://127.0.0.1:1")
        peer = Peer(self._engine, session, self._engine.steady)
        transport = Transport(self)
        peer.connection_made(cast("Any", transport))
        self.peers.append(peer)
        self.transports.append(transport)
        return len(self.peers) - 1

    @property
    def turns(self) -> int:
        """How many turns there were."""
        return self._turns.turns

    def close(self) -> None:
        """End."""
        self._engine.close()
        self._store.close()


class Recording:
    """What is to be played: `start` of a load's steps, then those of its rounds.

    `connections` are made first, `messages` come in the rounds; `sent` bytes are the answer.
    """

    def __init__(self, scenario: str, rounds: int) -> None:
        self.steps: list[Step] = []
        self.messages = 0
        loop = uvloop.new_event_loop()
        with TemporaryDirectory() as place:
            served = loop.run_until_complete(_serve(Path(place), keeps=True))
            load = Load(lambda: _Carrier(self.steps, served, loop), scenario)
            load.prepare()
            load.run()
            self.start = len(self.steps)
            for _ in range(rounds):
                load.prepare()
                self.messages += load.run()
            self.connections, self.sent = len(served.peers), served.sent
            served.close()
        loop.close()


class _Carrier:
    """Carries bytes to a peer, and notes what it carries."""

    def __init__(self, steps: list[Step], served: Served, loop: asyncio.AbstractEventLoop) -> None:
        self._steps, self._served, self._loop = steps, served, loop
        number = served.connect()
        self._number, self._peer = number, served.peers[number]
        self._written = served.transports[number].written

    def write(self, data: bytes) -> None:
        """Bring *data*."""
        self._steps.append(Step(self._number, data, self._served.sent))
        self._peer.data_received(data)

    def read(self) -> bytes:
        """Return what was written to the peer, after as many turns as that takes."""
        for _ in range(TURNS_MAX):
            if self._written:
                data = b"".join(self._written)
                self._written.clear()
                return data
            self._loop.run_until_complete(asyncio.sleep(0))
        raise RuntimeError("the broker does not answer")

    def close(self) -> None:
        """Stay: nobody looks at the end."""


async def _serve(directory: Path, keeps: bool) -> Served:
    return Served(directory, keeps)


async def _play(served: Served, steps: list[Step], sent: int) -> None:
    received = [peer.data_received for peer in served.peers]
    for step in steps:
        await _reach(served, step.sent)
        received[step.peer](step.data)
    await _reach(served, sent)


async def _reach(served: Served, sent: int) -> None:
    """Wait until so many bytes are sent."""
    for _ in range(TURNS_MAX):
        if served.sent >= sent:
            return
        await asyncio.sleep(0)
    raise RuntimeError(f"the broker sent {served.sent} bytes, and {sent} when it was recorded")


class Played(NamedTuple):
    """A broker that has seen the start of a recording; `run` plays its rounds, once."""

    run: Callable[[], None]
    counts: Callable[[], tuple[int, int, int]]
    """How often it has written to sockets, synced, and had a turn so far."""


@contextmanager
def player(recording: Recording) -> Iterator[Played]:
    """Play the start of a recording to a new broker."""
    loop = uvloop.new_event_loop()
    start, rounds = recording.steps[: recording.start], recording.steps[recording.start :]
    with TemporaryDirectory() as place:
        served = loop.run_until_complete(_serve(Path(place), keeps=False))
        try:
            for _ in range(recording.connections):
                served.connect()
            loop.run_until_complete(_play(served, start, 0))
            yield Played(
                lambda: loop.run_until_complete(_play(served, rounds, recording.sent)),
                lambda: (served.writes, served.disk.syncs, served.turns),
            )
        finally:
            served.close()
            loop.close()
