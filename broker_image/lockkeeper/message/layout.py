"""Offsets of the leading fields of a loose message (openwire.md sections 6 and 8).

Offsets are into a message body: the loose, uncached frame of version 10 to 12 without its size
prefix, so offset 0 is the type byte. Only what routing needs is located; everything else is
decoded on demand by `lockkeeper.message.openwire`.
"""

from functools import lru_cache
from typing import Final

from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId, TransactionId, XATransactionId
from lockkeeper.message.text import decode_text

MESSAGE_TYPES: Final = frozenset(range(23, 30))
BLOB_MESSAGE: Final = 29
# Names up to this length are read once: 4096 long ones would take half a gigabyte.
NAME_BYTES_KEPT: Final = 256
RESPONSE_REQUIRED_AT: Final = 5
PRODUCER_ID_AT: Final = 6
PRODUCER_ID: Final = 123
MESSAGE_ID: Final = 110
LOCAL_TRANSACTION_ID: Final = 111
XA_TRANSACTION_ID: Final = 112
# brokerInTime, brokerOutTime and the group flag close every message but a blob message.
BROKER_IN_TIME_FROM_END: Final = 17
BROKER_IN_TIME_AT: Final = -17
BROKER_OUT_TIME_AT: Final = -9


# No originalTransactionId, no group id, group sequence 0, no correlation id.
PLAIN: Final = bytes(7)


class Lead:
    """The leading fields of a message, the same for all that begin with the same bytes.

    `producer` is `connectionId:sessionId:value:`; `text_view` is what is shown
    instead of the id.
    `sequence_at` is the offset of messageId.producerSequenceId, `plain_flags_at` that of
    `persistent` when neither group nor correlation id comes before it.
    """

    __slots__ = (
        "destination",
        "plain_flags_at",
        "producer",
        "sequence_at",
        "text_view",
        "transaction_id",
    )

    def __init__(
        self,
        destination: Destination,
        transaction_id: TransactionId | None,
        producer: bytes,
        text_view: bytes | None,
        sequence_at: int,
        plain_flags_at: int,
    ) -> None:
        self.destination = destination
        self.transaction_id = transaction_id
        self.producer = producer
        self.text_view = text_view
        self.sequence_at = sequence_at
        self.plain_flags_at = plain_flags_at

    def find_group(self, data: bytes, start: int = 0) -> tuple[bytes | None, int]:
        """Return the group id of the message at *start*, None without one, and its sequence.

        Raises MalformedMessageError when the bytes end before that.
        """
        try:
            group, position = _string(data, skip_nested(data, start + self.sequence_at + 16))
        except (IndexError, UnicodeDecodeError):
            raise _garbled() from None
        return group or None, int.from_bytes(data[position : position + 4], "big", signed=True)

    def find_persistent(self, data: bytes, start: int = 0) -> int:
        """Return the position of `persistent` in the message at *start*.

        Expiration (8 bytes) and priority (1 byte) follow it. Raises MalformedMessageError when
        the bytes end before that.
        """
        position = start + self.sequence_at + 16
        if data[position : position + 7] == PLAIN:
            return position + 7
        try:
            position = skip_nested(data, position)
            position = skip_string(data, position)
            return skip_string(data, position + 4)
        except (IndexError, UnicodeDecodeError):
            raise _garbled() from None


def read_lead(data: bytes, start: int, end: int) -> Lead:
    """Locate the leading fields of the message whose type byte is at *start*.

    Raises MalformedMessageError when the bytes end early or a field is not what it must be.
    """
    try:
        position = _skip_producer_id(data, start + PRODUCER_ID_AT)
        destination, position = read_destination(data, position)
        transaction_id, position = _transaction_id(data, position)
        _, position = read_destination(data, position)
        if destination is None:
            raise MalformedMessageError("the message names no destination")
        if not data[position] or data[position + 1] != MESSAGE_ID:
            raise MalformedMessageError(f"no messageId at offset {position - start}")
        text_view, position = _string(data, position + 2)
        decode_text(text_view or b"")
        producer, position = read_producer(data, position)
    except (IndexError, UnicodeDecodeError) as error:
        raise MalformedMessageError(
            f"the message's header is cut short or garbled: {error}"
        ) from None
    if position + 16 > end:
        raise MalformedMessageError("the message ends within its messageId")
    sequence_at = position - start
    plain_flags_at = sequence_at + 16 + len(PLAIN)
    return Lead(destination, transaction_id, producer, text_view, sequence_at, plain_flags_at)


