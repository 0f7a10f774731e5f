"""Some fields of a message, read or replaced where they lie: the others are never decoded.

`rewrite` does the same for any field, ten times as slowly.
"""

from collections.abc import Mapping
from typing import Final

from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import MessageId, TransactionId
from lockkeeper.message.layout import locate_destinations, skip_nested, skip_octets, skip_string
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value, decode_map, encode_map
from lockkeeper.message.reader import MessageReader
from lockkeeper.message.rewrite import decoded

_NOTHING_RARE: Final = bytes(2)
"""Neither dataStructure nor targetConsumerId; a flag and redeliveryCounter follow."""
_NO_TRANSACTION: Final = bytes(1)
LONG_MAX: Final = (1 << 63) - 1


def ends_at(now: int, time_to_live: int) -> int:
    """Return when a message ends that lives for so many ms from *now* on, as far as that goes."""
    return min(now + time_to_live, LONG_MAX)


def properties_in(message: Message) -> dict[str, Value]:
    """Return the user properties of a message. Raises MalformedMessageError."""
    start, end = _locate_properties(message, _locate_timestamp(message))
    if end - start < 6:
        return {}
    return decode_map(message.body[start + 5 : end])[0] or {}


def timestamp_of(message: Message) -> int:
    """Return when a message was sent, in ms since the epoch. Raises MalformedMessageError."""
    at = _locate_timestamp(message)
    return int.from_bytes(message.body[at : at + 8], "big", signed=True)


def redelivery_counter_of(message: Message) -> int:
    """Return how often a message says that it came in vain. Raises MalformedMessageError."""
    _, end = _locate_properties(message, _locate_timestamp(message))
    if message.body[end : end + 2] != _NOTHING_RARE:
        return decoded(message).redelivery_counter
    return int.from_bytes(message.body[end + 3 : end + 7], "big", signed=True)


def patched(
    message: Message,
    sequence: int,
    *,
    properties: Mapping[str, Value] | None = None,
    destination: Destination | None = None,
    transaction_id: TransactionId | None = None,
    message_id: MessageId | None = None,
    persistent: bool | None = None,
    expiration: int | None = None,
    timestamp: int | None = None,
    keeps_transaction: bool = True,
) -> Message:
    """Return *message* with the fields that are given, if need be without its transaction.

    *sequence* becomes its brokerSequenceId; times are in ms since the epoch. Raises
    MalformedMessageError where a field is not what it must be, ValueError or OverflowError for a
    value that does not fit its field.
    """
    body, flags = message.body, message.flags_at
    timestamp_at = _locate_timestamp(message)
    properties_at, rest_at = _locate_properties(message, timestamp_at)
    to, original = locate_destinations(body)
    transaction = body[to.stop : original.start] if keeps_transaction else _NO_TRANSACTION
    id_end = message.lead.sequence_at + 16
    whole = b"".join(
        (
            body[: to.start],
            body[to] if destination is None else _nested(destination),
            transaction if transaction_id is None else _nested(transaction_id),
            body[original],
            body[original.stop : id_end] if message_id is None else _nested(message_id),
            body[id_end:flags],
            body[flags : flags + 1] if persistent is None else bytes((persistent,)),
            body[flags + 1 : flags + 9] if expiration is None else _long(expiration),
            body[flags + 9 : timestamp_at],
            body[timestamp_at : timestamp_at + 8] if timestamp is None else _long(timestamp),
            body[timestamp_at + 8 : properties_at],
            body[properties_at:rest_at] if properties is None else _octets(encode_map(properties)),
            body[rest_at:],
        )
    )
    return MessageReader().trust(whole, 0, len(whole), sequence)


def _locate_timestamp(message: Message) -> int:
    """Return where the timestamp is: behind priority and replyTo."""
    try:
        return skip_nested(message.body, message.flags_at + 10)
    except (IndexError, UnicodeDecodeError):
        raise _cut_short(message) from None


def _locate_properties(message: Message, timestamp_at: int) -> tuple[int, int]:
    """Return where the properties begin, with their flag and their length, and where they end."""
    body = message.body
    try:
        # The timestamp, the type and the content come before them.
        start = skip_octets(body, skip_string(body, timestamp_at + 8))
        end = skip_octets(body, start)
    except IndexError:
        raise _cut_short(message) from None
    if end > len(body):
        raise _cut_short(message)
    return start, end


def _cut_short(message: Message) -> MalformedMessageError:
    return MalformedMessageError(f"the message {message!r} ends within its fields")


def _nested(value: Destination | MessageId | TransactionId) -> bytes:
    return b"\x01" + openwire.encode(value)


def _octets(value: bytes) -> bytes:
    return b"\x01" + len(value).to_bytes(4, "big") + value


def _long(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)
