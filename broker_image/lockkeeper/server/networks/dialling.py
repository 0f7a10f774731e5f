"""Dialling another broker: a connected, encrypted if need be, and never our own."""

import asyncio
import errno
import socket
import ssl

from lockkeeper.transport.peer import Peer
from lockkeeper_api.network_uris import PeerAddress


async def dial(address: PeerAddress, context: ssl.SSLContext | None, peer: Peer) -> None:
    """Connect *peer* to *address*, encrypted by *context* if there is one.

    Raises OSError or TimeoutError, with no socket left open.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(address.connection_timeout / 1000 or None):
        opened = await _opened(address)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is None:
                await loop.create_connection(lambda: peer, sock=opened)
                return
            context.check_hostname = address.verify_host_name
            await loop.create_connection(
                lambda: peer, sock=opened, ssl=context, server_hostname=address.host
            )
        except BaseException:
            opened.close()
            raise


async def _opened(address: PeerAddress) -> socket.socket:
    """Return a socket that is connected to the first place of *address* that answers."""
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _, place in found:
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        try:
            await loop.sock_connect(opened, place)
            if opened.getsockname() == opened.getpeername():
                # Linux lets a socket find itself at a port of its own that nobody listens on.
                raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")
        except OSError as error:
            opened.close()
            failure = error
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise failure or OSError(f"{address.host} has no address")
