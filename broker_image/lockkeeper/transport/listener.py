"""Listening sockets: bound first, opened to clients later."""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from typing import Protocol, cast

from lockkeeper.transport.encrypted import READ_BYTES, EncryptedReader
from lockkeeper.transport.peer import Guest, Peer
from lockkeeper.transport.tls import SHUTDOWN_SECONDS_MAX

logger = logging.getLogger(__name__)

BACKLOG_MAX = 1024
ACCEPT_PAUSE_SECONDS = 1.0
# A name such as localhost may stand for IPv6 as well, which a machine need not have.
_NOT_HERE = frozenset((errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL))


class AddressInUseError(OSError):
    """Another program listens on the address already."""


async def bind(host: str, port: int) -> list[socket.socket]:
    """Take *port* on every address of *host*; clients are still turned away.

    Raises AddressInUseError, or OSError when the address cannot be used for another reason.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    bound: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                bound.append(_bound(socket.socket(family, kind, protocol), address))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                missing = error
        if not bound and missing is not None:
            raise missing
    except OSError as error:
        for each in bound:
            each.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUseError(
                error.errno, f"another program listens on {host}:{port} already"
            ) from None
        raise
    return bound


def _bound(sock: socket.socket, address: tuple[object, ...]) -> socket.socket:
    """Return *sock* bound to *address*; closed when that fails."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:
            # IPv4 has a socket of its own.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setblocking(False)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock


class Host(Protocol):
    """Receiver of a listener's clients."""

    handshake_seconds: float
    """How long the handshake of TLS may take."""

    def receive(self, guest: Guest) -> None:
        """Note somebody with whom a handshake begins."""

    def make_peer(self, address: str, before: Guest | None) -> Peer | None:
        """Return the peer of a client, which may have been another guest *before*; None: no."""

    def lost(self, guest: Guest) -> None:
        """Forget somebody with whom the handshake failed."""


async def listen(bound: socket.socket, host: Host) -> asyncio.Server:
    """Let clients in, whom the *host* receives. Raises OSError."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: _Greeter(host), sock=bound, backlog=BACKLOG_MAX)


class EncryptedListener:
    """Lets clients in with whom the handshake of TLS is done.

    A `context` that is set later is for those who come from then on.
    """

    def __init__(self, bound: socket.socket, host: Host, context: ssl.SSLContext) -> None:
        """Begin. Raises OSError."""
        self.context = context
        self._host = host
        self._bound = bound
        self._guests: set[asyncio.Task[None]] = set()
        self._room = memoryview(bytearray(READ_BYTES))
        bound.listen(BACKLOG_MAX)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                raw, name = await loop.sock_accept(self._bound)
            except OSError as error:
                logger.error("cannot accept a connection: %s", error)
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            address = f"ssl://{name[0]}:{name[1]}"
            greeter = _EncryptedGreeter(self._host, raw, address, self._room)
            self._host.receive(greeter)
            greeter.handshake = loop.create_task(greeter.encrypt(self.context))
            self._guests.add(greeter.handshake)
            greeter.handshake.add_done_callback(self._guests.discard)

    def close(self) -> None:
        """Let nobody in any more."""
        self._accepting.cancel()
        for handshake in list(self._guests):
            handshake.cancel()
        self._bound.close()


def _introduce(
    transport: asyncio.Transport, host: Host, address: str, before: Guest | None
) -> Peer | None:
    """Return the peer of a client whose connection is as it is to be; None: it is turned away."""
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer = host.make_peer(address, before)
    if peer is None:
        transport.abort()
    return peer


class _Greeter(asyncio.Protocol):
    """Makes the peer when its address is known."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        address = f"tcp://{name[0]}:{name[1]}" if name else "unknown"
        peer = _introduce(transport, self._host, address, None)
        if peer is not None:
            transport.set_protocol(peer)
            peer.connection_made(transport)


class _EncryptedGreeter(asyncio.Protocol):
    """Makes the peer when the handshake of TLS is done; a guest until then."""

    def __init__(self, host: Host, raw: socket.socket, address: str, room: memoryview) -> None:
        self.address = address
        self._room = room
        self.is_in = False
        self.handshake: asyncio.Task[None] | None = None
        self._host = host
        self._raw = raw

    async def encrypt(self, context: ssl.SSLContext) -> None:
        """Shake hands; whoever does not speak TLS is gone after that."""
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self,
                self._raw,
                ssl=context,
                ssl_handshake_timeout=self._host.handshake_seconds,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS_MAX,
            )
        except OSError as error:
            logger.debug("%s: no TLS: %s", self.address, error)
        finally:
            self._host.lost(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)
        peer = _introduce(transport, self._host, self.address, self)
        if peer is not None:
            transport.set_protocol(EncryptedReader(peer, self._room))
            peer.connection_made(transport)

    def abort(self) -> None:
        """End the connection at once."""
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_RDWR)
        if self.handshake is not None:
            self.handshake.cancel()
