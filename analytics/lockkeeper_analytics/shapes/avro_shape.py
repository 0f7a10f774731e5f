"""Fields of Avro data: of a container file by the schema in its head, as fastavro reads it.

What single objects hold is told by a schema elsewhere: of them only the fingerprint is known.
"""

from io import BytesIO
from typing import Any

from lockkeeper_analytics.shapes.fields import (
    ANY,
    DEPTH_MAX,
    HIDDEN,
    ITEMS,
    Fields,
    Place,
    shown_name,
)
from lockkeeper_analytics.shapes.json_shape import AT_ROOT, ROOT

CONTAINER = b"Obj\x01"
"""Avro 1.12, "Object Container Files"."""
SINGLE_OBJECT = b"\xc3\x01"
"""Avro 1.12, "Single-object encoding"; the fingerprint's eight octets follow."""
_FINGERPRINT_END = 10


class NoAvroError(ValueError):
    """Octets are no container file, or nothing here reads one: fastavro is not installed."""


def add_avro(fields: Fields, octets: bytes) -> None:
    """Note the fields of the schema in a container file's head; raises NoAvroError."""
    try:
        import fastavro
    except ImportError as error:
        raise NoAvroError("fastavro is not installed") from error
    try:
        schema = fastavro.reader(BytesIO(octets)).writer_schema
    except Exception as error:  # fastavro raises whatever happens to it with damaged octets
        raise NoAvroError(str(error)) from error
    _add(fields, schema, AT_ROOT, 0)


def add_single_object(fields: Fields, octets: bytes) -> None:
    """Note the fingerprint of a single object's schema."""
    fingerprint = int.from_bytes(octets[2:_FINGERPRINT_END], "little")
    fields.add(ROOT, f"schema {fingerprint:016x}")


def _add(fields: Fields, schema: Any, place: Place, depth: int) -> None:
    if isinstance(schema, list):
        for each in schema:
            _add(fields, each, place, depth)
        return
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, dict | list):
        _add(fields, kind, place, depth)
        return
    logical = "" if isinstance(schema, str) else schema.get("logicalType", "")
    told = f"{kind} ({logical})" if logical else kind
    if not fields.add(place.shown, told) or depth >= DEPTH_MAX or isinstance(schema, str):
        return
    if kind == "record":
        for each in schema["fields"]:
            below = place.below(f".{shown_name(each['name'])}", f".{each['name']}")
            _add_below(fields, each["type"], place, below, depth)
    elif kind in ("array", "map"):
        below = place.below(ITEMS if kind == "array" else f".{ANY}")
        _add_below(fields, schema["items" if kind == "array" else "values"], place, below, depth)


def _add_below(fields: Fields, schema: Any, place: Place, below: Place, depth: int) -> None:
    if fields.is_hidden(below):
        fields.add(f"{place.shown}.{HIDDEN}", "hidden")
    else:
        _add(fields, schema, below, depth + 1)
