"""Reaching a broker: one connection for all consumers, made anew when it is lost for good."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator

from lockkeeper.client import aio
from lockkeeper.client.listener.back_off import BackOff

Connect = Callable[[], Awaitable[aio.Connection]]
_LOG = logging.getLogger(__name__)


class Recovery:
    """Waits between attempts; all consumers that failed together wait once."""

    def __init__(self, back_off: BackOff) -> None:
        self.epoch = 0
        self._back_off = back_off
        self._delays: Iterator[float] | None = None
        self._turn = asyncio.Lock()

    def note_success(self) -> None:
        """Begin with the shortest delay next time."""
        self._delays = None

    async def wait(self, epoch: int, error: Exception) -> None:
        """Wait unless another has since *epoch*. Raises *error* after the last attempt."""
        async with self._turn:
            if self.epoch != epoch:
                return
            if self._delays is None:
                self._delays = self._back_off.delays(random.random)
            delay = next(self._delays, None)
            if delay is None:
                raise error
            _LOG.warning("looking for a broker again in %.1f s: %s", delay, error)
            await asyncio.sleep(delay)
            self.epoch += 1


class SharedConnection:
    """The connection of a container, opened when it is needed."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._turn = asyncio.Lock()
        self.current: aio.Connection | None = None

    async def open(self) -> aio.Connection:
        """Return a connection that has not ended. Raises MessagingError."""
        async with self._turn:
            if self.current is not None and self.current.state.is_over:
                await self.close()
            if self.current is None:
                self.current = await self._connect()
            return self.current

    async def close(self, timeout: float | None = None) -> None:
        """Close what is open."""
        current, self.current = self.current, None
        if current is not None:
            await current.close(timeout)
