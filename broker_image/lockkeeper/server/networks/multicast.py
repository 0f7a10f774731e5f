"""Sockets of multicast groups: telling of one's own listener there, and hearing of others."""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any

from lockkeeper.network.announcements import Neighbours, announcement
from lockkeeper_api.multicast_uris import MulticastGroup

logger = logging.getLogger(__name__)

_MEMBERSHIP = struct.Struct("4s4si")
"""Linux's ip_mreqn: group, address of the interface, its index."""
_ANY = socket.inet_aton("0.0.0.0")
ROOM_BYTES = 64 * 1024
"""What may wait to be heard: enough for hundreds of brokers, and bounded."""


class Announcer:
    """Tells a group of the listener at *uri*, until it is closed."""

    def __init__(self, group: MulticastGroup, uri: str) -> None:
        self.uri = uri
        self._group = group
        self._socket: socket.socket | None = None
        self._next: asyncio.TimerHandle | None = None
        self._failure = ""

    def begin(self) -> None:
        """Tell of it now, and again at each interval."""
        self._send_announcement(is_alive=True)
        interval = self._group.keep_alive_interval / 1000
        self._next = asyncio.get_running_loop().call_later(interval, self.begin)

    def close(self) -> None:
        """Tell that it goes, and nothing more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
            self._send_announcement(is_alive=False)
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send_announcement(self, is_alive: bool) -> None:
        """Send one datagram; what hinders it is logged once, and may pass."""
        group, failure = self._group, ""
        try:
            if self._socket is None:
                self._socket = _sending(group)
            datagram = announcement(group.group, self.uri, is_alive)
            self._socket.sendto(datagram, (group.host, group.port))
        except BlockingIOError:
            return  # The next one takes its place.
        except OSError as error:
            failure = str(error)
        if failure and failure != self._failure:
            place = f"multicast {group.host}:{group.port}"
            logger.warning("%s: cannot tell of %s: %s", place, self.uri, failure)
        self._failure = failure


class Search(asyncio.DatagramProtocol):
    """Hears of the brokers of a group; *changed* is called when they are others than before.

    That is looked at once an interval, since anybody may send, as often as he likes: who is said
    to go, and tells of himself again, goes on. *read* returns a broker's address, and raises
    ValueError for what is none.
    """

    def __init__(
        self, group: MulticastGroup, read: Callable[[str], str], changed: Callable[[], None]
    ) -> None:
        self.found: frozenset[str] = frozenset()
        self._group = group
        self._neighbours = Neighbours(group.group, group.keep_alive_interval, read)
        self._changed = changed
        self._transport: asyncio.BaseTransport | None = None

    async def keep(self, retry_seconds: float) -> None:
        """Listen for ever; a group that cannot be joined is tried again after *retry_seconds*."""
        told = ""
        try:
            while True:
                if self._transport is None:
                    told = await self._join(told)
                self._take_news()
                is_in = self._transport is not None
                interval = self._group.keep_alive_interval / 1000
                await asyncio.sleep(interval if is_in else retry_seconds)
        finally:
            if self._transport is not None:
                self._transport.close()

    async def _join(self, told: str) -> str:
        """Join the group; returns why that failed, which is logged unless it is what was *told*."""
        loop = asyncio.get_running_loop()
        try:
            joined = _joined(self._group)
        except OSError as error:
            failure = str(error)
            if failure != told:
                place = f"multicast {self._group.host}:{self._group.port}"
                logger.warning("%s: cannot hear of brokers: %s", place, failure)
            return failure
        await loop.create_datagram_endpoint(lambda: self, sock=joined)
        return ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.DatagramProtocol`."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """See `asyncio.DatagramProtocol`."""
        self._neighbours.hear(data, _now())

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.DatagramProtocol`: it is joined anew."""
        self._transport = None

    def _take_news(self) -> None:
        self._neighbours.part_with_silent(_now())
        if self._neighbours.found != self.found:
            self.found = frozenset(self._neighbours.found)
            self._changed()


def _now() -> int:
    """Return a time in ms that only passes."""
    return int(asyncio.get_running_loop().time() * 1000)


def _sending(group: MulticastGroup) -> socket.socket:
    """Return a socket that sends to a group, to brokers of this machine, too. Raises OSError."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, group.time_to_live)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        if group.network_interface:
            way = _MEMBERSHIP.pack(_ANY, _ANY, _index(group.network_interface))
            made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, way)
    except BaseException:
        made.close()
        raise
    return made


def _joined(group: MulticastGroup) -> socket.socket:
    """Return a socket that hears a group, as others of this machine may. Raises OSError."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM_BYTES)
        made.bind((group.host, group.port))
        index = _index(group.join_network_interface) if group.join_network_interface else 0
        member = _MEMBERSHIP.pack(socket.inet_aton(group.host), _ANY, index)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    except BaseException:
        made.close()
        raise
    return made


def _index(interface: str) -> int:
    try:
        return socket.if_nametoindex(interface)
    except OSError as error:
        names = ", ".join(name for _, name in socket.if_nameindex())
        text = f"there is no network interface {interface} (there are {names})"
        raise OSError(text) from error
