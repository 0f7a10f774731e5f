"""Listening sockets: bound first, opened to clients later."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from typing import cast

from lockkeeper.transport.peer import Peer
from lockkeeper.transport.tls import HANDSHAKE_SECONDS_MAX, SHUTDOWN_SECONDS_MAX

BACKLOG_MAX = 1024
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


async def listen(
    bound: socket.socket,
    make_peer: Callable[[str], Peer | None],
    context: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """Let clients in; *make_peer* gets the address of each, None refuses it. Raises OSError.

    With a *context*, peers are made for those with whom the handshake of TLS is done.
    """
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: _Greeter(make_peer),
        sock=bound,
        backlog=BACKLOG_MAX,
        ssl=context,
        ssl_handshake_timeout=None if context is None else HANDSHAKE_SECONDS_MAX,
        ssl_shutdown_timeout=None if context is None else SHUTDOWN_SECONDS_MAX,
    )


class _Greeter(asyncio.Protocol):
    """Makes the peer when its address is known."""

    def __init__(self, make_peer: Callable[[str], Peer | None]) -> None:
        self._make_peer = make_peer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = transport.get_extra_info("peername")
        scheme = "ssl" if transport.get_extra_info("ssl_object") is not None else "tcp"
        address = f"{scheme}://{name[0]}:{name[1]}" if name else "unknown"
        peer = self._make_peer(address)
        if peer is None:
            transport.abort()
            return
        transport.set_protocol(peer)
        peer.connection_made(transport)
