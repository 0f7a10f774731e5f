"""Command values to record bytes, byte for byte as ActiveMQ writes them."""

from functools import lru_cache
from typing import Any, Final

from lockkeeper.journal.protobuf import bytes_field, number_field
from lockkeeper.journal.records import Record
from lockkeeper.journal.schema import BY_CLASS, Field, FieldType
from lockkeeper.journal.varint import varint
from lockkeeper.keeping import SHORT_CHARACTERS_MAX
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import LocalTransactionId, TransactionId

RECORD_HEADER_SIZE: Final = 5
USER_RECORD: Final = 1


def encode_record(record: Record) -> bytes:
    """Return the whole record: 5-byte header, command type, length, fields."""
    schema = BY_CLASS[type(record)]
    return wrap_command(schema.command, _fields(record))


def wrap_command(command: int, message: bytes) -> bytes:
    """Return the record around the encoded protobuf *message* of type *command*."""
    length = varint(len(message))
    size = RECORD_HEADER_SIZE + 1 + len(length) + len(message)
    return b"%b%c%c%b%b" % (size.to_bytes(4, "big"), USER_RECORD, command, length, message)


def encode_destination(destination: Destination) -> bytes:
    """Return *destination* as an encoded KahaDestination."""
    if len(destination.name) > SHORT_CHARACTERS_MAX:
        return _encoded(destination)
    return _kept(destination)


@lru_cache(maxsize=4096)
def _kept(destination: Destination) -> bytes:
    return _encoded(destination)


def _encoded(destination: Destination) -> bytes:
    return number_field(1, destination.kind) + bytes_field(2, destination.name.encode())


def encode_transaction(transaction: TransactionId) -> bytes:
    """Return *transaction* as an encoded KahaTransactionInfo.

    A local id has two fields numbered 1; an XA id has its branch before its global id.
    """
    if isinstance(transaction, LocalTransactionId):
        connection = bytes_field(1, transaction.connection_id.encode())
        return bytes_field(1, connection + number_field(1, transaction.value))
    branch = bytes_field(2, transaction.branch_qualifier)
    global_id = bytes_field(3, transaction.global_transaction_id)
    return bytes_field(2, number_field(1, transaction.format_id) + branch + global_id)


def _fields(record: Record) -> bytes:
    fields = BY_CLASS[type(record)].fields
    pairs = ((field, getattr(record, field.name)) for field in fields)
    return b"".join(_field(field, value) for field, value in pairs if value is not None)


def _field(field: Field, value: Any) -> bytes:
    match field.type:
        case FieldType.NUMBER | FieldType.FLAG:
            return number_field(field.number, value)
        case FieldType.TEXT:
            return bytes_field(field.number, value.encode())
        case FieldType.BYTES:
            return bytes_field(field.number, value)
        case FieldType.DESTINATION:
            return bytes_field(field.number, encode_destination(value))
        case FieldType.TRANSACTION:
            return bytes_field(field.number, encode_transaction(value))
        case FieldType.ADD:
            return bytes_field(field.number, _fields(value))
