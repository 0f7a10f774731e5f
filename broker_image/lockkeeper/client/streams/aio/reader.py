"""Readers for asyncio: streams read without a group, at the reader's own pace and place."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.streams.aio.offsets import find_offset
from lockkeeper.client.streams.aio.pulling import Pulling, Room
from lockkeeper.client.streams.core.messages import ReceivedMessage
from lockkeeper.client.streams.core.names import TOOLS_GROUP
from lockkeeper.client.streams.core.positions import Position
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.core.subscriptions import Subscription
from lockkeeper.client.streams.core.window import Bounds, Holdings, Window
from lockkeeper.client.streams.links.network import FAILURES, Network, pause

AHEAD: Final = Bounds(messages=1_000, bytes=16 << 20)
"""How much of a partition is read before it is asked for."""
AHEAD_IN_ALL: Final = Bounds(messages=10_000, bytes=64 << 20)


class Reader:
    """Reads partitions of one stream; made by `Connection.reader`. One task uses it at a time.

    Nobody else knows how far it is: `positions` says where to begin again. A message is read once
    `receive` has returned it. `async for message in reader` goes on until it is closed.
    """

    def __init__(
        self, network: Network, wanted: Subscription, closed: "Callable[[Reader], None]"
    ) -> None:
        self._network = network
        self._wanted = wanted
        self._closed = closed
        self._room = Room(AHEAD, AHEAD_IN_ALL)
        self._pulling: dict[Partition, Pulling] = {}
        self._arrived: deque[ReceivedMessage] = deque()
        self._news = asyncio.Event()
        self._error: Exception | None = None
        self._is_closed = False

    async def __aenter__(self) -> "Reader":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, begin: Position, numbers: Sequence[int] | None, timeout: float) -> None:
        """Find the partitions, and begin to read; see `Connection.reader`."""
        deadline = asyncio.get_running_loop().time() + timeout
        failures = 0
        while True:
            try:
                there = (await self._network.route(self._wanted.stream)).readable
                break
            except FAILURES as error:
                await pause(failures, deadline, error)
                failures += 1
        if numbers is not None and not all(0 <= number < len(there) for number in numbers):
            raise ValueError(f"{self._wanted.stream} has the partitions 0 to {len(there) - 1}")
        chosen = there if numbers is None else [there[number] for number in numbers]
        for partition in dict.fromkeys(chosen):
            self._begin(partition, await find_offset(self._network, partition, begin, timeout))

    # Reading

    async def receive(self, timeout: float | None = None) -> ReceivedMessage | None:
        """Return the next message; None when none came within *timeout* seconds.

        Without a timeout it waits for ever. None also when the reader is closed meanwhile. A call
        that is cancelled takes nothing. Raises what a broker refuses: the next call goes on.
        """
        try:
            async with asyncio.timeout(timeout):
                while not self._arrived and not self._is_closed:
                    self._raise_error()
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return None
        if self._is_closed:
            return None
        return self._hand_out()

    async def receive_many(
        self, most: int = 100, timeout: float | None = None
    ) -> list[ReceivedMessage]:
        """Return up to *most* messages: the next, see `receive`, and those that are here already.

        None of them when none came in time, or the reader is closed.
        """
        first = await self.receive(timeout)
        if first is None:
            return []
        count = min(most - 1, len(self._arrived))
        return [first, *(self._hand_out() for _ in range(count))]

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _hand_out(self) -> ReceivedMessage:
        message = self._arrived.popleft()
        self._pulling[message.partition].window.done(message.offset)
        self._room.note_freed()
        return message

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        while (message := await self.receive()) is not None:
            yield message

    # Positions

    @property
    def positions(self) -> dict[Partition, int]:
        """The offset of each partition that comes next; all before it are read, or not wanted."""
        return {each: pulling.window.position for each, pulling in self._pulling.items()}

    @property
    def in_hand(self) -> Holdings:
        """Messages that are read ahead, and their bytes."""
        return self._room.held

    async def offsets(self, position: Position, *, timeout: float = 30.0) -> dict[Partition, int]:
        """Return the offset of a position in each partition: `offsets(LAST)` is where they end."""
        return {
            each: await find_offset(self._network, each, position, timeout)
            for each in self._pulling
        }

    async def seek(
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
        if self._is_closed:
            raise IllegalStateError("the reader is closed")
        if isinstance(position, Mapping):
            wanted = dict(position)
        else:
            chosen = list(self._pulling) if partition is None else [partition]
            self._require_own(chosen)
            wanted = {
                each: await find_offset(self._network, each, position, timeout) for each in chosen
            }
        self._require_own(wanted)
        for each in wanted:
            await self._end(each)
        for each, offset in wanted.items():
            self._begin(each, offset)

    def _require_own(self, partitions: "Sequence[Partition] | Mapping[Partition, int]") -> None:
        for each in partitions:
            if each not in self._pulling:
                raise ValueError(f"{each} is no partition that is read here")

    def _begin(self, partition: Partition, offset: int) -> None:
        window = Window(offset, self._room.held)
        self._pulling[partition] = Pulling(
            self._network, TOOLS_GROUP, partition, self._wanted, window, self._room,
            self._arrive, self._note_error,
        )  # fmt: skip

    async def _end(self, partition: Partition) -> None:
        pulling = self._pulling[partition]
        await pulling.stop()
        self._arrived = deque(each for each in self._arrived if each.partition != partition)
        pulling.window.clear()
        self._room.note_freed()

    def _arrive(self, message: ReceivedMessage) -> None:
        self._arrived.append(message)
        self._news.set()

    def _note_error(self, error: Exception) -> None:
        self._error = error
        self._news.set()

    async def close(self) -> None:
        """Stop reading."""
        if self._is_closed:
            return
        self._is_closed = True
        self._news.set()
        self._closed(self)
        for pulling in self._pulling.values():
            await pulling.stop()
