"""The hot path's encoders: record bytes around a message that is not copied.

The caller joins `[head, body, tail]` once for a whole batch. Destination and transaction
fields are encoded once and passed in. Plain typed code, so that mypyc can compile it.
"""

from lockkeeper.journal.encode import encode_destination, encode_transaction
from lockkeeper.journal.protobuf import bytes_field
from lockkeeper.journal.records import PRIORITY_DEFAULT
from lockkeeper.journal.varint import SMALL_VARINTS, varint
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId

ADD_TAIL = b"\x28\x04\x30\x00"
"""After the frame of an add on a destination without priorities: priority 4, unsupported."""

PRIORITY_TAILS = [b"\x28%c\x30\x01" % priority for priority in range(10)]
"""After the frame of an add on a destination that orders by priority, by priority 0 to 9."""

_SMALL = SMALL_VARINTS
_SMALL_COUNT = len(_SMALL)
ADD_TAIL_SIZE = 4
FRAME_PREFIX_SIZE = 4


def destination_field(destination: Destination) -> bytes:
    """Return the destination field of adds and removes: cache it per destination."""
    return bytes_field(2, encode_destination(destination))


def transaction_field(transaction: TransactionId) -> bytes:
    """Return the transaction field of adds and removes: cache it per transaction."""
    return bytes_field(1, encode_transaction(transaction))


def add_tail(priority: int, supported: bool) -> bytes:
    """Return what follows the frame of an add; an unsupported priority is written as it is."""
    if supported:
        return PRIORITY_TAILS[priority]
    return ADD_TAIL if priority == PRIORITY_DEFAULT else b"\x28%c\x30\x00" % priority


def add_head(
    destination: bytes, message_id: bytes, body_length: int, transaction: bytes = b""
) -> bytes:
    """Return the bytes of an add record before its message body.

    *destination* and *transaction* are whole fields as the functions above give them,
    *message_id* is the JMSMessageID in UTF-8, *body_length* counts the bytes of the loose frame
    without its size prefix, which is the end of the head. A 4-byte tail (`add_tail`) must
    follow the body.
    """
    id_size = len(message_id)
    frame_size = body_length + FRAME_PREFIX_SIZE
    # Looked up here rather than by a call: this is done once for every message.
    id_length = _SMALL[id_size] if id_size < _SMALL_COUNT else varint(id_size)
    length = _SMALL[frame_size] if frame_size < _SMALL_COUNT else varint(frame_size)
    rest = len(transaction) + len(destination) + len(id_length) + len(length) + 2
    body = rest + id_size + frame_size + ADD_TAIL_SIZE
    size = _SMALL[body] if body < _SMALL_COUNT else varint(body)
    return b"%b\x01\x01%b%b%b\x1a%b%b\x22%b%b" % (
        (6 + len(size) + body).to_bytes(4, "big"),
        size,
        transaction,
        destination,
        id_length,
        message_id,
        length,
        body_length.to_bytes(4, "big"),
    )


def remove_record(
    destination: bytes,
    message_id: bytes,
    ack_field: bytes = b"",
    subscription_field: bytes = b"",
    transaction: bytes = b"",
) -> bytes:
    """Return a whole remove record.

    *ack_field* is `bytes_field(4, frame)` and *subscription_field* is `bytes_field(5, key)`,
    or empty where there is none.
    """
    id_length = varint(len(message_id))
    body = (
        len(transaction)
        + len(destination)
        + 1
        + len(id_length)
        + len(message_id)
        + len(ack_field)
        + len(subscription_field)
    )
    body_length = varint(body)
    return b"%b\x01\x02%b%b%b\x1a%b%b%b%b" % (
        (6 + len(body_length) + body).to_bytes(4, "big"),
        body_length,
        transaction,
        destination,
        id_length,
        message_id,
        ack_field,
        subscription_field,
    )
