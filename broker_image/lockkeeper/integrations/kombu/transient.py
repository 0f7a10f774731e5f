"""Transient queues: those that live as long as the connection that declares them.

Celery's workers have them for remote control, its clients for replies and events. What is published
to an exchange that one is bound to comes by the exchange's topic: nothing stays on the broker when
the process is killed. What is sent to such a queue by its name waits in a queue of that name.
"""

import threading
import time
from collections import deque
from typing import Any, NamedTuple, Protocol

from lockkeeper.client import aio
from lockkeeper.client.errors import MessagingError
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.integrations.kombu.bindings import Binding, exchange_topic
from lockkeeper.integrations.kombu.envelope import UnreadableError, open_envelope
from lockkeeper.integrations.kombu.exchanges import fits
from lockkeeper.integrations.kombu.feeds import TopicFeed

BUFFER_MESSAGES = 10_000
"""The oldest messages of one that nobody consumes are dropped beyond these."""
PREFETCH = 1000


class TransientConsumer(Protocol):
    """The channel that consumes a transient queue."""

    def deliver_copy(self, queue: "TransientQueue", received: ReceivedMessage, tag: str) -> bool:
        """Hand a message over."""


class TransientOwner(Protocol):
    """The connection of a transient queue."""

    def aio_session(self) -> aio.Session:
        """Return a session for the event loop."""

    def call(self, coroutine: Any) -> Any:
        """Return what a coroutine returns that is carried out in the event loop."""

    def put(self, arrival: "Ready") -> None:
        """Have something handed over by whoever drains."""


class Ready(NamedTuple):
    """A message is in a transient queue."""

    queue: "TransientQueue"

    def deliver(self) -> bool:
        """Hand the first message of the queue over."""
        return self.queue.deliver_first()


class TransientQueue:
    """Messages for one name in this connection."""

    def __init__(self, owner: TransientOwner, name: str, is_prioritised: bool) -> None:
        self.name = name
        self._is_prioritised = is_prioritised
        self._owner = owner
        self._session: aio.Session | None = None
        self._feeds: dict[str, TopicFeed] = {}
        self._bindings: dict[str, set[Binding]] = {}
        self._messages: deque[ReceivedMessage] = deque()
        self._consumer: tuple[TransientConsumer, str] | None = None
        self._lock = threading.Lock()

    def bind(self, exchange: str, binding: Binding) -> None:
        """Take what is published to an exchange from now on, where the binding's key fits."""
        self._bindings.setdefault(exchange, set()).add(binding)
        if exchange in self._feeds:
            return
        if self._session is None:
            self._session = self._owner.aio_session()
        feed = TopicFeed(self._take_message)
        self._owner.call(feed.begin(self._session, str(exchange_topic(exchange)), PREFETCH))
        self._feeds[exchange] = feed

    def unbind(self, exchange: str, binding: Binding) -> None:
        """Take no more of what only this binding let in."""
        left = self._bindings.get(exchange, set())
        left.discard(binding)
        if not left and exchange in self._feeds:
            self._owner.call(self._feeds.pop(exchange).close())

    def close(self) -> None:
        """End all subscriptions."""
        for feed in self._feeds.values():
            try:
                self._owner.call(feed.close())
            except MessagingError:
                break  # They have ended with the connection.
        self._feeds.clear()
        self._bindings.clear()

    def _take_message(self, received: ReceivedMessage) -> None:
        try:
            opened = open_envelope(received)
        except UnreadableError:
            return
        bindings = self._bindings.get(opened.exchange, ())
        if any(fits(each.type, each.routing_key, opened.routing_key) for each in bindings):
            self.put_message(received)

    def put_message(self, received: ReceivedMessage, is_first: bool = False) -> None:
        """Keep a message until somebody wants it."""
        with self._lock:
            self._messages.insert(0 if is_first else self._place_of(received), received)
            is_full = len(self._messages) > BUFFER_MESSAGES
            if is_full:
                self._messages.popleft()
            # Where one was dropped, what had told of it tells of this one.
            is_told = self._consumer is None or is_full
        if not is_told:
            self._owner.put(Ready(self))

    def _place_of(self, received: ReceivedMessage) -> int:
        place = len(self._messages)
        if self._is_prioritised:
            while place and self._messages[place - 1].priority < received.priority:
                place -= 1
        return place

    def take_first(self) -> ReceivedMessage | None:
        """Return the first message that has not expired, None when there is none."""
        with self._lock:
            while self._messages:
                received = self._messages.popleft()
                if not received.expiration or received.expiration > time.time() * 1000:
                    return received
            return None

    def purge(self) -> int:
        """Drop all messages, and return how many there were."""
        with self._lock:
            count = len(self._messages)
            self._messages.clear()
        return count

    def __len__(self) -> int:
        return len(self._messages)

    def consume(self, channel: TransientConsumer, tag: str) -> None:
        """Hand messages over to a channel, those that are here first."""
        with self._lock:
            self._consumer = (channel, tag)
            count = len(self._messages)
        for _ in range(count):
            self._owner.put(Ready(self))

    def cancel(self, tag: str) -> None:
        """Keep messages from now on."""
        with self._lock:
            if self._consumer is not None and self._consumer[1] == tag:
                self._consumer = None

    def deliver_first(self) -> bool:
        """Hand the first message over; False when nobody consumes, or there is none."""
        consumer = self._consumer
        received = None if consumer is None else self.take_first()
        if consumer is None or received is None:
            return False
        channel, tag = consumer
        return channel.deliver_copy(self, received, tag)
