"""Reaching a broker: connections of a container, made anew when they are lost for good."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from lockkeeper.client import aio
from lockkeeper.client.links.clock import moment
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


class Contact(NamedTuple):
    """Contact with a broker: when it was heard, and told something, by the clock of `moment`.

    `silence_max` is how many seconds of silence mean nothing, None without any limit.
    """

    address: str | None
    received_at: float
    sent_at: float
    silence_max: float | None


class Connections:
    """The connections of a container: one that all consumers share, or one for each receive."""

    def __init__(self, connect: Connect, is_shared: bool) -> None:
        self._connect = connect
        self._is_shared = is_shared
        self._turn = asyncio.Lock()
        self._shared: aio.Connection | None = None
        self._own: list[aio.Connection] = []
        self._last_contact: Contact | None = None

    async def open(self) -> aio.Connection:
        """Return a connection that has not ended, made unless it is shared. MessagingError."""
        if self._is_shared:
            return await self._open_shared()
        try:
            connection = await self._connect()
        except BaseException:
            self._last_contact = None
            raise
        self._own.append(connection)
        return connection

    async def _open_shared(self) -> aio.Connection:
        async with self._turn:
            if self._shared is not None and self._shared.state.is_over:
                await self.close()
            if self._shared is None:
                self._shared = await self._connect()
            return self._shared

    async def release(self, connection: aio.Connection) -> None:
        """Close a connection that nobody else uses."""
        if connection in self._own:
            self._last_contact = _contact_by(connection)
            self._own.remove(connection)
            await connection.close()

    async def close(self) -> None:
        """Close the one that is shared."""
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.close()

    def contact(self) -> Contact | None:
        """Return the latest contact with a broker, None while none is there.

        Between two receives that each have a connection, it is that of the one before.
        """
        live = self._own if self._shared is None else [self._shared]
        found = [contact for each in live if (contact := _contact_by(each)) is not None]
        return max(found, key=lambda each: each.received_at, default=self._last_contact)


def _contact_by(connection: aio.Connection) -> Contact | None:
    silence, now = connection.silence, moment().now
    if silence is None:
        return None
    return Contact(
        connection.address, now - silence.received, now - silence.sent, connection.silence_max
    )
