"""Records of every kind in one shape, located but not decoded.

`lockkeeper.journal.walk` reads adds and removes into a QuickRecord and only locates the rest.
Here the rest takes the same shape: field values stay offsets into the chunk until a column
asks for them.
"""

from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.protobuf import LENGTH, VARINT, walk_fields
from lockkeeper.journal.varint import decode_varint
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord

TRACE, PREPARE, COMMIT, ROLLBACK, REMOVE_DESTINATION = 0, 3, 4, 5, 6
SUBSCRIPTION, AUDIT, ACK_MAP, UPDATE = 7, 8, 9, 10

OUTCOMES = (PREPARE, COMMIT, ROLLBACK)
"""Records of a transaction, of which they name nothing but the id."""

_STRAIGHT_MIN, _STRAIGHT_MAX = 9, 7 + 128
_TRANSACTION_TAG = 0x0A

KINDS = {
    TRACE: "trace",
    ADD: "add",
    REMOVE: "remove",
    PREPARE: "prepare",
    COMMIT: "commit",
    ROLLBACK: "rollback",
    REMOVE_DESTINATION: "remove_destination",
    SUBSCRIPTION: "subscribe",
    AUDIT: "audit",
    ACK_MAP: "ack_map",
    UPDATE: "update",
    11: "schedule",
    12: "reschedule",
    13: "unschedule",
    14: "unschedule_all",
    15: "remove_scheduler",
    16: "rewritten_file",
}
OTHER_KIND = "other"
UNSUBSCRIBE_KIND = "unsubscribe"
LOST = "lost"
"""The kind of the row of a stream that stands for what was removed before it was read."""

DESTINATION, MESSAGE_ID, VALUE, TRANSACTION, KEY = "destination", "id", "value", "tx", "key"
_FIELDS: dict[int, dict[int, str]] = {
    TRACE: {1: VALUE},
    PREPARE: {1: TRANSACTION},
    COMMIT: {1: TRANSACTION},
    ROLLBACK: {1: TRANSACTION},
    REMOVE_DESTINATION: {1: DESTINATION},
    SUBSCRIPTION: {1: DESTINATION, 2: KEY, 4: VALUE},
    UPDATE: {2: DESTINATION, 3: MESSAGE_ID, 4: VALUE},
}


def kind_of(record: QuickRecord) -> str:
    """Return the word for what *record* says."""
    if record[0] == SUBSCRIPTION and not record[5]:
        return UNSUBSCRIBE_KIND
    return KINDS.get(record[0], OTHER_KIND)


def is_message(record: QuickRecord) -> bool:
    """Tell whether *record* holds a message: a new one, or one with new contents."""
    return record[0] in (ADD, UPDATE)


def complete(data: bytes, record: QuickRecord, file_name: str, base: int) -> QuickRecord:
    """Return *record*, neither add nor remove, with its fields located.

    The value is the trace's text, the subscription's info or the updated message; its offset
    is 0 when it is absent. Raises BadRecordError with the offset in the file.
    """
    command, offset, size = record[:3]
    wanted = _FIELDS.get(command)
    if wanted is None:
        return record
    if command in OUTCOMES and _is_straight(data, offset, size):
        transaction = data[offset + 9 : offset + size]
        return command, offset, size, b"", b"", 0, 0, transaction, None, 0
    try:
        found = _locate(data, offset, size, wanted, command == UPDATE)
    except (BadRecordError, IndexError) as error:
        reason = error.reason if isinstance(error, BadRecordError) else "it is cut short"
        raise BadRecordError(reason, file_name, base + offset) from None
    at, length = found.get(VALUE, (0, 0))
    return (
        command,
        offset,
        size,
        _bytes(data, found.get(DESTINATION, (0, 0))),
        _bytes(data, found.get(MESSAGE_ID, (0, 0))),
        at,
        length,
        _bytes(data, found[TRANSACTION]) if TRANSACTION in found else None,
        _bytes(data, found[KEY]) if KEY in found else None,
        0,
    )


def _is_straight(data: bytes, offset: int, size: int) -> bool:
    """Tell whether a record has a transaction and nothing else, each length in one byte."""
    return (
        _STRAIGHT_MIN < size < _STRAIGHT_MAX
        and data[offset + 6] == size - 7
        and data[offset + 7] == _TRANSACTION_TAG
        and data[offset + 8] == size - 9
    )


def _locate(
    data: bytes, offset: int, size: int, wanted: dict[int, str], is_nested: bool
) -> dict[str, tuple[int, int]]:
    length, start = decode_varint(data, offset + 6, offset + size)
    end = start + length
    if end != offset + size:
        raise BadRecordError(f"its message of {length} bytes does not fill its {size} bytes")
    if is_nested:
        # An update wraps an add: its fields are one level down.
        number, wire_type, length, start = next(walk_fields(data, start, end))
        if number != 1 or wire_type == VARINT:
            raise BadRecordError("an update without its message")
        end = start + length
    return {
        wanted[number]: (at, value)
        for number, wire_type, value, at in walk_fields(data, start, end)
        if wire_type == LENGTH and number in wanted
    }


def _bytes(data: bytes, where: tuple[int, int]) -> bytes:
    return data[where[0] : where[0] + where[1]]
