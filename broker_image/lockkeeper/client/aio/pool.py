"""A pool of producers for asyncio: connections and sessions that are lent, not made for each send.

The counterpart of ActiveMQ's PooledConnectionFactory, for those who send a little from many tasks.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from lockkeeper.client.aio.closing import Closing
from lockkeeper.client.aio.connection import Connection
from lockkeeper.client.aio.producer import Producer
from lockkeeper.client.aio.session import Session
from lockkeeper.client.drafting import PRIORITY_DEFAULT
from lockkeeper.client.errors import IllegalStateError, RequestTimedOutError
from lockkeeper.client.links.clock import moment
from lockkeeper.client.messages import DestinationName, destination_of

_CLOSED = "the pool is closed"


@dataclass(eq=False)
class _Connected:
    """A connection of the pool; `lent` counts its producers that somebody has."""

    connection: Connection
    lent: int = 0
    idle: "list[Pooled]" = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.connection.state.is_over


@dataclass(eq=False)
class Pooled:
    """A producer of the pool, with a session of its own; `since` when it came back."""

    owner: _Connected
    session: Session
    producer: Producer
    since: float = 0.0


class ProducerPool(Closing):
    """Lends producers to tasks, up to *size* at once, over up to *connections* connections.

    *connect* opens a connection. What nobody has used for *idle_seconds* is closed when the pool
    is used next; a connection that has failed is replaced.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        *,
        connections: int = 1,
        size: int = 16,
        idle_seconds: float = 30.0,
    ) -> None:
        if not 1 <= connections <= size:
            raise ValueError("a pool has from 1 connection on, and a producer for each at least")
        self._connect = connect
        self._connections_max = connections
        self._idle_seconds = idle_seconds
        self._room = asyncio.Semaphore(size)
        self._turn = asyncio.Lock()
        self._connections: list[_Connected] = []
        self._waiting: set[asyncio.Timeout] = set()
        self._is_closed = False

    @property
    def connections(self) -> int:
        """Number of connections that are open."""
        return len(self._connections)

    @property
    def idle(self) -> int:
        """Number of producers that nobody has."""
        return sum(len(each.idle) for each in self._connections)

    @asynccontextmanager
    async def producer(
        self, destination: DestinationName | None = None, *, timeout: float | None = None
    ) -> AsyncIterator[Producer]:
        """Lend a producer for the block, with the settings that new ones have.

        Raises RequestTimedOutError when none is free within *timeout* seconds, what `connect`
        raises, and IllegalStateError when the pool is closed.
        """
        pooled = await self.lend(destination, timeout=timeout)
        try:
            yield pooled.producer
        finally:
            self.take_back(pooled)

    async def lend(
        self, destination: DestinationName | None = None, *, timeout: float | None = None
    ) -> Pooled:
        """Return a producer that `take_back` gets later."""
        target = None if destination is None else destination_of(destination)
        try:
            async with asyncio.timeout(timeout) as limit:
                pooled = await self._lend_within(limit)
        except TimeoutError:
            if self._is_closed:
                raise IllegalStateError(_CLOSED) from None
            raise RequestTimedOutError(f"no producer is free within {timeout:g} s") from None
        producer = pooled.producer
        producer.destination = target
        producer.persistent, producer.priority = True, PRIORITY_DEFAULT
        producer.time_to_live = None
        return pooled

    async def _lend_within(self, limit: asyncio.Timeout) -> Pooled:
        """Return a producer once one is free; `close` ends the *limit*."""
        if self._is_closed:
            raise IllegalStateError(_CLOSED)
        self._waiting.add(limit)
        try:
            await self._room.acquire()
            try:
                return await self._find()
            except BaseException:
                self._room.release()
                raise
        finally:
            self._waiting.discard(limit)

    async def _find(self) -> Pooled:
        async with self._turn:
            if self._is_closed:
                raise IllegalStateError(_CLOSED)
            await self._drop_unused()
            owner = await self._least_used()
            if owner.idle:
                owner.lent += 1
                return owner.idle.pop()
            session = owner.connection.session()
            owner.lent += 1
            try:
                return Pooled(owner, session, await session.producer())
            except BaseException:
                owner.lent -= 1
                session.close_at_once()
                raise

    async def _least_used(self) -> _Connected:
        """Return the connection with the fewest producers lent, perhaps a new one."""
        chosen = min(self._connections, key=lambda each: each.lent, default=None)
        if chosen is None or (chosen.lent and len(self._connections) < self._connections_max):
            chosen = _Connected(await self._connect())
            self._connections.append(chosen)
        return chosen

    async def _drop_unused(self) -> None:
        oldest = moment().now - self._idle_seconds
        for owner in [*self._connections]:
            if owner.is_over:
                self._connections.remove(owner)
                await owner.connection.close()
                continue
            unused = [each for each in owner.idle if each.since < oldest]
            for pooled in unused:
                owner.idle.remove(pooled)
                pooled.session.close_at_once()
            if unused and not owner.idle and not owner.lent:
                self._connections.remove(owner)
                await owner.connection.close()

    def take_back(self, pooled: Pooled) -> None:
        """Take back what was lent."""
        owner = pooled.owner
        owner.lent -= 1
        pooled.since = moment().now
        if pooled.producer.core.is_closed:
            # Whoever had it has closed it, and nobody can use its session.
            pooled.session.close_at_once()
        elif not (owner.is_over or self._is_closed):
            owner.idle.append(pooled)
        self._room.release()

    async def close(self) -> None:
        """Close all connections; a send under way, and waiting for a producer, end with errors."""
        self._is_closed = True
        for limit in self._waiting:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())
        async with self._turn:
            connections, self._connections = self._connections, []
            await asyncio.gather(*(owner.connection.close() for owner in connections))
