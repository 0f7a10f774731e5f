"""A real engine behind real sockets, whose every peer has a queue of its own and is watched."""

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeAlias

from echo_session import EchoSession

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import Destination, queue
from lockkeeper.protocols.registry import PROTOCOLS
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.server.engine import Engine
from lockkeeper.server.reception import Reception
from lockkeeper.server.recorder import FlightRecorder
from lockkeeper.store.memory import MemoryStore
from lockkeeper.transport.listener import EncryptedListener, bind, listen
from lockkeeper.transport.peer import Peer
from lockkeeper_api.broker import Listener, Recorder

KERNEL_BYTES = 1 << 16
"""Size of the kernel's buffers on either side, so that a test need not fill megabytes."""
UNREAD_BYTES = 1 << 10
"""Size from which a client's stream no longer reads from its socket."""
HOST = "127.0.0.1"


def place(name: str) -> Destination:
    """Return the queue of the clients called *name*, or *name*+something."""
    return queue(f"ECHO.{name.partition('+')[0]}")


class WatchedEcho(EchoSession):
    """Echoes to each client its own lines; `pieces` are the sizes that the transport brought."""

    def __init__(self, broker: Broker, settings: ListenerSettings, address: str) -> None:
        super().__init__(broker, settings, address)
        self.pieces: list[int] = []

    def place(self, name: str) -> Destination:
        """See `place`."""
        return place(name)

    def listens(self, name: str) -> bool:
        """Tell whether a client consumes from its queue: those that end in +sender only send."""
        return not name.endswith("+sender")

    def receive_data(self, data: bytes, most: int = 1 << 30) -> None:
        """Note the size, and go on."""
        self.pieces.append(len(data))
        super().receive_data(data, most)


class Client:
    """One connection; its stream reads from the socket only while somebody reads from it."""

    def __init__(
        self, raw: socket.socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.raw, self.writer = raw, writer
        self.reader = reader
        self._heard = bytearray()

    def send(self, data: bytes) -> None:
        """Have *data* sent as soon as the other side takes it."""
        self.writer.write(data)

    async def lines(self, count: int) -> bytes:
        """Return the next *count* lines. Raises EOFError when the connection ends before."""
        scanned = 0
        while True:
            ends = self._heard.count(b"\n", scanned)
            if ends >= count:
                break
            count -= ends
            scanned = len(self._heard)
            piece = await self.reader.read(1 << 16)
            if not piece:
                raise EOFError("the connection ended")
            self._heard += piece
        end = scanned
        for _ in range(count):
            end = self._heard.index(b"\n", end) + 1
        found = bytes(self._heard[:end])
        del self._heard[:end]
        return found

    async def rest(self) -> bytes:
        """Return what comes until the connection ends; a reset is an end, too."""
        try:
            while piece := await self.reader.read(1 << 16):
                self._heard += piece
        except (ConnectionError, ssl.SSLError):
            pass
        return bytes(self._heard)

    def end_sending(self) -> None:
        """Send a FIN without a word of TLS, and go on reading."""
        self.raw.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """End the connection with an RST."""
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Wire:
    """The engine, its port, and the clients of one test."""

    def __init__(
        self,
        encryption: tuple[ssl.SSLContext, ssl.SSLContext] | None,
        settings: BrokerSettings | None = None,
        protocol: str = "watched",
        kernel_bytes: int | None = KERNEL_BYTES,
        **listener: Any,
    ) -> None:
        """*listener* are fields of the listener; None for *kernel_bytes*: what the system likes."""
        self._kernel_bytes = kernel_bytes
        self._encryption = encryption
        self._settings = settings or BrokerSettings()
        fields = {"name": "wire", "port": 0, "frameBytesMax": 1 << 20} | listener
        self._listener = Listener.model_validate(fields)
        self._listener = self._listener.model_copy(update={"protocol": protocol})
        self._clients: list[Client] = []

    async def __aenter__(self) -> "Wire":
        PROTOCOLS["watched"] = WatchedEcho
        store, now = MemoryStore(), time.time_ns() // 1_000_000
        self.broker = Broker(store, "b", "ID:b", PolicyMap(), self._settings, now)
        self.broker.recover()
        recorder = FlightRecorder(self.broker, store, Recorder())
        self.engine = Engine(self.broker, store, recorder, print)
        (bound,) = await bind(HOST, 0)
        self._limit_buffers(bound)
        self.port = bound.getsockname()[1]
        reception = Reception(self._listener, self.engine)
        self._server = (
            await listen(bound, reception)
            if self._encryption is None
            else EncryptedListener(bound, reception, self._encryption[0])
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del PROTOCOLS["watched"]
        for client in self._clients:
            client.writer.transport.abort()
        self._server.close()
        self.engine.close()
        await asyncio.sleep(0)

    @property
    def is_encrypted(self) -> bool:
        """True if clients speak TLS."""
        return self._encryption is not None

    def raw_socket(self) -> socket.socket:
        """Return a socket, with small buffers as a rule, that is not connected."""
        raw = socket.socket()
        raw.setblocking(False)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._limit_buffers(raw)
        return raw

    def _limit_buffers(self, raw: socket.socket) -> None:
        if self._kernel_bytes is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._kernel_bytes)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._kernel_bytes)

    async def connect(self) -> Client:
        """Return a connection, with TLS where the listener wants it."""
        raw = self.raw_socket()
        await asyncio.get_running_loop().sock_connect(raw, (HOST, self.port))
        context = None if self._encryption is None else self._encryption[1]
        reader, writer = await asyncio.open_connection(
            sock=raw,
            ssl=context,
            server_hostname=HOST if context else None,
            limit=UNREAD_BYTES,
        )
        self._clients.append(Client(raw, reader, writer))
        return self._clients[-1]

    async def login(self, name: str) -> tuple[Client, Peer]:
        """Return a connection that has said its name, and the engine's side of it."""
        client = await self.connect()
        client.send(name.encode() + b"\n")

        def found() -> list[Peer]:
            named = f"{name}-"
            peers = self.engine.peers
            return [each for each in peers if each.session.connection.identifier.startswith(named)]

        await until(lambda: len(found()) == 1)
        return client, found()[0]

    def enqueued(self, name: str) -> int:
        """Return how many lines of the client called *name* the broker took."""
        regions = [each for each in self.broker.registry if each.destination == place(name)]
        return sum(each.statistics.enqueued for each in regions)

    def assert_nobody_is_left(self) -> None:
        """Assert that the broker remembers no connection, and met no error that nobody expected."""
        assert self.engine.peers == set()
        assert self.broker.connections == {}
        assert self.broker.memory.partial == 0
        assert self.broker.containment.records == {}


def received(peer: Peer) -> int:
    """Return how many bytes the transport has brought to the session."""
    session = peer.session
    assert isinstance(session, WatchedEcho)
    return sum(session.pieces)


def waiting(peer: Peer) -> int:
    """Return how many bytes the transport holds that its socket does not take."""
    transport = peer._transport
    return 0 if transport is None else transport.get_write_buffer_size()


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Wait until *condition* holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


async def settled(figure: Callable[[], int]) -> int:
    """Return a *figure* once it has been the same for a while: 0.2 s."""
    while True:
        before = figure()
        for _ in range(20):
            await asyncio.sleep(0.01)
            if figure() != before:
                break
        else:
            return before


Test: TypeAlias = Callable[[Wire], Coroutine[Any, Any, None]]
Serve: TypeAlias = Callable[..., None]
"""Runs a test; options are those of `Wire`."""
