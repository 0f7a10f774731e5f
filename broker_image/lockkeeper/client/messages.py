"""Messages as applications see them: what they send, and what they receive."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from lockkeeper.client.acknowledge import dispatch_destination
from lockkeeper.message.bodies import Body, MessageType, decode_body, encode_body
from lockkeeper.message.destination import Destination, parse_destination
from lockkeeper.message.openwire import (
    LAYOUTS,
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQMessage,
    ActiveMQStreamMessage,
    ActiveMQTextMessage,
    Message,
    MessageDispatch,
)
from lockkeeper.message.primitives import Value, decode_map

DestinationName: TypeAlias = str | Destination
"""`NAME` or `queue://NAME` for a queue, `topic://NAME`, or a Destination."""

_TYPE_IDS = {layout.structure: layout.type_id for layout in LAYOUTS.values()}


def destination_of(name: DestinationName) -> Destination:
    """Return the destination that *name* stands for; ValueError when it has no name."""
    return name if isinstance(name, Destination) else parse_destination(name)


def message_with_body(body: Body) -> Message:
    """Return a message of the type that fits *body*: text, bytes, map, stream or none.

    Raises ValueError for a body, or a value in it, that OpenWire cannot carry.
    """
    made: Callable[..., Message]
    if body is None:
        return ActiveMQMessage()
    if isinstance(body, str):
        made, kind = ActiveMQTextMessage, MessageType.TEXT
    elif isinstance(body, bytes):
        made, kind = ActiveMQBytesMessage, MessageType.BYTES
    elif isinstance(body, Mapping):
        made, kind = ActiveMQMapMessage, MessageType.MAP
    elif isinstance(body, list):
        made, kind = ActiveMQStreamMessage, MessageType.STREAM
    else:
        raise ValueError(
            f"a message body is a str, bytes, a mapping, a list or None, not {type(body).__name__}"
        )
    return made(content=encode_body(kind, body))


class Settlement(Protocol):
    """The consumer of a message, which acknowledges or rejects it; see `Consumer`."""

    def acknowledge(self, dispatch: MessageDispatch) -> None:
        """Acknowledge as the mode says, for the message that came by *dispatch*."""

    def reject(self, dispatch: MessageDispatch, cause: str | BaseException) -> None:
        """Send what came by *dispatch* to the dead letter queue."""


class ReceivedMessage:
    """A message a consumer got; body and properties are decoded when they are looked at.

    `fields` has everything OpenWire knows of it. Times are in ms since 1970, 0 for none.
    """

    __slots__ = ("_body", "_dispatch", "_properties", "_settlement", "delivery_count", "fields")

    def __init__(self, dispatch: MessageDispatch, settlement: Settlement) -> None:
        assert dispatch.message is not None
        self.fields: Message = dispatch.message
        self.delivery_count = dispatch.redelivery_counter + 1
        self._dispatch = dispatch
        self._settlement = settlement
        self._body: Body = None
        self._properties: dict[str, Value] | None = None

    @property
    def message_type(self) -> MessageType:
        """The kind of body."""
        return MessageType(_TYPE_IDS[type(self.fields)])

    @property
    def body(self) -> Body:
        """The body: str, bytes, a mapping, a list of values, or None.

        Of an object message, the bytes of its Java serialization. Raises MalformedMessageError.
        """
        if self._body is None:
            fields = self.fields
            self._body = decode_body(self.message_type, fields.content, fields.compressed)
        return self._body

    @property
    def properties(self) -> Mapping[str, Value]:
        """The properties. Raises MalformedMessageError."""
        if self._properties is None:
            marshalled = self.fields.marshalled_properties
            self._properties = (decode_map(marshalled)[0] if marshalled else None) or {}
        return self._properties

    @property
    def message_id(self) -> str:
        """JMSMessageID."""
        return str(self.fields.message_id)

    @property
    def destination(self) -> Destination | None:
        """JMSDestination: where the message was taken from."""
        return dispatch_destination(self._dispatch)

    @property
    def original_destination(self) -> Destination | None:
        """First destination of a message that a broker moved, such as a dead letter; else None."""
        return self.fields.original_destination

    @property
    def redelivered(self) -> bool:
        """JMSRedelivered: whether the message may have come before."""
        return self.delivery_count > 1

    @property
    def correlation_id(self) -> str | None:
        """JMSCorrelationID."""
        return self.fields.correlation_id

    @property
    def reply_to(self) -> Destination | None:
        """JMSReplyTo."""
        return self.fields.reply_to

    @property
    def type(self) -> str | None:
        """JMSType."""
        return self.fields.type

    @property
    def priority(self) -> int:
        """JMSPriority, 0 to 9."""
        return self.fields.priority

    @property
    def persistent(self) -> bool:
        """JMSDeliveryMode."""
        return self.fields.persistent

    @property
    def timestamp(self) -> int:
        """JMSTimestamp: when the message was sent."""
        return self.fields.timestamp

    @property
    def expiration(self) -> int:
        """JMSExpiration."""
        return self.fields.expiration

    @property
    def group_id(self) -> str | None:
        """JMSXGroupID."""
        return self.fields.group_id

    @property
    def group_sequence(self) -> int:
        """JMSXGroupSeq."""
        return self.fields.group_sequence

    @property
    def user_id(self) -> str | None:
        """JMSXUserID, if the broker fills it in."""
        return self.fields.user_id

    def acknowledge(self) -> None:
        """Acknowledge as the session's mode says; nothing to do in AUTO and transacted ones."""
        self._settlement.acknowledge(self._dispatch)

    def reject(self, cause: str | BaseException) -> None:
        """Send the message to the dead letter queue, at once and for good, also in a transaction.

        Raises IllegalStateError when it is acknowledged already, as in AUTO mode.
        """
        self._settlement.reject(self._dispatch, cause)

    def __repr__(self) -> str:
        """Return type, id and destination."""
        kind = self.message_type.name.lower()
        return f"<{kind} message {self.message_id} from {self.destination}>"
