"""The recovery walk: the records of a batch with as few Python operations each as possible.

Adds and removes laid out as ActiveMQ lays them out are read in a straight line; any other legal
layout goes through the protobuf walk and gives the same tuple. Plain typed code for mypyc.
"""

import struct
from typing import Final

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.protobuf import LENGTH, VARINT, walk_fields
from lockkeeper.journal.varint import decode_varint

ADD, REMOVE = 1, 2

QuickRecord = tuple[int, int, int, bytes, bytes, int, int, bytes | None, bytes | None, int]
"""Command type; offset and size of the record; destination bytes (a KahaDestination) and message
id bytes; offset and length of the message (add) or ack (remove, offset 0 = absent); transaction
bytes (a KahaTransactionInfo) or None; subscription key or None; priority that orders an add (4
unless supported), else 0. Other commands: no bytes, and the payload's offset and length. Records
in a row for one destination share its bytes object: `is` tells that it did not change."""

_HEADER = struct.Struct(">iBB")
_SIZE_MIN: Final = 7
_CONTROL_RECORD: Final = 2
_PRIORITY_DEFAULT = 4
_PLAIN_TAIL: Final = b"\x28\x04\x30\x00"
_NO_PREFIX: Final = b"none"


def walk_batch(data: bytes, start: int, end: int, file_name: str = "") -> list[QuickRecord]:
    """Return the records in `data[start:end]`, in order.

    That is the inside of one batch, or of several in a row with control records between them.
    Raises BadRecordError, with *file_name* and the offset, for a record that does not fit.
    """
    walked: list[QuickRecord] = []
    unpack = _HEADER.unpack_from
    # The prefix is the destination field with the tag and length of the id: records in a row
    # mostly share it, so one comparison stands for reading them.
    prefix, id_size, destination = _NO_PREFIX, 0, b""
    position = start
    while position < end:
        if end - position < _SIZE_MIN:
            raise BadRecordError("too few bytes for a record", file_name, position)
        size, kind, command = unpack(data, position)
        stop = position + size
        if kind == _CONTROL_RECORD and size == CONTROL_SIZE:
            position = stop
            continue
        if kind != 1 or size < _SIZE_MIN or stop > end:
            raise BadRecordError(f"kind {kind} with size {size}", file_name, position)
        if command != ADD and command != REMOVE:
            walked.append(_other(command, position, size))
            position = stop
            continue
        # The record's size tells how many bytes the varint before its fields takes.
        at = position + (8 if 135 < size < 16392 else 7 if size < 135 else 9)
        transaction = key = None
        value, length, priority, straight = 0, 0, 0, True
        try:
            if data[at] == 0x0A and data[at + 1] < 128:
                transaction = data[at + 2 : at + 2 + data[at + 1]]
                at += 2 + data[at + 1]
            if not data.startswith(prefix, at):
                prefix = _prefix(data, at)
                id_size = prefix[-1]
                if destination != prefix[2:-2]:
                    destination = prefix[2:-2]
            at += len(prefix)
            message_id = data[at : at + id_size]
            at += id_size
            if at < stop and data[at] == 0x22:
                value = at + 2
                length = data[at + 1]
                if length > 127:
                    length += (data[value] << 7) - 128
                    value += 1
                    if length > 16383:
                        length, value = decode_varint(data, at + 1, stop)
                at = value + length
            if command == ADD:
                priority = _PRIORITY_DEFAULT
                if at + 4 != stop or value == 0:
                    straight = False
                elif not data.startswith(_PLAIN_TAIL, at):
                    straight = data[at] == 0x28 and data[at + 1] < 10 and data[at + 2] == 0x30
                    priority = data[at + 1] if data[at + 3] else _PRIORITY_DEFAULT
            elif at != stop:
                key = data[at + 2 : stop]
                straight = data[at] == 0x2A and data[at + 1] == stop - at - 2 < 128
        except (IndexError, BadRecordError):
            prefix, straight = _NO_PREFIX, False
        if straight:
            where = (position, size, destination, message_id, value, length)
            walked.append((command, *where, transaction, key, priority))
        else:
            walked.append(_careful(data, position, stop, file_name))
        position = stop
    return walked


def _prefix(data: bytes, at: int) -> bytes:
    """Return the destination field at *at* with the tag and length of the id behind it.

    Raises BadRecordError when the fields are others, or their lengths take two bytes.
    """
    id_at = at + 2 + data[at + 1]
    if data[at] == 0x12 and data[at + 1] < 128 and data[id_at] == 0x1A and data[id_at + 1] < 128:
        return data[at : id_at + 2]
    raise BadRecordError("not laid out the usual way", offset=at)


def _other(command: int, offset: int, size: int) -> QuickRecord:
    return command, offset, size, b"", b"", offset + 5, size - 5, None, None, 0


def _careful(data: bytes, offset: int, stop: int, file_name: str) -> QuickRecord:
    """Read any legal layout of an add or a remove."""
    try:
        return _fields(data, offset, stop)
    except BadRecordError as error:
        raise BadRecordError(error.reason, file_name, offset) from None


def _fields(data: bytes, offset: int, stop: int) -> QuickRecord:
    command = data[offset + 5]
    length, start = decode_varint(data, offset + 6, stop)
    if start + length != stop:
        raise BadRecordError(f"its message of {length} bytes does not fill the record")
    found: dict[int, tuple[int, int]] = {}
    numbers: dict[int, int] = {}
    for number, wire_type, value, at in walk_fields(data, start, stop):
        if wire_type == LENGTH:
            found[number] = (at, value)
        elif wire_type == VARINT:
            numbers[number] = value
    if 2 not in found or 3 not in found or (command == ADD and 4 not in found):
        raise BadRecordError("it lacks its destination, message id or message")
    texts = {number: data[at : at + size] for number, (at, size) in found.items() if number != 4}
    value_at, value_length = found.get(4, (0, 0))
    key = texts.get(5) if command == REMOVE else None
    priority = numbers.get(5, _PRIORITY_DEFAULT) if numbers.get(6) else _PRIORITY_DEFAULT
    where = (offset, stop - offset, texts[2], texts[3], value_at, value_length)
    return (command, *where, texts.get(1), key, priority if command == ADD else 0)
