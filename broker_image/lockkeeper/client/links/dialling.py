"""Dialling: a connected socket to a broker, encrypted if need be."""

import asyncio
import errno
import os
import socket
import struct
from typing import Any

from lockkeeper.client.errors import BrokerUrlError
from lockkeeper.client.tls import SecureSocket
from lockkeeper.client.url import Address


async def dial(address: Address) -> "socket.socket | SecureSocket":
    """Return a connected socket that does not block. Raises OSError."""
    options = address.options
    dialled = await open_socket(address.host, address.port)
    try:
        dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(options.tcp_no_delay))
        dialled.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(options.keep_alive))
        if address.tls is None:
            return dialled
        secure = _encrypted(dialled, address)
        try:
            await _shake_hands(secure)
        except BaseException:
            # The socket is its own from now on.
            secure.close()
            raise
        return secure
    except BaseException:
        dialled.close()
        raise


async def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is connected to the first address of *host* that answers."""
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, where in await _addresses(host, port):
        try:
            opened = socket.socket(family, kind, protocol)
        except OSError as error:
            # This system does not speak IPv6, say.
            failure = error
            continue
        opened.setblocking(False)
        try:
            await loop.sock_connect(opened, where)
            _refuse_itself(opened)
        except OSError as error:
            opened.close()
            # asyncio tells who was called, and not what came of it.
            failure = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise failure or OSError(f"{host} has no address")


def _refuse_itself(opened: socket.socket) -> None:
    """Raise ConnectionRefusedError when nobody listened, and the socket has found itself.

    Linux may give a socket the very port that it dials on its own host (RFC 9293 3.5, simultaneous
    open), sooner or later while a broker is away: it would hear itself, and keep the broker's port.
    """
    if opened.getsockname() == opened.getpeername():
        # A reset leaves nothing behind that would keep the port a minute longer.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")


async def _addresses(host: str, port: int) -> "list[tuple[Any, ...]]":
    """Return what the system knows of a host. Raises OSError, also for what is no host at all."""
    try:
        try:
            # Needs no name server, and so no thread.
            flags = socket.AI_NUMERICHOST
            return [*socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)]
        except socket.gaierror:
            loop = asyncio.get_running_loop()
            return [*await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except socket.gaierror as error:
        raise _unknown(host, error.strerror) from error
    except ValueError as error:
        # No name of RFC 1035: a label that is empty or too long, a character that is none.
        raise _unknown(host, "it is no host name") from error


def _unknown(host: str, reason: str | None) -> OSError:
    return OSError(errno.EHOSTUNREACH, f"the host {host!r} cannot be found: {reason}")


def _encrypted(dialled: socket.socket, address: Address) -> SecureSocket:
    """Return a socket that is to be encrypted. Raises OSError."""
    assert address.tls is not None
    try:
        return SecureSocket(dialled, address.host, address.tls)
    except ValueError as error:
        # BrokerUrlError is one, too, and holds for each attempt.
        if isinstance(error, BrokerUrlError):
            raise
        raise _unknown(address.host, str(error)) from error


async def _shake_hands(secure: SecureSocket) -> None:
    loop = asyncio.get_running_loop()
    while (wanted := secure.shake_hands()) is not None:
        ready = loop.create_future()
        add, remove = (
            (loop.add_reader, loop.remove_reader)
            if wanted == "read"
            else (loop.add_writer, loop.remove_writer)
        )
        number = secure.fileno()
        add(number, _settle, ready)
        try:
            await ready
        finally:
            remove(number)


def _settle(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
