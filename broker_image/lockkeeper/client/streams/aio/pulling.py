"""Reading one partition for as long as it is wanted: pulls that wait, as many as there is room."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from lockkeeper.client.errors import MessagingError
from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.messages import ReceivedMessage, read_messages
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.core.subscriptions import Subscription
from lockkeeper.client.streams.core.window import Bounds, Holdings, Window
from lockkeeper.client.streams.errors import UnreadableAnswerError
from lockkeeper.client.streams.links.network import FAILURES, Network, pause_after
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Response
from lockkeeper.protocols.rocketmq.errors import ProtocolError

_LOG = logging.getLogger(__name__)
PULL_SECONDS: Final = commands.PULL_WAIT_MS / 1000 + 15
REFUSED_SECONDS: Final = 3.0
"""How long to wait after a refusal: somebody may give the right that is missing."""
EXPECTED: Final = (
    Response.SUCCESS,
    Response.PULL_NOT_FOUND,
    Response.PULL_RETRY_IMMEDIATELY,
    Response.PULL_OFFSET_MOVED,
)


@dataclass(slots=True)
class Room:
    """Room for what the partitions of a consumer have in hand, and those who wait for some."""

    each: Bounds
    all: Bounds
    held: Holdings = field(default_factory=Holdings)
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, window: Window) -> None:
        """Wait until a window may take more."""
        while not (window.has_room(self.each) and self.all.leave_room(self.held)):
            self._freed.clear()
            await self._freed.wait()

    def note_freed(self) -> None:
        """Let those look again who wait for room."""
        self._freed.set()


class Pulling:
    """Reads one partition from an offset on, and hands over what is wanted, until it is stopped.

    Whatever is handed over is in hand in the *window* until its owner says it is done.
    """

    def __init__(
        self,
        network: Network,
        group: str,
        partition: Partition,
        wanted: Subscription,
        window: Window,
        room: Room,
        take: Callable[[ReceivedMessage], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self.partition = partition
        self.window = window
        self._network = network
        self._group = group
        self._wanted = wanted
        self._room = room
        self._take = take
        self._on_error = on_error
        self._failures = 0
        self._task = asyncio.create_task(self._run(), name=f"pull {partition}")

    async def stop(self) -> None:
        """Read no more; nothing is handed over after that."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await self._room.wait(self.window)
            try:
                self._receive(await self._pull())
                self._failures = 0
            except FAILURES as error:
                _LOG.info("reading %s is tried again: %s", self.partition, error)
                await asyncio.sleep(pause_after(self._failures))
                self._failures += 1
            except MessagingError as error:
                self._on_error(error)
                await asyncio.sleep(REFUSED_SECONDS)
            except Exception:
                _LOG.exception("reading %s failed", self.partition)
                await asyncio.sleep(REFUSED_SECONDS)

    async def _pull(self) -> Command:
        offset = self.window.next_offset
        route = await self._network.route(self.partition.stream)
        request = commands.pull(self._group, self.partition, offset, self._wanted)
        return await self._network.ask(
            route, self.partition.broker, request, PULL_SECONDS, EXPECTED
        )

    def _receive(self, answer: Command) -> None:
        """Take what a pull has found, in one step: a reader that is stopped has it or not."""
        next_offset = _next_offset(answer)
        if answer.code == Response.PULL_OFFSET_MOVED:
            self._move(next_offset)
            return
        if answer.code == Response.SUCCESS:
            try:
                found = read_messages(answer.body, self.partition.broker)
            except ProtocolError as wrong:
                raise UnreadableAnswerError(f"messages of {self.partition}: {wrong}") from wrong
            for message in found:
                message.partition = self.partition
                if self.window.take_message(message.offset, message.size):
                    if self._wanted.wants(message.tag or ""):
                        self._take(message)
                    else:
                        self.window.done(message.offset)
        self.window.read_to(next_offset)

    def _move(self, offset: int) -> None:
        """Go on where there is something, since there is nothing at the offset asked for."""
        asked = self.window.next_offset
        if offset == asked:
            return
        _LOG.warning(
            "%s has no offset %d: retention has ended it, or it is yet to come; going on at %d",
            self.partition, asked, offset,
        )  # fmt: skip
        self.window.next_offset = offset


def _next_offset(answer: Command) -> int:
    try:
        return int(answer.fields["nextBeginOffset"])
    except (KeyError, ValueError) as wrong:
        raise UnreadableAnswerError("an answer to a pull that does not say how to go on") from wrong
