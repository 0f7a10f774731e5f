"""Messages as applications see them: what they receive."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from lockkeeper.client.blobs import MIME_TYPE, Blob
from lockkeeper.client.core.delivery import Delivery
from lockkeeper.message.bodies import Body, MessageType, decode_body
from lockkeeper.message.destination import Destination, parse_destination
from lockkeeper.message.openwire import LAYOUTS, ActiveMQBlobMessage, Message
from lockkeeper.message.primitives import Value, decode_map

DestinationName: TypeAlias = str | Destination
"""`NAME` or `queue://NAME` for a queue, `topic://NAME`, or a Destination."""

_TYPE_IDS = {layout.structure: layout.type_id for layout in LAYOUTS.values()}


def destination_of(name: DestinationName) -> Destination:
    """Return the destination that *name* stands for; ValueError when it has no name."""
    return name if isinstance(name, Destination) else parse_destination(name)


class Settlement(Protocol):
    """The consumer of a message, which acknowledges or rejects it; see `Consumer`."""

    def acknowledge(self, delivery: Delivery) -> None:
        """Acknowledge as the mode says, for the message that came by *delivery*."""

    def reject(self, delivery: Delivery, cause: str | BaseException) -> None:
        """Send what came by *delivery* to the dead letter queue."""


class ReceivedMessage:
    """A message a consumer got; body and properties are decoded when they are looked at.

    `fields` has everything OpenWire knows of it. Times are in ms since 1970, 0 for none.
    """

    __slots__ = ("_body", "_delivery", "_properties", "_settlement")

    def __init__(self, delivery: Delivery, settlement: Settlement) -> None:
        self._delivery = delivery
        self._settlement = settlement
        self._body: Body = None
        self._properties: dict[str, Value] | None = None

    @property
    def delivery(self) -> Delivery:
        """The delivery as its consumer knows it; not for applications."""
        return self._delivery

    @property
    def fields(self) -> Message:
        """Everything OpenWire knows of it. Raises MalformedMessageError."""
        return self._delivery.message

    @property
    def delivery_count(self) -> int:
        """JMSXDeliveryCount: 1 for a message that comes for the first time."""
        return self._delivery.redelivery_counter + 1

    @property
    def message_type(self) -> MessageType:
        """The kind of body."""
        delivery = self._delivery
        if delivery.message_at:
            return MessageType(delivery.frame[delivery.message_at])
        return MessageType(_TYPE_IDS[type(self.fields)])

    @property
    def body(self) -> Body:
        """The body: str, bytes, a mapping, a list of values, or None.

        That of an object message is a JavaObject, bytes. Raises MalformedMessageError.
        """
        if self._body is None:
            content, is_compressed = self._delivery.content()
            self._body = decode_body(self.message_type, content, is_compressed)
        return self._body

    @property
    def blob(self) -> Blob | None:
        """The blob of a blob message, whose body is None. Raises MalformedMessageError."""
        if self.message_type is not MessageType.BLOB:
            return None
        fields = self.fields
        if not isinstance(fields, ActiveMQBlobMessage) or fields.remote_blob_url is None:
            return None
        return Blob(fields.remote_blob_url, fields.mime_type or MIME_TYPE, fields.deleted_by_broker)

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
        return str(self._delivery.message_id)

    @property
    def destination(self) -> Destination | None:
        """JMSDestination: where the message was taken from."""
        return self._delivery.destination

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
        self._settlement.acknowledge(self._delivery)

    def reject(self, cause: str | BaseException) -> None:
        """Send the message to the dead letter queue, at once and for good, also in a transaction.

        Raises IllegalStateError when it is acknowledged already, as in AUTO mode.
        """
        self._settlement.reject(self._delivery, cause)

    def __repr__(self) -> str:
        """Return type, id and destination."""
        kind = self.message_type.name.lower()
        return f"<{kind} message {self.message_id} from {self.destination}>"
