"""Walk and write protobuf fields by (number, wire type), without a schema compiler.

Hand-made because KahaLocalTransactionId uses field number 1 twice with different wire types,
which protobuf compilers refuse (kahadb.md section 3).
"""

from collections.abc import Iterator

from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.varint import decode_varint, varint

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

FieldAt = tuple[int, int, int, int]
"""Field number, wire type, value (a number, or the length of the bytes) and where it lies."""


def walk_fields(data: bytes, start: int, end: int) -> Iterator[FieldAt]:
    """Yield the fields of the message in `data[start:end]`, in the order written.

    Raises BadRecordError for a wire type that proto2 scalars and messages never have, and for
    a value that passes *end*.
    """
    position = start
    while position < end:
        tag, position = decode_varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            at = position
            value, position = decode_varint(data, position, end)
        elif wire_type == LENGTH:
            value, at = decode_varint(data, position, end)
            position = at + value
        elif wire_type in (FIXED64, FIXED32):
            value = 8 if wire_type == FIXED64 else 4
            at, position = position, position + value
        else:
            raise BadRecordError(f"field {number} has wire type {wire_type}", offset=position)
        if position > end:
            raise BadRecordError(f"field {number} passes the end of its message", offset=at)
        yield number, wire_type, value, at


def number_field(number: int, value: int) -> bytes:
    """Return field *number* holding the int32, int64, bool or enum *value*."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return field *number* holding a string, bytes or an encoded message."""
    return b"%b%b%b" % (varint(number << 3 | LENGTH), varint(len(value)), value)
