"""Journal records for people and for scripts."""

import dataclasses
import re
from typing import Any

from lockkeeper.journal.verify import StoredRecord
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId, XATransactionId
from lockkeeper.message.openwire.codec import decode
from lockkeeper.message.primitives import decode_map

STORE_VERSION = 11
SIZE_PREFIX = 4
FRAMES = ("message", "ack", "info")
"""Fields of records that hold an OpenWire frame with its size prefix (kahadb.md section 3)."""

_NAMED_BY_TEXT = (Destination, ProducerId, MessageId, LocalTransactionId, XATransactionId)
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def record_name(stored: StoredRecord) -> str:
    """Return the kind of a record as a word, such as `add-message`."""
    return _WORD.sub("-", type(stored.record).__name__).lower()


def record_object(stored: StoredRecord) -> dict[str, Any]:
    """Return a record as JSON has it: position, kind, fields; absent fields are left out."""
    return {
        "file": stored.file_name,
        "offset": stored.offset,
        "size": stored.size,
        "record": record_name(stored),
        **_fields(stored.record),
    }


def record_line(stored: StoredRecord) -> str:
    """Return a record as a line of text: position, kind, what it is about, size."""
    record: Any = stored.record
    parts = [f"{stored.file_name}:{stored.offset}", record_name(stored)]
    for name in ("destination", "message_id", "subscription_key", "transaction"):
        value = getattr(record, name, None)
        if value is not None:
            parts.append(str(value))
    if isinstance(getattr(record, "message", None), str):
        parts.append(record.message)
    return "  ".join([*parts, f"{stored.size} bytes"])


def _fields(record: Any) -> dict[str, Any]:
    """Return the fields of a record or structure that say something."""
    found = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if value is None or value is False or value == ():
            continue
        if field.name in FRAMES and isinstance(value, bytes):
            found[field.name] = _frame(value)
        elif field.name == "marshalled_properties":
            found["properties"] = _plain(decode_map(value)[0])
        else:
            found[field.name] = _plain(value)
    return found


def _frame(frame: bytes) -> dict[str, Any]:
    """Return what an OpenWire frame says, or why it says nothing."""
    if len(frame) <= SIZE_PREFIX:
        return {}
    try:
        structure, _end = decode(frame, SIZE_PREFIX, STORE_VERSION)
        return {"type": type(structure).__name__, **_fields(structure)}
    except MalformedMessageError as error:
        return {"malformed": str(error)}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; bytes by their number."""
    if isinstance(value, _NAMED_BY_TEXT):
        return str(value)
    if isinstance(value, bytes):
        return {"bytes": len(value)}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {"type": type(value).__name__, **_fields(value)}
    return value
