"""Record bytes to command values. Unknown fields are skipped, unknown commands are errors."""

from typing import Any, cast

from lockkeeper.journal.encode import RECORD_HEADER_SIZE, USER_RECORD
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.protobuf import LENGTH, VARINT, FieldAt, walk_fields
from lockkeeper.journal.records import AddMessage, Record
from lockkeeper.journal.schema import BY_CLASS, BY_COMMAND, Field, FieldType, Schema
from lockkeeper.journal.varint import decode_varint, signed
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.ids import LocalTransactionId, TransactionId, XATransactionId


def decode_record(data: bytes, offset: int = 0, file_name: str = "") -> Record:
    """Return the value of the record whose header begins at *offset* of *data*.

    Raises BadRecordError, with *file_name* and *offset* in its text.
    """
    try:
        return _record(data, offset)
    except BadRecordError as error:
        raise BadRecordError(error.reason, file_name, offset) from None


def decode_destination(data: bytes) -> Destination:
    """Return the destination held by the bytes of a KahaDestination."""
    kind, name = -1, None
    for number, wire_type, value, at in walk_fields(data, 0, len(data)):
        if number == 1 and wire_type == VARINT:
            kind = value
        elif number == 2 and wire_type == LENGTH:
            name = _text(data[at : at + value], "destination")
    if name is None or not 0 <= kind <= Kind.TEMP_TOPIC:
        raise BadRecordError(f"destination has kind {kind}, name {name!r}")
    return Destination(Kind(kind), name)


def decode_transaction(data: bytes) -> TransactionId:
    """Return the transaction id held by the bytes of a KahaTransactionInfo."""
    for number, wire_type, value, at in walk_fields(data, 0, len(data)):
        if wire_type == LENGTH and number in (1, 2):
            inner = data[at : at + value]
            return _local_transaction(inner) if number == 1 else _xa_transaction(inner)
    raise BadRecordError("transaction_info names no transaction")


def _record(data: bytes, offset: int) -> Record:
    size = int.from_bytes(data[offset : offset + 4], "big")
    end = offset + size
    if size < RECORD_HEADER_SIZE + 2 or end > len(data):
        raise BadRecordError(f"its size {size} does not fit")
    if data[offset + 4] != USER_RECORD:
        raise BadRecordError(f"its kind is {data[offset + 4]}, not {USER_RECORD}")
    schema = BY_COMMAND.get(data[offset + RECORD_HEADER_SIZE])
    if schema is None:
        raise BadRecordError(f"command type {data[offset + RECORD_HEADER_SIZE]} is unknown")
    length, start = decode_varint(data, offset + RECORD_HEADER_SIZE + 1, end)
    if start + length != end:
        raise BadRecordError(f"its message of {length} bytes does not fill its {size} bytes")
    return cast(Record, _value(schema, data, start, end))


def _value(schema: Schema, data: bytes, start: int, end: int) -> Any:
    found: dict[str, Any] = {}
    wanted = {(field.number, field.type.wire_type): field for field in schema.fields}
    for field_at in walk_fields(data, start, end):
        field = wanted.get(field_at[:2])
        if field is not None:
            found[field.name] = _field(field, data, field_at)
    for field in schema.fields:
        if field.required and field.name not in found:
            raise BadRecordError(f"{schema.value_class.__name__} lacks {field.name}")
    return schema.value_class(**found)


def _field(field: Field, data: bytes, field_at: FieldAt) -> Any:
    _number, _wire_type, value, at = field_at
    match field.type:
        case FieldType.NUMBER:
            return signed(value)
        case FieldType.FLAG:
            return value != 0
        case FieldType.TEXT:
            return _text(data[at : at + value], field.name)
        case FieldType.BYTES:
            return bytes(data[at : at + value])
        case FieldType.DESTINATION:
            return decode_destination(data[at : at + value])
        case FieldType.TRANSACTION:
            return decode_transaction(data[at : at + value])
        case FieldType.ADD:
            return _value(BY_CLASS[AddMessage], data, at, at + value)


def _text(data: bytes, name: str) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise BadRecordError(f"{name} is not UTF-8") from None


def _local_transaction(data: bytes) -> LocalTransactionId:
    connection, number = None, None
    for field, wire_type, value, at in walk_fields(data, 0, len(data)):
        if field == 1 and wire_type == LENGTH:
            connection = _text(data[at : at + value], "connection_id")
        elif field == 1 and wire_type == VARINT:
            number = signed(value)
    if connection is None or number is None:
        raise BadRecordError("local_transaction_id lacks its connection or its number")
    return LocalTransactionId(connection, number)


def _xa_transaction(data: bytes) -> XATransactionId:
    format_id, parts = None, {}
    for field, wire_type, value, at in walk_fields(data, 0, len(data)):
        if field == 1 and wire_type == VARINT:
            format_id = signed(value)
        elif wire_type == LENGTH:
            parts[field] = bytes(data[at : at + value])
    if format_id is None or 2 not in parts or 3 not in parts:
        raise BadRecordError("xa_transaction_id lacks its format, branch or global id")
    return XATransactionId(format_id, parts[3], parts[2])
