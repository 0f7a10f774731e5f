"""Brokers that a message has left: its brokerPath, which networks of brokers write."""

from collections.abc import Iterable
from typing import Final

from lockkeeper.message import openwire
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.layout import (
    BLOB_MESSAGE,
    BROKER_IN_TIME_AT,
    read_lead,
    skip_nested,
    skip_octets,
    skip_string,
)
from lockkeeper.message.text import decode_text, encode_text

# dataStructure, targetConsumerId, compressed, redeliveryCounter, brokerPath, arrival, userID, two
# flags and cluster, all of them absent: so most messages end, but for their times.
NOTHING_RARE: Final = bytes(20)
TIMES_FROM_END: Final = -BROKER_IN_TIME_AT
RARE_FROM_END: Final = TIMES_FROM_END + len(NOTHING_RARE)
# Of a message that ends so: the flag of brokerPath, from its end.
_PLAIN_PATH_FROM_END: Final = 30
_BROKER_ID: Final = b"\x01\x7c\x01"
_FLAGS_BYTES: Final = 10


def ends_plainly(body: bytes) -> bool:
    """Tell whether nothing rare comes before the times of a message: no brokerPath above all."""
    return body[-RARE_FROM_END:BROKER_IN_TIME_AT] == NOTHING_RARE and body[0] != BLOB_MESSAGE


def broker_path(body: bytes) -> tuple[str, ...]:
    """Return the ids of the brokers that a message has left, the first one first.

    Raises MalformedMessageError.
    """
    if ends_plainly(body):
        return ()
    at = locate_path(body, read_lead(body, 0, len(body)).find_persistent(body))
    return names_of(_decoded(body).broker_path) if at is None else read_path(body, at)[0]


def locate_path(body: bytes, flags_at: int) -> int | None:
    """Return the offset of the brokerPath's flag, None for advisories and the like.

    *flags_at* is that of `persistent`.
    """
    if ends_plainly(body):
        return len(body) - _PLAIN_PATH_FROM_END
    position = skip_string(body, skip_nested(body, flags_at + _FLAGS_BYTES) + 8)
    position = skip_octets(body, skip_octets(body, position))
    # A dataStructure or a targetConsumerId would have to be read to find its end.
    return None if body[position] or body[position + 1] else position + 7


def read_path(body: bytes, at: int) -> tuple[tuple[str, ...], int]:
    """Return the brokerPath whose flag is at offset *at*, and where it ends."""
    if not body[at]:
        return (), at + 1
    path: list[str] = []
    position = at + 3
    for _ in range(int.from_bytes(body[at + 1 : at + 3], "big")):
        if body[position : position + 3] != _BROKER_ID:
            raise MalformedMessageError(f"no brokerId at offset {position}")
        end = skip_string(body, position + 2)
        path.append(decode_text(body[position + 5 : end]))
        position = end
    return tuple(path), position


def path_wire(path: Iterable[str]) -> bytes:
    """Return the loose bytes of a brokerPath, its flag included."""
    texts = [encode_text(each) for each in path]
    pieces = [b"\x01", len(texts).to_bytes(2, "big")]
    for text in texts:
        pieces += (_BROKER_ID, len(text).to_bytes(2, "big"), text)
    return b"".join(pieces)


def names_of(path: tuple[openwire.BrokerId, ...] | None) -> tuple[str, ...]:
    """Return the ids of a decoded path as texts."""
    return tuple(each.value for each in path or ())


def _decoded(body: bytes) -> openwire.Message:
    fields, _ = openwire.decode(body)
    if not isinstance(fields, openwire.Message):
        raise MalformedMessageError(f"{type(fields).__name__} where a message must be")
    return fields
