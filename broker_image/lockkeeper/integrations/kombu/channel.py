"""Channels: AMQP's verbs as kombu calls them, in terms of OpenWire's queues and topics."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from kombu.message import Message

from lockkeeper.client.blocking.consumer import Consumer
from lockkeeper.client.blocking.producer import Producer
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.errors import MessagingError, RefusedError
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.integrations.kombu.bindings import exchange_topic
from lockkeeper.integrations.kombu.connection import Connection
from lockkeeper.integrations.kombu.declaring import (
    DeclaringChannel,
    exchange_called,
    queue_called,
)
from lockkeeper.integrations.kombu.envelope import (
    Envelope,
    Opened,
    UnreadableError,
    close_envelope,
    open_envelope,
    seconds_left,
    with_redelivered,
)
from lockkeeper.integrations.kombu.feeds import QueueFeed
from lockkeeper.integrations.kombu.held import Hand, Held
from lockkeeper.integrations.kombu.transient import TransientQueue
from lockkeeper.message.destination import Destination, queue

Callback = Callable[[Any], Any]
CONSUMER_PRIORITY = "x-priority"


class Channel(DeclaringChannel):
    """One line of work over a connection, for one thread at a time; others may acknowledge."""

    def __init__(self, connection: Connection, number: int, *, is_scheduled: bool) -> None:
        """With *is_scheduled* the broker's scheduler is told when tasks are due."""
        super().__init__(connection)
        self.connection: Connection | None = connection
        self.channel_id = number
        self.no_ack_consumers: set[str] = set()
        self._is_scheduled = is_scheduled
        self._hand = Hand()
        self._room = asyncio.Event()
        self._callbacks: dict[str, Callback] = {}
        self._feeds: dict[str, QueueFeed] = {}
        self._transient_tags: dict[str, TransientQueue] = {}
        self._to_delete: set[str] = set()
        self._getters: dict[str, Consumer] = {}
        self._producer: Producer | None = None
        self._feeding = connection.aio_session(Acknowledge.INDIVIDUAL)

    # Publishing

    def prepare_message(
        self,
        body: Any,
        priority: int | None = None,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return a message for `basic_publish`."""
        found = dict(properties or {})
        if priority is not None:
            found["priority"] = priority
        return {
            "body": body,
            "content-type": content_type,
            "content-encoding": content_encoding,
            "headers": dict(headers or {}),
            "properties": found,
        }

    def basic_publish(
        self, message: Mapping[str, Any], exchange: str = "", routing_key: str = "", **_: Any
    ) -> None:
        """Send a message to every queue that its routing key leads to.

        A persistent one is on the broker's disk when this returns.
        """
        self._check_open()
        envelope = close_envelope(
            message, exchange or "", routing_key or "", is_scheduled=self._is_scheduled
        )
        if not exchange:
            self._send(envelope, queue_called(routing_key))
            return
        routes = self._link.bindings.routes(exchange_called(exchange), routing_key or "")
        for name in routes.queues:
            self._send(envelope, queue(name))
        if routes.has_subscribers:
            self._send(envelope, exchange_topic(exchange), is_kept=False)

    def _send(
        self, envelope: Envelope, destination: Destination, is_kept: bool | None = None
    ) -> None:
        if self._producer is None:
            self._producer = self._link.session().producer()
        self._producer.send(
            envelope.body,
            envelope.properties,
            destination=destination,
            persistent=envelope.persistent if is_kept is None else is_kept,
            priority=envelope.priority,
            time_to_live=envelope.time_to_live,
            correlation_id=envelope.correlation_id,
            type=envelope.type,
        )

    # Consuming

    def basic_consume(
        self,
        queue: str,
        no_ack: bool = False,
        callback: Callback | None = None,
        consumer_tag: str | None = None,
        nowait: bool = False,
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> str:
        """Consume a queue; its messages come with `drain_events`."""
        self._check_open()
        tag = consumer_tag or f"ctag-{uuid.uuid4()}"
        feed = QueueFeed(self, str(queue_called(queue)), tag, no_ack)
        self._callbacks[tag] = callback or _ignore
        if no_ack:
            self.no_ack_consumers.add(tag)
        if queue in self._link.auto_delete:
            self._to_delete.add(queue)
        priority = int((arguments or {}).get(CONSUMER_PRIORITY) or 0)
        self._link.call(feed.begin(self._feeding, priority))
        self._feeds[tag] = feed
        transient = self._link.transient_queues.get(queue)
        if transient is not None:
            self._transient_tags[tag] = transient
            transient.consume(self, tag)
        return tag

    def basic_cancel(self, consumer_tag: str, nowait: bool = False) -> None:
        """Consume no more; what is in hand may still be acknowledged."""
        transient = self._transient_tags.pop(consumer_tag, None)
        if transient is not None:
            transient.cancel(consumer_tag)
        self._callbacks.pop(consumer_tag, None)
        self.no_ack_consumers.discard(consumer_tag)
        feed = self._feeds.pop(consumer_tag, None)
        if feed is None or not self._link.connected:
            return
        waiting = self._link.call(self._withdraw(feed))
        if self._hand.has_tagged(feed):
            for held in waiting:
                self._link.call(self._return(held))
        else:
            # All go back with the consumer.
            for held in waiting:
                self._hand.forget(held)
        self._link.call(feed.cancel())
        self._wake_feeds()

    async def _withdraw(self, feed: QueueFeed) -> list[Held]:
        """Have a feed bring no more; return what it has brought and nobody has got.

        In the event loop, since the feed is there: nothing comes in between.
        """
        feed.is_cancelled = True
        waiting: list[Held] = self._link.withdraw(feed)
        for held in waiting:
            self._hand.leave_line(held)
        return waiting

    def basic_get(self, queue: str, no_ack: bool = False, **_: Any) -> Message | None:
        """Return the next message of a queue, None when there is none."""
        self._check_open()
        transient = self._link.transient_queues.get(queue)
        if transient is not None and (received := transient.take_first()) is not None:
            return self._copy_in_hand(transient, received, "", no_ack)
        getter = self._getters.get(queue)
        if getter is None:
            getter = self._getting_session().consumer(queue_called(queue), prefetch=0)
            self._getters[queue] = getter
        while (found := getter.receive(0)) is not None:
            message = self._message(Held(self, found, queue, self._link.interruptions), "", no_ack)
            if message is not None:
                return message
        return None

    def stop_getting(self, queue: str) -> None:
        """Give back what was got from a queue and is in hand, and look at it no more."""
        getter = self._getters.pop(queue, None)
        if getter is not None:
            getter.close()

    def basic_qos(
        self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False
    ) -> None:
        """Have at most so many messages in hand; 0 for any number."""
        self._hand.prefetch_count = prefetch_count or 0
        self._wake_feeds()

    # Settling

    def basic_ack(self, delivery_tag: int, multiple: bool = False) -> None:
        """Acknowledge a message, or all up to it."""
        self._link.check_open()
        for tag in self._hand.tags_up_to(delivery_tag) if multiple else (delivery_tag,):
            held = self._hand.take_tagged(tag)
            if held is not None:
                self._hand.acknowledge(held, self._link.interruptions)
        self._wake_feeds()

    def basic_reject(self, delivery_tag: int, requeue: bool = False) -> None:
        """Put a message to the end of its queue, or to the broker's dead letters."""
        self._link.check_open()
        held = self._hand.take_tagged(delivery_tag)
        if held is None:
            return
        if requeue and held.transient is not None:
            held.transient.put_message(held.received, is_first=True)
        elif requeue:
            self._link.call(self._return(held))
        else:
            self._hand.reject(held, "rejected by the application")
        self._wake_feeds()

    def basic_recover(self, requeue: bool = False) -> None:
        """Put all messages in hand back into their queues."""
        for tag in self._hand.tags_up_to(None):
            self.basic_reject(tag, requeue=True)

    async def _return(self, held: Held) -> None:
        await self.give_back(held.received, held.queue)
        self._hand.forget(held)

    async def give_back(self, received: ReceivedMessage, queue: str) -> None:
        """Send a message to its queue again, then acknowledge it: it never is in neither.

        One that nobody can read is a dead letter.
        """
        try:
            open_envelope(received)
        except UnreadableError as error:
            received.reject(error)
            return
        session = self._link.aio_session()
        try:
            producer = await session.producer()
            await producer.send(
                received.body,
                with_redelivered(received.properties),
                destination=queue,
                persistent=received.persistent,
                priority=received.priority,
                time_to_live=seconds_left(received),
                correlation_id=received.correlation_id,
                reply_to=received.reply_to,
                type=received.type,
                group_id=received.group_id,
                group_sequence=received.group_sequence,
            )
            received.acknowledge()
        finally:
            await session.close()

    # What feeds say, in the event loop

    async def room(self, feed: QueueFeed) -> None:
        """See `FeedOwner`."""
        while True:
            self._room.clear()
            if feed.is_cancelled or self._hand.has_room:
                return
            await self._room.wait()

    def _wake_feeds(self) -> None:
        self._link.wake(self._room)

    def arrived(self, feed: QueueFeed, received: ReceivedMessage) -> None:
        """See `FeedOwner`."""
        held = Held(self, received, feed.queue, self._link.interruptions, feed)
        if self._hand.take_arrival(held):
            self._link.put(held)

    def feed_failed(self, error: MessagingError) -> None:
        """See `FeedOwner`."""
        if not self.closed:
            self._link.fail(error)

    # What is handed over, in the thread that drains

    def deliver_held(self, held: Held) -> bool:
        """Hand over what a feed has got."""
        self._hand.leave_line(held)
        feed = held.feed
        if self.closed or feed is None or feed.tag not in self._callbacks:
            return False
        message = self._message(held, feed.tag, feed.no_ack)
        if message is None:
            return False
        self._callbacks[feed.tag](message)
        return True

    def deliver_copy(self, queue: TransientQueue, received: ReceivedMessage, tag: str) -> bool:
        """Hand over what came for a transient queue."""
        message = self._copy_in_hand(queue, received, tag, tag in self.no_ack_consumers)
        if message is None:
            return False
        self._callbacks[tag](message)
        return True

    def _copy_in_hand(
        self, queue: TransientQueue, received: ReceivedMessage, tag: str, no_ack: bool
    ) -> Message | None:
        held = Held(self, received, queue.name, self._link.interruptions, transient=queue)
        return self._message(held, tag, no_ack)

    def _message(self, held: Held, consumer_tag: str, no_ack: bool) -> Message | None:
        """Return a message with its delivery tag; one that nobody can read is a dead letter."""
        try:
            opened = open_envelope(held.received)
        except UnreadableError as error:
            self._hand.reject(held, error)
            self._wake_feeds()
            return None
        if no_ack:
            tag = self._hand.pass_on()
            self._hand.acknowledge(held, self._link.interruptions)
            self._wake_feeds()
        else:
            tag = self._hand.number(held)
        return _kombu_message(self, opened, tag, consumer_tag)

    # The end

    def close(self) -> None:
        """Consume no more, and give everything in hand back to the broker."""
        if self.closed:
            return
        self.closed = True
        link = self._link
        if self in link.channels:
            link.channels.remove(self)
        self.connection = None
        if not link.connected:
            return
        for tag, transient in self._transient_tags.items():
            transient.cancel(tag)
        try:
            for feed in self._feeds.values():
                link.withdraw(feed)
                link.call(feed.stop())
            self._feeding.close_at_once()
            if self._getting is not None:
                self._getting.close()
            for name in sorted(self._to_delete):
                self._delete_unused(name)
        except MessagingError:
            return  # It has ended with the connection.

    def _delete_unused(self, name: str) -> None:
        """Delete a queue that is to go with its last consumer, unless there is one."""
        try:
            self._link.delete_queue(name)
        except RefusedError:
            return
        if name not in self._link.transient_queues:
            self._link.bindings.remove_queue(name)


def _kombu_message(channel: Channel, opened: Opened, tag: int, consumer_tag: str) -> Message:
    """Return a message as applications of kombu get it."""
    return Message(
        body=opened.body,
        delivery_tag=tag,
        content_type=opened.content_type,
        content_encoding=opened.content_encoding,
        delivery_info={
            "consumer_tag": consumer_tag,
            "exchange": opened.exchange,
            "routing_key": opened.routing_key,
            "redelivered": opened.redelivered,
            "delivery_tag": tag,
            "priority": opened.properties.get("priority"),
        },
        properties=opened.properties,
        headers=opened.headers,
        channel=channel,
    )


def _ignore(message: Any) -> None:
    """Do nothing: nobody has said what to do with messages."""
