"""Listening sockets."""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import cast

from lockkeeper.transport.peer import Peer


class AddressInUseError(OSError):
    """Another program listens on the address already."""


async def listen(host: str, port: int, make_peer: Callable[[str], Peer | None]) -> asyncio.Server:
    """Listen on *host*:*port*; *make_peer* gets the address of each client, None refuses it.

    Raises AddressInUseError, or OSError when the address cannot be used for another reason.
    """
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(
            lambda: _Greeter(make_peer), host, port, backlog=1024, reuse_address=True
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressInUseError(
                error.errno, f"another program listens on {host}:{port} already"
            ) from None
        raise


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
        address = f"tcp://{name[0]}:{name[1]}" if name else "unknown"
        peer = self._make_peer(address)
        if peer is None:
            transport.abort()
            return
        transport.set_protocol(peer)
        peer.connection_made(transport)
