"""The hot path's encoders: record bytes around a message that is not copied.

The caller joins the pieces once for a whole batch. Destination and transaction fields are
encoded once and passed in; what stands around a message id depends on sizes only, so that it can
be kept for messages that are alike. Plain typed code, so that mypyc can compile it.
"""

from typing import Final

from lockkeeper.journal.encode import encode_destination, encode_transaction
from lockkeeper.journal.protobuf import bytes_field
from lockkeeper.journal.records import PRIORITY_DEFAULT
from lockkeeper.journal.varint import varint
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId

ADD_TAIL: Final = b"\x28\x04\x30\x00"
"""After the frame of an add on a destination without priorities: priority 4, unsupported."""

PRIORITY_TAILS = [b"\x28%c\x30\x01" % priority for priority in range(10)]
"""After the frame of an add on a destination that orders by priority, by priority 0 to 9."""

ADD_TAILS = [*PRIORITY_TAILS, ADD_TAIL]
"""After the frame of any add: by priority, -1 for a destination that does not order by it."""

ADD_TAIL_SIZE: Final = 4
FRAME_PREFIX_SIZE: Final = 4


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


def add_frame(
    destination: bytes, id_size: int, body_length: int, transaction: bytes = b""
) -> tuple[bytes, bytes]:
    """Return what stands before and after the message id in an add record, up to its body.

    *destination* and *transaction* are whole fields as the functions above give them, *id_size*
    counts the bytes of the JMSMessageID in UTF-8, *body_length* those of the loose frame without
    its size prefix, which ends what is returned. A 4-byte tail (`add_tail`) must follow the body.
    """
    frame_size = body_length + FRAME_PREFIX_SIZE
    id_length, length = varint(id_size), varint(frame_size)
    rest = len(transaction) + len(destination) + len(id_length) + len(length) + 2
    body = rest + id_size + frame_size + ADD_TAIL_SIZE
    size = varint(body)
    return (
        b"%b\x01\x01%b%b%b\x1a%b"
        % ((6 + len(size) + body).to_bytes(4, "big"), size, transaction, destination, id_length),
        b"\x22%b%b" % (length, body_length.to_bytes(4, "big")),
    )


def remove_lead(
    destination: bytes, id_size: int, rest_size: int = 0, transaction: bytes = b""
) -> bytes:
    """Return what stands before the message id in a remove record.

    Behind the id come *rest_size* bytes: `bytes_field(4, frame)` of an acknowledgement,
    `bytes_field(5, key)` of a subscription, both or neither.
    """
    id_length = varint(id_size)
    body = len(transaction) + len(destination) + 1 + len(id_length) + id_size + rest_size
    size = varint(body)
    return b"%b\x01\x02%b%b%b\x1a%b" % (
        (6 + len(size) + body).to_bytes(4, "big"),
        size,
        transaction,
        destination,
        id_length,
    )
