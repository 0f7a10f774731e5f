"""Feeds: consumers of the broker, each asked for one message after another while there is room.

Nothing is sent ahead (prefetch 0): what a worker has no room for stays on the broker, where others
get it. A consumer that is cancelled stays until what it has handed out is settled, for the broker
would give that to others.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from lockkeeper.client import aio
from lockkeeper.client.errors import MessagingError
from lockkeeper.client.messages import ReceivedMessage

PULL_SECONDS = 2.0
"""So long the broker waits for a message before it says that it has none."""
_LOG = logging.getLogger(__name__)


class FeedOwner(Protocol):
    """The channel of a feed."""

    async def room(self, feed: "QueueFeed") -> None:
        """Wait until one more message may come, or the feed is cancelled."""

    def arrived(self, feed: "QueueFeed", received: ReceivedMessage) -> None:
        """Take a message."""

    async def give_back(self, received: ReceivedMessage, queue: str) -> None:
        """Put a message back into its queue."""

    def feed_failed(self, error: MessagingError) -> None:
        """Note that the connection is lost for good."""


class QueueFeed:
    """A consumer of a queue."""

    def __init__(self, owner: FeedOwner, queue: str, tag: str, no_ack: bool) -> None:
        self.queue = queue
        self.tag = tag
        self.no_ack = no_ack
        self.unsettled = 0
        self.is_cancelled = False
        self._owner = owner
        self._consumer: aio.Consumer | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_idle = False

    # In the event loop

    async def begin(self, session: aio.Session, priority: int) -> None:
        """Begin to consume. Raises a refusal."""
        self._consumer = await session.consumer(self.queue, prefetch=0, priority=priority)
        self._task = asyncio.create_task(self._run(self._consumer), name=f"kombu-{self.queue}")

    async def _run(self, consumer: aio.Consumer) -> None:
        try:
            while not self.is_cancelled:
                await self._owner.room(self)
                if self.is_cancelled:
                    return
                received = await consumer.receive(PULL_SECONDS)
                if received is None:
                    if consumer.core.is_closed:
                        return
                elif self.is_cancelled:
                    await self._owner.give_back(received, self.queue)
                else:
                    self._owner.arrived(self, received)
        except MessagingError as error:
            self._owner.feed_failed(error)
        except Exception as error:
            _LOG.exception("consuming %s", self.queue)
            self._owner.feed_failed(MessagingError(f"consuming {self.queue}: {error!r}"))
        finally:
            self._is_idle = True
            self.close_if_settled()

    async def cancel(self) -> None:
        """Hand out nothing more; leave once all is settled."""
        self.is_cancelled = True
        if not self.unsettled:
            await self.stop()

    async def stop(self) -> None:
        """Leave at once; what is not settled goes back."""
        self.is_cancelled = True
        if self._task is not None:
            self._task.cancel()
        if self._consumer is not None and not self._consumer.core.is_closed:
            self._consumer.close_at_once()

    # In any thread

    def close_if_settled(self) -> None:
        """Leave, if it is cancelled and nothing is unsettled."""
        if not (self.is_cancelled and self._is_idle) or self.unsettled:
            return
        if self._consumer is not None and not self._consumer.core.is_closed:
            self._consumer.close_at_once()


class TopicFeed:
    """A subscription to what is published to an exchange, for as long as the connection lives."""

    def __init__(self, take_message: Callable[[ReceivedMessage], None]) -> None:
        self._take_message = take_message
        self._consumer: aio.Consumer | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self, session: aio.Session, exchange_topic: str, prefetch: int) -> None:
        """Begin to listen. Raises a refusal."""
        self._consumer = await session.consumer(exchange_topic, prefetch=prefetch)
        self._task = asyncio.create_task(self._run(self._consumer), name=f"kombu-{exchange_topic}")

    async def _run(self, consumer: aio.Consumer) -> None:
        try:
            while (received := await consumer.receive()) is not None:
                self._take_message(received)
        except MessagingError as error:
            _LOG.debug("a subscription ends: %s", error)

    async def close(self) -> None:
        """End the subscription."""
        if self._task is not None:
            self._task.cancel()
        if self._consumer is not None:
            await self._consumer.close()
