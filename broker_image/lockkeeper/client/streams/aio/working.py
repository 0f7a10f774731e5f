"""Work of a member: messages given to its listener, side by side or one after the other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol

from lockkeeper.client.errors import MessagingError
from lockkeeper.client.streams.aio.calling import Caller
from lockkeeper.client.streams.aio.holding import Held
from lockkeeper.client.streams.aio.pulling import Room
from lockkeeper.client.streams.core.groups import GroupSettings
from lockkeeper.client.streams.core.messages import ReceivedMessage

_LOG = logging.getLogger(__name__)
AGAIN_SECONDS: Final = 5.0
"""When a message is tried again that could not be given back."""
LOCK_SECONDS: Final = 0.1
"""How often a worker looks for its lock."""

GiveBack = Callable[[ReceivedMessage, int], Awaitable[None]]
"""Has a message come again after a delay level. Raises MessagingError."""


class Work(Protocol):
    """Messages on their way to a listener."""

    def begin(self, held: Held) -> None:
        """Be ready for messages of a partition."""

    def accept(self, held: Held, message: ReceivedMessage) -> None:
        """Have a message consumed when its turn comes."""

    async def end(self, held: Held) -> None:
        """Wait until nothing of a dropped partition is under way that order depends on."""

    def begin_nothing(self) -> None:
        """Give the listener nothing any more; for any thread."""

    async def finish(self) -> None:
        """Begin nothing any more, and wait until nothing is under way."""

    async def cancel(self) -> None:
        """End what is under way, as not consumed."""


class ConcurrentWork:
    """Messages of all partitions, consumed side by side; what fails is given back."""

    def __init__(
        self, caller: Caller, settings: GroupSettings, room: Room, give_back: GiveBack
    ) -> None:
        self._caller = caller
        self._settings = settings
        self._room = room
        self._give_back = give_back
        self._ready: asyncio.Queue[tuple[Held, ReceivedMessage] | None] = asyncio.Queue()
        self._is_ending = False
        self._workers = [asyncio.create_task(self._work()) for _ in range(settings.concurrency)]

    def begin(self, held: Held) -> None:
        """Be ready, as always."""

    def accept(self, held: Held, message: ReceivedMessage) -> None:
        """Put a message into the line."""
        self._ready.put_nowait((held, message))

    async def _work(self) -> None:
        while (turn := await self._ready.get()) is not None:
            held, message = turn
            if not held.is_dropped and not self._is_ending:
                await self._consume(held, message)

    async def _consume(self, held: Held, message: ReceivedMessage) -> None:
        later = await self._caller.consume(message)
        if held.is_dropped:
            # Whoever holds it now gets the message, too.
            return
        if later is not None and not await self._have_again(held, message, later.delay_level):
            return
        held.window.done(message.offset)
        self._room.note_freed()

    async def _have_again(self, held: Held, message: ReceivedMessage, level: int) -> bool:
        """See to it that a message comes again; True if it is no longer in hand."""
        if self._settings.broadcasting:
            return self._try_again(held, message)
        try:
            await self._give_back(message, level)
        except MessagingError as error:
            _LOG.warning("%r is kept, and tried again: %s", message, error)
            self._accept_later(held, message, AGAIN_SECONDS)
            return False
        return True

    def _try_again(self, held: Held, message: ReceivedMessage) -> bool:
        """Try a message again, which nobody keeps for one member; True if it is given up."""
        message.reconsumed += 1
        most = self._settings.retries_max
        if most is not None and message.reconsumed > most:
            _LOG.error("%r is given up after %d times", message, message.reconsumed)
            return True
        self._accept_later(held, message, self._settings.suspend)
        return False

    def _accept_later(self, held: Held, message: ReceivedMessage, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.accept, held, message)

    async def end(self, held: Held) -> None:
        """Forget the messages of a partition that wait; order does not matter."""
        waiting = [self._ready.get_nowait() for _ in range(self._ready.qsize())]
        for turn in waiting:
            if turn is None or turn[0] is not held:
                self._ready.put_nowait(turn)

    def begin_nothing(self) -> None:
        """Give the listener nothing any more; for any thread."""
        self._is_ending = True

    async def finish(self) -> None:
        """Wait for the listeners at work."""
        self.begin_nothing()
        for _ in self._workers:
            self._ready.put_nowait(None)
        await asyncio.wait(self._workers)

    async def cancel(self) -> None:
        """Cancel the listeners at work."""
        self.begin_nothing()
        for worker in self._workers:
            worker.cancel()
        await asyncio.wait(self._workers)


class OrderlyWork:
    """Messages of each partition one after the other, while its lock holds."""

    def __init__(
        self, caller: Caller, settings: GroupSettings, room: Room, give_up: GiveBack
    ) -> None:
        self._caller = caller
        self._settings = settings
        self._room = room
        self._give_up = give_up
        self._turns = asyncio.Semaphore(settings.concurrency)
        self._is_ending = False
        self._workers: dict[asyncio.Task[None], Held] = {}

    def begin(self, held: Held) -> None:
        """Begin to work on a partition."""
        held.worker = asyncio.create_task(self._work(held), name=f"consume {held.partition}")
        self._workers[held.worker] = held
        held.worker.add_done_callback(lambda worker: self._workers.pop(worker))

    def accept(self, held: Held, message: ReceivedMessage) -> None:
        """Put a message behind those of its partition."""
        held.waiting.append(message)
        held.news.set()

    def _is_over(self, held: Held) -> bool:
        return held.is_dropped or self._is_ending

    async def _work(self, held: Held) -> None:
        while not self._is_over(held):
            if not held.waiting:
                held.news.clear()
                await held.news.wait()
            elif not held.is_locked:
                await self._pause(held, LOCK_SECONDS)
            else:
                await self._consume_first(held)

    async def _consume_first(self, held: Held) -> None:
        message = held.waiting[0]
        async with self._turns:
            if self._is_over(held) or not held.is_locked:
                return
            later = await self._caller.consume(message)
        if later is not None and not await self._gives_up(message):
            await self._pause(held, self._settings.suspend)
            return
        held.waiting.popleft()
        held.window.done(message.offset)
        self._room.note_freed()

    async def _gives_up(self, message: ReceivedMessage) -> bool:
        """Count a failure; True once the message is out of the way."""
        message.reconsumed += 1
        most = self._settings.retries_max
        if most is None or message.reconsumed <= most:
            return False
        try:
            await self._give_up(message, 0)
        except MessagingError as error:
            _LOG.warning("%r is kept, and tried again: %s", message, error)
            return False
        return True

    async def _pause(self, held: Held, seconds: float) -> None:
        """Wait, but no longer than the partition is held."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._is_over(held):
                    held.news.clear()
                    await held.news.wait()

    async def end(self, held: Held) -> None:
        """Wait for the message in hand of a dropped partition."""
        held.news.set()
        if held.worker is not None:
            await asyncio.wait([held.worker])

    def begin_nothing(self) -> None:
        """Give the listener nothing any more; for any thread."""
        self._is_ending = True

    async def finish(self) -> None:
        """Wait for the listeners at work."""
        self.begin_nothing()
        for held in self._workers.values():
            held.news.set()
        if self._workers:
            await asyncio.wait(list(self._workers))

    async def cancel(self) -> None:
        """Cancel the listeners at work."""
        self.begin_nothing()
        for worker in self._workers:
            worker.cancel()
        if self._workers:
            await asyncio.wait(list(self._workers))
