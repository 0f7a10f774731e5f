"""Makes sure that a message can be read to its end, before anybody relies on it.

What nobody looks at for long, the fields behind the priority above all, would otherwise be found
garbled when the message expires, dies or meets a selector: long after its producer was answered.
"""

from struct import Struct
from typing import Final

from lockkeeper.message import openwire
from lockkeeper.message.broker_path import read_path
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.layout import (
    BLOB_MESSAGE,
    BROKER_IN_TIME_FROM_END,
    PLAIN,
    Lead,
    skip_nested,
    skip_octets,
    skip_string,
)
from lockkeeper.message.text import decode_text

NOTHING_MORE = bytes(21)
"""A plain message between its content and its times: no properties, nothing rare."""

_NOTHING_RARE = NOTHING_MORE[1:]
_RARE = Struct(">BBxi?8x")
"""dataStructure, targetConsumerId, compressed, redeliveryCounter, brokerPath, arrival."""

_ARRIVAL_BYTES: Final = 8
_FLAGS_BYTES: Final = 10
"""persistent, expiration and priority."""


def check_whole(data: bytes, start: int, end: int, lead: Lead, flags: int) -> None:
    """Raise MalformedMessageError unless the message at data[start:end] can be read.

    *flags* is the position of `persistent`. The body and the properties are bytes here: what is
    in them is the application's.
    """
    try:
        if data[start] == BLOB_MESSAGE or not _is_sound(data, lead, start, flags, end):
            _decode(data, start, end)
    except (IndexError, UnicodeDecodeError) as error:
        raise MalformedMessageError(f"the message is cut short or garbled: {error}") from None


def _is_sound(data: bytes, lead: Lead, start: int, flags: int, end: int) -> bool:
    """Tell whether a message without anything rare ends where it should."""
    front = start + lead.sequence_at + 16
    if data[front:flags] != PLAIN:
        front = skip_nested(data, front)
        group_end = skip_string(data, front)
        _check_text(data, front, group_end)
        _check_text(data, group_end + 4, flags)
    position = skip_nested(data, flags + _FLAGS_BYTES) + 8
    type_end = skip_string(data, position)
    _check_text(data, position, type_end)
    position = skip_octets(data, skip_octets(data, type_end))
    times = end - BROKER_IN_TIME_FROM_END
    if data[position:times] == _NOTHING_RARE:
        return True
    if position + _RARE.size > times:
        return False
    structure, target, _, path = _RARE.unpack_from(data, position)
    if structure or target:
        return False
    position += _RARE.size
    if path:
        position = read_path(data, position - _ARRIVAL_BYTES - 1)[1] + _ARRIVAL_BYTES
    user_end = skip_string(data, position)
    _check_text(data, position, user_end)
    # Two flags, and no cluster.
    return user_end + 3 == times and not data[user_end + 2]


def _check_text(data: bytes, start: int, end: int) -> None:
    if data[start]:
        decode_text(data[start + 3 : end])


def _decode(data: bytes, start: int, end: int) -> None:
    """Read every field, the rare ones too."""
    _, stop = openwire.decode(data, start, end=end)
    if stop != end:
        raise MalformedMessageError(f"the message has {end - stop} bytes too many")
