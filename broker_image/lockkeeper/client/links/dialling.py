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

SECOND_DIAL_SECONDS = 0.25
"""How long a dial may go unanswered before another goes beside it (RFC 8305 section 5).

Each further one waits twice as long.
"""


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
    failure: OSError | None = None
    for address in await _addresses(host, port):
        try:
            return await _connected_soon(address)
        except OSError as error:
            # asyncio tells who was called, and not what came of it.
            failure = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
    raise failure or OSError(f"{host} has no address")


async def _connected_soon(address: "tuple[Any, ...]") -> socket.socket:
    """Return a connected socket: of another dial, where the first gets no answer. Raises OSError.

    A Service in a cluster that leads to nobody refuses six dials of a pod at once, then one each
    second, and is silent to others (icmp_ratelimit of Linux). Linux asks again after a second: too
    late for whom a new master waits.
    """
    dials = [asyncio.create_task(_connected(address))]
    patience = SECOND_DIAL_SECONDS
    try:
        while not (answered := await _first_of(dials, patience)):
            dials.append(asyncio.create_task(_connected(address)))
            patience *= 2
        first = answered.pop()
        dials.remove(first)
        return first.result()
    finally:
        for dial in dials:
            _give_up(dial)


async def _first_of(
    dials: "list[asyncio.Task[socket.socket]]", seconds: float
) -> "set[asyncio.Task[socket.socket]]":
    """Return which of these are answered within this time, as soon as one is."""
    return (await asyncio.wait(dials, timeout=seconds, return_when=asyncio.FIRST_COMPLETED))[0]


def _give_up(dial: "asyncio.Task[socket.socket]") -> None:
    """End a dial that is no longer wanted, also when it has just been answered."""
    if dial.done() and not dial.cancelled() and dial.exception() is None:
        dial.result().close()
    dial.cancel()


async def _connected(address: "tuple[Any, ...]") -> socket.socket:
    """Return a socket that is connected to this address. Raises OSError."""
    family, kind, protocol, _, where = address
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, where)
        _refuse_itself(opened)
    except BaseException:
        opened.close()
        raise
    return opened


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
