"""A pool of producers: connections and sessions that are lent, not made for each send."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lockkeeper.client import aio
from lockkeeper.client.aio.pool import Pooled
from lockkeeper.client.aio.pool import ProducerPool as AioPool
from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.loop import LoopThread
from lockkeeper.client.blocking.producer import Producer
from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.messages import DestinationName
from lockkeeper.client.opening import DEFAULT_URL
from lockkeeper.client.tls import TlsOptions


class ProducerPool(Closing):
    """Lends producers to threads, up to *size* at once, over up to *connections* connections.

    What nobody has used for *idle_seconds* is closed when the pool is used next; a connection
    that has failed is replaced. The other parameters are those of `connect`.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        user: str | None = None,
        password: str | None = None,
        tls: TlsOptions | None = None,
        connections: int = 1,
        size: int = 16,
        idle_seconds: float = 30.0,
    ) -> None:
        async def made() -> AioPool:
            return AioPool(
                lambda: aio.connect(url, None, user, password, None, tls),
                connections=connections,
                size=size,
                idle_seconds=idle_seconds,
            )

        self._is_closed = False
        self._thread = LoopThread()
        try:
            self._pool = self._thread.call(made())
        except BaseException:
            self._thread.stop()
            raise

    @contextmanager
    def producer(
        self, destination: DestinationName | None = None, *, timeout: float | None = None
    ) -> Iterator[Producer]:
        """Lend a producer for the block, with the settings that new ones have.

        Raises RequestTimedOutError when none is free within *timeout* seconds, what `connect`
        raises, and IllegalStateError when the pool is closed.
        """
        if self._is_closed:
            raise IllegalStateError("the pool is closed")
        pooled = self._thread.call(self._pool.lend(destination, timeout=timeout))
        try:
            yield Producer(*pooled.producer.parts())
        finally:
            # A pool that is closed has nobody who would miss it.
            with suppress(IllegalStateError):
                self._thread.call(self._take_back(pooled))

    async def _take_back(self, pooled: Pooled) -> None:
        self._pool.take_back(pooled)

    def close(self) -> None:
        """Close all connections; a send under way, and waiting for a producer, end with errors."""
        if not self._is_closed:
            self._is_closed = True
            try:
                self._thread.call(self._pool.close())
            finally:
                self._thread.stop()