def _garbled() -> MalformedMessageError:
    return MalformedMessageError("the message ends within its header, or a text of it is none")


def locate_destinations(body: bytes) -> tuple[slice, slice]:
    """Return where destination and originalDestination lie in a message, their flags included."""
    at = _skip_producer_id(body, PRODUCER_ID_AT)
    end = skip_nested(body, at)
    original_at = skip_nested(body, end)
    return slice(at, end), slice(original_at, skip_nested(body, original_at))


def skip_nested(data: bytes, position: int) -> int:
    """Return the position after the nested transaction id or destination at *position*."""
    if not data[position]:
        return position + 1
    if data[position + 1] in (LOCAL_TRANSACTION_ID, XA_TRANSACTION_ID):
        return _transaction_id(data, position)[1]
    return read_destination(data, position)[1]


def skip_string(data: bytes, position: int) -> int:
    """Return the position after the string at *position*."""
    if not data[position]:
        return position + 1
    return position + 3 + int.from_bytes(data[position + 1 : position + 3], "big")


def skip_octets(data: bytes, position: int) -> int:
    """Return the position after the bytes with a 32-bit length at *position*."""
    if not data[position]:
        return position + 1
    return position + 5 + int.from_bytes(data[position + 1 : position + 5], "big")


def _string(data: bytes, position: int) -> tuple[bytes | None, int]:
    if not data[position]:
        return None, position + 1
    end = position + 3 + int.from_bytes(data[position + 1 : position + 3], "big")
    return data[position + 3 : end], end


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    if not data[position]:
        return b"", position + 1
    end = position + 5 + int.from_bytes(data[position + 1 : position + 5], "big")
    return data[position + 5 : end], end


def _long(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "big", signed=True)


def _skip_producer_id(data: bytes, position: int) -> int:
    if not data[position]:
        return position + 1
    return read_producer(data, position)[1]


def read_producer(data: bytes, position: int) -> tuple[bytes, int]:
    """Return `connectionId:sessionId:value:` of the producerId at *position*, and its end.

    It is empty where there is none. Raises MalformedMessageError, IndexError, UnicodeDecodeError.
    """
    if not data[position]:
        return b"", position + 1
    if data[position + 1] != PRODUCER_ID:
        raise MalformedMessageError(f"type {data[position + 1]} where a producerId must be")
    connection, position = _string(data, position + 2)
    decode_text(connection or b"")
    value, session = _long(data, position), _long(data, position + 8)
    return b"%b:%d:%d:" % (connection or b"", session, value), position + 16


def read_destination(data: bytes, position: int) -> tuple[Destination | None, int]:
    """Return the destination at *position*, if there is one, and its end.

    Raises MalformedMessageError, IndexError, UnicodeDecodeError.
    """
    if not data[position]:
        return None, position + 1
    kind = data[position + 1] - 100
    if not 0 <= kind <= 3:
        raise MalformedMessageError(f"type {kind + 100} where a destination must be")
    name, position = _string(data, position + 2)
    if name is not None and len(name) > NAME_BYTES_KEPT:
        return Destination(Kind(kind), decode_text(name)), position
    return _named(kind, name or b""), position


@lru_cache(maxsize=4096)
def _named(kind: int, name: bytes) -> Destination:
    """Return one and the same destination for all leads that name it: identity tells it fast."""
    return Destination(Kind(kind), decode_text(name))


def _transaction_id(data: bytes, position: int) -> tuple[TransactionId | None, int]:
    if not data[position]:
        return None, position + 1
    kind = data[position + 1]
    if kind == LOCAL_TRANSACTION_ID:
        value = _long(data, position + 2)
        if not data[position + 10]:
            raise MalformedMessageError("a local transaction id without its connection")
        connection, position = _string(data, position + 12)
        return LocalTransactionId(decode_text(connection or b""), value), position
    if kind == XA_TRANSACTION_ID:
        format_id = int.from_bytes(data[position + 2 : position + 6], "big", signed=True)
        global_id, position = _bytes(data, position + 6)
        branch, position = _bytes(data, position)
        return XATransactionId(format_id, global_id, branch), position
    raise MalformedMessageError(f"type {kind} where a transaction id must be")
