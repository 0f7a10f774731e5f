"""Readers of the blocking face."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.loop import Caller
from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.streams import aio
from lockkeeper.client.streams.core.messages import ReceivedMessage
from lockkeeper.client.streams.core.positions import Position
from lockkeeper.client.streams.core.routes import Partition


class Reader(Closing):
    """Reads partitions of one stream; made by `Connection.reader`. One thread uses it at a time.

    Nobody else knows how far it is: `positions` says where to begin again. A message is read once
    `receive` has returned it. `for message in reader` goes on until it is closed.
    """

    def __init__(self, thread: Caller, reader: aio.Reader) -> None:
        self._thread = thread
        self._aio = reader

    def receive(self, timeout: float | None = None) -> ReceivedMessage | None:
        """Return the next message; None when none came within *timeout* seconds.

        Without a timeout it waits for ever. None also when the reader is closed meanwhile. Raises
        what a broker refuses: the next call goes on.
        """
        return self._thread.call(self._aio.receive(timeout))

    def receive_many(self, most: int = 100, timeout: float | None = None) -> list[ReceivedMessage]:
        """Return up to *most* messages: the next, see `receive`, and those that are here already.

        None of them when none came in time, or the reader is closed.
        """
        return self._thread.call(self._aio.receive_many(most, timeout))

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while (message := self.receive()) is not None:
            yield message

    @property
    def positions(self) -> dict[Partition, int]:
        """The offset of each partition that comes next; all before it are read, or not wanted."""
        return self._thread.call(self._positions())

    async def _positions(self) -> dict[Partition, int]:
        return self._aio.positions

    def offsets(self, position: Position, *, timeout: float = 30.0) -> dict[Partition, int]:
        """Return the offset of a position in each partition: `offsets(LAST)` is where they end."""
        return self._thread.call(self._aio.offsets(position, timeout=timeout))

    def seek(
        self,
        position: Position | Mapping[Partition, int],
        partition: Partition | None = None,
        *,
        timeout: float = 30.0,
    ) -> None:
        """Go on at a position, in one partition or in all; or at offsets such as `positions` told.

        A time leads to the first message that was stored then or later. Raises ValueError for what
        is no position, or no partition of this reader.
        """
        self._thread.call(self._aio.seek(position, partition, timeout=timeout))

    def close(self) -> None:
        """Stop reading."""
        with suppress(IllegalStateError):
            self._thread.call(self._aio.close())
