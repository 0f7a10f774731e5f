"""Connections of the blocking face."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.loop import LoopThread
from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.streams import aio
from lockkeeper.client.streams.aio.calling import Listener
from lockkeeper.client.streams.aio.connection import (
    CLOSE_SECONDS,
    DEFAULT_ADDRESS,
    DEFAULT_PRODUCER,
)
from lockkeeper.client.streams.aio.producer import Check
from lockkeeper.client.streams.blocking.consumer import GroupConsumer
from lockkeeper.client.streams.blocking.producer import Producer
from lockkeeper.client.streams.blocking.reader import Reader
from lockkeeper.client.streams.core.groups import GroupSettings
from lockkeeper.client.streams.core.positions import FIRST, Position
from lockkeeper.client.streams.core.subscriptions import ALL, Sql
from lockkeeper.client.streams.links.addresses import Credentials, Means

_SETTINGS = GroupSettings()


class Connection(Closing):
    """A client of streams: its links, its id, its heartbeats; made by `connect`.

    Any thread may use it. A group has one consumer of a connection at most.
    """

    def __init__(self, thread: LoopThread, connection: aio.Connection) -> None:
        self._thread = thread
        self._aio = connection

    @property
    def client_id(self) -> str:
        """The name by which members of groups know this client."""
        return self._aio.client_id

    def producer(self, group: str = DEFAULT_PRODUCER, check: Check | None = None) -> Producer:
        """Return what sends messages.

        The *group* matters for transactions alone: a broker that does not know what became of one
        asks any producer of the group, and *check* answers, see `Producer.transaction`.
        """
        return Producer(self._thread, self._thread.call(self._aio.producer(group, check)))

    def reader(
        self,
        stream: str,
        wanted: str | Sql = ALL,
        begin: Position = FIRST,
        partitions: Sequence[int] | None = None,
        *,
        timeout: float = 30.0,
    ) -> Reader:
        """Return what reads a stream without a group, from a position in each partition.

        It reads all partitions, or those with the places *partitions* in the order of the route.
        Raises NoSuchStreamError; what may pass is waited for, *timeout* seconds at most.
        """
        opening = self._aio.reader(stream, wanted, begin, partitions, timeout=timeout)
        return Reader(self._thread, self._thread.call(opening))

    def consumer(
        self,
        group: str,
        streams: Mapping[str, str | Sql] | str,
        listener: Listener,
        settings: GroupSettings = _SETTINGS,
        *,
        timeout: float = 30.0,
    ) -> GroupConsumer:
        """Return a member of a group, which has *listener* consume messages of *streams*.

        They are told by name, with the tags or the condition of what is wanted; one name alone
        means all of that stream. The listener is called in threads of the member, a coroutine
        function in the connection's event loop. A message is consumed when it returns, and comes
        again when it raises. All members of a group, whoever they are, have to subscribe to the
        same. Waits until partitions were shared, *timeout* seconds at most. Raises ValueError for
        what is no subscription, what a broker refuses, and IllegalStateError for a second member of
        the group in this connection.
        """
        joining = self._aio.consumer(group, streams, listener, settings, timeout=timeout)
        return GroupConsumer(self._thread, self._thread.call(joining))

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Close everything that was made of it; *timeout* seconds are for what is under way.

        A listener that closes its own connection does not wait for that.
        """
        if self._thread.is_own or self._aio.is_in_listener:
            self._aio.end_listeners()
            self._thread.begin(self._close_soon(timeout))
            return
        # Whoever comes last finds that the thread has ended.
        with suppress(IllegalStateError):
            self._thread.call(self._aio.close(timeout))
        self._thread.stop()

    async def _close_soon(self, timeout: float) -> None:
        try:
            await self._aio.close(timeout)
        finally:
            self._thread.stop()


def connect(
    addresses: str = DEFAULT_ADDRESS,
    credentials: Credentials | None = None,
    client_id: str | None = None,
    means: Means | None = None,
) -> Connection:
    """Return a connection by way of the name servers at `host:port;host:port`.

    Nothing is dialled before it is needed. *means* has the limits and times of links, and TLS.
    Raises AddressError.
    """
    thread = LoopThread()
    try:
        return Connection(
            thread, thread.call(aio.connect(addresses, credentials, client_id, means))
        )
    except BaseException:
        thread.stop()
        raise
