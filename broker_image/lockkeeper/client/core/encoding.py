"""Frames of messages to send, written straight from their parts.

A producer's messages begin alike and end alike: only numbers, headers and the body differ. The
frame is that of versions 10 to 12, byte for byte what the codec makes of the same message.
"""

from struct import Struct
from struct import error as StructError
from typing import TypeAlias

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, ProducerId, TransactionId
from lockkeeper.message.openwire import Codec, encode
from lockkeeper.message.openwire.wiretypes import write_text

_COMMAND = Struct(">IBIB")
_SEQUENCE = Struct(">q8x")
_DELIVERY = Struct(">BqB")
_FLAGS_PLAIN = Struct(">7xBqBBqBBi")
_LENGTH = Struct(">i")
_NO_PROPERTIES = b"\x00"
# What no client sets: data structure, target, redeliveries, path, arrival, user, and on.
PLAIN_TAIL, COMPRESSED_TAIL = (
    b"\x00\x00" + bytes((compressed,)) + bytes(4 + 1 + 8 + 1 + 1 + 1 + 1 + 8 + 8 + 1)
    for compressed in (0, 1)
)
"""What messages end with, behind their properties; see `blob_tail`, too."""


class MessageEncoder:
    """Writes the messages of one producer."""

    def __init__(self, producer_id: ProducerId) -> None:
        self._producer = b"\x01" + encode(producer_id)
        self._message_id = b"\x01" + encode(MessageId(producer_id, 0))[:-16]
        self._head = b""
        self._destination: Destination | None = None
        self._transaction: TransactionId | None = None

    def encode(
        self,
        type_id: int,
        number: int,
        wants_answer: bool,
        destination: Destination,
        transaction: TransactionId | None,
        sequence: int,
        parts: "Parts",
    ) -> bytes:
        """Return the frame of a message. Raises ValueError for what does not fit."""
        if destination is not self._destination or transaction is not self._transaction:
            self._begin(destination, transaction)
        persistent, priority, expiration, timestamp, content, properties, headers, tail = parts
        if headers is None and content is not None:
            middle = _FLAGS_PLAIN.pack(
                persistent, expiration, priority, 0, timestamp, 0, 1, len(content)
            )
        else:
            middle = _middle(headers, persistent, expiration, priority, timestamp, content)
        marshalled = (
            _NO_PROPERTIES
            if properties is None
            else b"\x01" + _LENGTH.pack(len(properties)) + properties
        )
        head = self._head
        size = 22 + len(head) + len(middle) + len(content or b"") + len(marshalled) + len(tail)
        return b"".join(
            (
                _COMMAND.pack(size, type_id, number, wants_answer),
                head,
                _SEQUENCE.pack(sequence),
                middle,
                content or b"",
                marshalled,
                tail,
            )
        )

    def _begin(self, destination: Destination, transaction: TransactionId | None) -> None:
        self._destination, self._transaction = destination, transaction
        parts = bytearray(self._producer)
        parts += destination.wire
        parts += b"\x00" if transaction is None else b"\x01" + encode(transaction)
        parts += b"\x00"
        parts += self._message_id
        self._head = bytes(parts)


class Headers:
    """Headers that few messages have."""

    __slots__ = ("correlation_id", "group_id", "group_sequence", "reply_to", "type")

    def __init__(
        self,
        correlation_id: str | None,
        reply_to: Destination | None,
        type: str | None,
        group_id: str | None,
        group_sequence: int,
    ) -> None:
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.type = type
        self.group_id = group_id
        self.group_sequence = group_sequence


Parts: TypeAlias = "tuple[bool, int, int, int, bytes | None, bytes | None, Headers | None, bytes]"
"""Persistent, priority, expiration, timestamp, content, properties, headers, tail."""

NO_HEADERS = Headers(None, None, None, None, 0)


def blob_tail(url: str, mime_type: str, deleted_by_broker: bool) -> bytes:
    """Return what a blob message ends with. Raises ValueError for what does not fit."""
    out = bytearray(PLAIN_TAIL)
    write_text(out, url)
    write_text(out, mime_type)
    out.append(deleted_by_broker)
    return bytes(out)


def _middle(
    headers: Headers | None,
    persistent: bool,
    expiration: int,
    priority: int,
    timestamp: int,
    content: bytes | None,
) -> bytes:
    """Return what is between the id and the content."""
    headers = headers or NO_HEADERS
    out = bytearray(b"\x00")
    try:
        write_text(out, headers.group_id)
        out += _LENGTH.pack(headers.group_sequence)
        write_text(out, headers.correlation_id)
        out += _DELIVERY.pack(persistent, expiration, priority)
        out += b"\x00" if headers.reply_to is None else headers.reply_to.wire
        out += timestamp.to_bytes(8, "big", signed=True)
        write_text(out, headers.type)
    except (ValueError, StructError, OverflowError) as error:
        raise ValueError(f"a header does not fit the wire: {error}") from error
    if content is None:
        out += b"\x00"
    else:
        out += b"\x01" + _LENGTH.pack(len(content))
    return bytes(out)


def reencoded(frame: bytes, old: Codec, new: Codec) -> bytes:
    """Return a frame as a broker of another version understands it."""
    body = new.encode(old.decode(frame, 4)[0])
    return len(body).to_bytes(4, "big") + body
