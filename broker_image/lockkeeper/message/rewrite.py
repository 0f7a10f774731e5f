"""New messages made from old ones, and messages a broker makes itself: the slow, general way."""

from collections.abc import Mapping
from typing import Final, cast

from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import MessageId
from lockkeeper.message.layout import BLOB_MESSAGE
from lockkeeper.message.message import Message, UnreadableMessage
from lockkeeper.message.primitives import Value, decode_map, encode_map
from lockkeeper.message.reader import MessageReader

UNREADABLE_PROPERTIES: Final = "lockkeeperUnreadableProperties"


def decoded(message: Message) -> openwire.Message:
    """Return every field of *message*. Raises MalformedMessageError."""
    structure, _ = openwire.decode(message.body)
    if not isinstance(structure, openwire.Message):
        raise MalformedMessageError(f"{type(structure).__name__} where a message must be")
    return structure


def properties_of(fields: openwire.Message) -> dict[str, Value]:
    """Return the user properties of a decoded message."""
    if not fields.marshalled_properties:
        return {}
    return decode_map(fields.marshalled_properties)[0] or {}


def encoded(fields: openwire.Message, sequence: int) -> Message:
    """Return the message with these fields; *sequence* becomes its brokerSequenceId."""
    body = openwire.encode(cast("openwire.Structure", fields))
    return MessageReader().trust(body, 0, len(body), sequence)


def rewritten(
    message: Message,
    destination: Destination,
    message_id: MessageId,
    properties: Mapping[str, Value],
    expiration: int,
) -> Message:
    """Return *message* as it enters another destination, with a new id and *properties* added.

    Where it was, and its transaction, are kept in originalDestination and
    originalTransactionId, as ActiveMQ does when it moves a message.
    """
    fields = decoded(message)
    fields.original_destination = message.destination
    fields.original_transaction_id = fields.transaction_id
    fields.transaction_id = None
    fields.destination = destination
    fields.expiration = expiration
    if properties:
        fields.marshalled_properties = encode_map({**_readable(fields), **properties})
    fields.message_id = message_id
    return encoded(fields, message_id.broker_sequence)


def _readable(fields: openwire.Message) -> dict[str, Value]:
    """Return the properties of a message, or their bytes as one where they cannot be read."""
    try:
        return properties_of(fields)
    except MalformedMessageError:
        return {UNREADABLE_PROPERTIES: fields.marshalled_properties}


def unreadable(
    data: bytes, destination: Destination, message_id: MessageId, defect: str
) -> UnreadableMessage:
    """Return what stands for the message that the bytes *data* were to be."""
    likeness = openwire.ActiveMQBytesMessage(
        producer_id=message_id.producer_id,
        destination=destination,
        message_id=message_id,
        persistent=True,
        content=data,
    )
    return UnreadableMessage(encoded(likeness, message_id.broker_sequence), defect)


def first_of_group(message: Message) -> Message:
    """Return *message* marked as the first of its group for its consumer."""
    if message.body[0] != BLOB_MESSAGE:
        body = message.body[:-1] + b"\x01"
        return Message(body, message.lead, message.sequence, message.flags_at, message.expiration)
    fields = decoded(message)
    fields.group_first_for_consumer = True
    return encoded(fields, message.sequence)


def producer_of(key: bytes) -> tuple[bytes, int] | None:
    """Split a message's key into its producer and sequence number; None for a foreign id."""
    producer, _, sequence = key.rpartition(b":")
    return (producer, int(sequence)) if producer and sequence.isdigit() else None
