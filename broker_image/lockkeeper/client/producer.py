"""Producers: they make messages of what applications send."""

import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from typing import Protocol

from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.messages import (
    DestinationName,
    ReceivedMessage,
    destination_of,
    message_with_body,
)
from lockkeeper.client.transport import Pending, Transport
from lockkeeper.message.bodies import Body
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import Message, RemoveInfo
from lockkeeper.message.primitives import Value, encode_map

PRIORITY_DEFAULT = 4
PRIORITY_MAX = 9
WINDOW_MESSAGES = 100


class ProducerOwner(Protocol):
    """The session of a producer; see `Session`."""

    @property
    def is_transacted(self) -> bool:
        """Tell whether sending happens at commit."""

    def send_in_transaction(self, message: Message) -> None:
        """Make a message part of the session's transaction."""

    def producer_closed(self, producer: "Producer") -> None:
        """Forget a producer."""


class Producer:
    """Sends messages, to one destination or to any; made by `Session.producer`.

    `persistent`, `priority` (0 to 9) and `time_to_live` (seconds, None for ever) hold for every
    message that does not say otherwise, and may be changed.
    """

    def __init__(
        self,
        session: ProducerOwner,
        transport: Transport,
        identifier: ProducerId,
        destination: Destination | None,
        persistent: bool,
        priority: int,
        time_to_live: float | None,
    ) -> None:
        self.identifier = identifier
        self.destination = destination
        self.persistent = persistent
        self.priority = priority
        self.time_to_live = time_to_live
        self._session = session
        self._transport = transport
        self._sequence = 0
        self._is_closed = False

    def send(
        self,
        body: Body,
        properties: Mapping[str, Value] | None = None,
        *,
        destination: DestinationName | None = None,
        persistent: bool | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        correlation_id: str | None = None,
        reply_to: DestinationName | None = None,
        type: str | None = None,
        group_id: str | None = None,
        group_sequence: int = 0,
    ) -> str:
        """Send a text, bytes, map, stream (list) or empty (None) message; return its id.

        Outside a transaction a persistent message is on the broker's disk when this returns,
        one that is not persistent is on its way. Within a transaction, errors surface at the
        commit. Raises ValueError for what OpenWire cannot carry, else a MessagingError.
        """
        message = self._address(message_with_body(body), destination, persistent)
        if properties:
            message.marshalled_properties = encode_map(properties)
        self._set_delivery(message, priority, time_to_live)
        message.correlation_id = correlation_id
        message.reply_to = None if reply_to is None else destination_of(reply_to)
        message.type = type
        message.group_id = group_id
        message.group_sequence = group_sequence
        self._transmit(message)
        return str(message.message_id)

    def forward(
        self,
        received: ReceivedMessage,
        *,
        destination: DestinationName | None = None,
        without: Collection[str] = (),
    ) -> str:
        """Send a received message on, under a new id and without an expiry; return the id.

        Its body, headers and properties stay, except for those properties named in *without*.
        Raises like `send`.
        """
        message = self._address(copy(received.fields), destination, received.persistent)
        kept = {name: each for name, each in received.properties.items() if name not in without}
        message.marshalled_properties = encode_map(kept) if kept else None
        message.original_destination = message.original_transaction_id = None
        message.transaction_id = message.broker_path = message.target_consumer_id = None
        message.redelivery_counter = message.expiration = 0
        self._set_delivery(message, received.priority, 0)
        self._transmit(message)
        return str(message.message_id)

    def send_many(
        self,
        bodies: Iterable[Body],
        properties: Mapping[str, Value] | None = None,
        window: int = WINDOW_MESSAGES,
    ) -> int:
        """Send many messages alike, with up to *window* on the way at once; return how many.

        All persistent ones are on the broker's disk when this returns. Raises like `send`, at
        the first that fails; those after it may have been sent.
        """
        marshalled = encode_map(properties) if properties else None
        waiting: deque[Pending] = deque()
        count = 0
        for body in bodies:
            message = self._address(message_with_body(body), None, None)
            message.marshalled_properties = marshalled
            self._set_delivery(message, None, None)
            if self._session.is_transacted or not message.persistent:
                self._transmit(message)
            else:
                waiting.append(self._transport.request(message))
            if len(waiting) > window:
                waiting.popleft().result()
            count += 1
        for pending in waiting:
            pending.result()
        return count

    def _address(
        self, message: Message, destination: DestinationName | None, persistent: bool | None
    ) -> Message:
        if self._is_closed:
            raise IllegalStateError("the producer is closed")
        target = self.destination if destination is None else destination_of(destination)
        if target is None:
            raise IllegalStateError("the producer has no destination, so each message needs one")
        message.producer_id = self.identifier
        message.destination = target
        message.persistent = self.persistent if persistent is None else persistent
        return message

    def _set_delivery(
        self, message: Message, priority: int | None, time_to_live: float | None
    ) -> None:
        message.priority = check_priority(self.priority if priority is None else priority)
        message.timestamp = int(time.time() * 1000)
        seconds = self.time_to_live if time_to_live is None else time_to_live
        if seconds:
            message.expiration = message.timestamp + max(1, int(seconds * 1000))
        self._sequence += 1
        message.message_id = MessageId(self.identifier, self._sequence)

    def _transmit(self, message: Message) -> None:
        if self._session.is_transacted:
            self._session.send_in_transaction(message)
        elif message.persistent:
            self._transport.request(message).result()
        else:
            self._transport.oneway(message)

    def close(self) -> None:
        """Tell the broker that the producer is no more."""
        if not self._is_closed:
            self._is_closed = True
            self._session.producer_closed(self)
            self._transport.remove(self.identifier, RemoveInfo(object_id=self.identifier))

    def __enter__(self) -> "Producer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_priority(priority: int) -> int:
    """Return *priority*; ValueError when it is not 0 to 9."""
    if not 0 <= priority <= PRIORITY_MAX:
        raise ValueError(f"a priority is 0 to {PRIORITY_MAX}, not {priority}")
    return priority
