"""The largest frames of every type that the codec knows, each one field as costly as can be."""

from collections.abc import Iterator
from typing import Any

from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId, XATransactionId
from lockkeeper.message.openwire import ConnectionId, Layout, Throwable
from lockkeeper.message.openwire.structure import Field, Wire, layouts_of
from lockkeeper.message.openwire.wiretypes import StackElement

NAME = "ID:largest"
TEXT_BYTES_MAX = 65_000


def texts() -> list[str]:
    """Return texts that are costly in one way or another: to decode, to split, to parse."""
    many = [
        "x" * TEXT_BYTES_MAX,
        "\0é" * (TEXT_BYTES_MAX // 4),
        ",".join(f"Q{number}" for number in range(9_000)),
        ",".join(f"A.{number}.>" for number in range(5_000)),
        "." * TEXT_BYTES_MAX,
        "*." * (TEXT_BYTES_MAX // 2) + "*",
        " OR ".join(f"a={number}" for number in range(5_000)),
        " AND ".join(["NOT b LIKE '%a%_%'"] * 2_700),
        "a IN (" + ",".join(f"'{number}'" for number in range(7_000)) + ")",
        "(" * 30_000 + "a" + ")" * 30_000,
        "NOT " * 16_000 + "a",
        "a" + "+1" * 32_000 + "=1",
        "a LIKE '" + "%a" * 30_000 + "'",
        "-" * 32_000 + "1=a",
        "/* */" * 13_000,
        "'" + "''" * 32_000 + "'=a",
    ]
    return [text for text in many if len(text.encode()) <= 65_535]


def frames(layout: Layout, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield which field is costly, and the frame, of *size* bytes at most, without its length."""
    for field in layout.fields:
        for number, value in enumerate(_costly(field, size)):
            fields = {each.name: _least(each) for each in layout.fields}
            fields[field.name] = value
            if "response_required" in fields:
                fields["response_required"] = True
            raw = _encoded(layout, fields)
            if raw is not None and len(raw) <= size:
                yield f"{field.name} {number}", raw


def _encoded(layout: Layout, fields: dict[str, Any]) -> bytes | None:
    try:
        return openwire.codec_for(12, False).encode(layout.build(*fields.values()))
    except (ValueError, TypeError):
        return None


def _least(field: Field) -> Any:
    """Return something small that gets far: ids of the connection that sends it."""
    connection = ConnectionId(NAME)
    producer = ProducerId(NAME, 1, 1)
    known = {
        openwire.ConsumerId: openwire.ConsumerId(NAME, 1, 1),
        ProducerId: producer,
        MessageId: MessageId(producer, 1),
        openwire.SessionId: openwire.SessionId(NAME, 1),
        ConnectionId: connection,
        Destination: Destination(Kind.QUEUE, "Q"),
        LocalTransactionId: LocalTransactionId(NAME, 1),
    }
    if field.wire in (Wire.NESTED, Wire.CACHED):
        if field.name in ("original_transaction_id", "transaction_id"):
            return None
        for structure, value in known.items():
            if structure in field.classes:
                return value
    if field.wire in (Wire.REQUIRED_TEXT,):
        return "x"
    if field.wire is Wire.REQUIRED_OCTETS:
        return b"x"
    return field.default


def _costly(field: Field, size: int) -> Iterator[Any]:
    """Yield values of a field that cost much."""
    room = size - 600
    match field.wire:
        case Wire.TEXT | Wire.REQUIRED_TEXT:
            yield from texts()
        case Wire.OCTETS | Wire.REQUIRED_OCTETS:
            yield b"\xff" * room
        case Wire.PROPERTIES:
            yield {f"{number:x}": None for number in range(room // 9)}
            yield {"": [[]] * (room // 5 - 10)}
        case Wire.ARRAY:
            for count in (room // 9, room // 30, 1_000):
                yield tuple(_element(field) for _ in range(min(count, 32_767)))
        case Wire.THROWABLE:
            yield Throwable("x" * 65_000, "y" * 65_000)
            stack = (StackElement("x" * 10, "y" * 10, "z" * 10, 1),) * min(room // 45, 32_767)
            yield Throwable("x", "y", stack)
        case Wire.NESTED | Wire.CACHED:
            yield from _nested(field)
        case Wire.INT32:
            yield from (2**31 - 1, -(2**31))
        case Wire.INT64:
            yield from (2**63 - 1, -(2**63))
        case Wire.INT8:
            yield from range(-2, 8)
        case Wire.FLAG:
            yield from (True, False)


def _nested(field: Field) -> Iterator[Any]:
    for layout in layouts_of(field.classes):
        if layout.structure is Destination:
            kind = Kind(layout.type_id - 100)
            yield from (Destination(kind, text) for text in texts())
        elif layout.structure is XATransactionId:
            yield XATransactionId(1, b"x" * 60_000, b"y" * 60_000)
        elif layout.structure is LocalTransactionId:
            yield LocalTransactionId("x" * TEXT_BYTES_MAX, 1)
        elif layout.structure in (openwire.ConnectionId, openwire.BrokerId):
            yield layout.structure("x" * TEXT_BYTES_MAX)
        elif layout.structure in (openwire.ConsumerId, ProducerId):
            yield layout.structure("x" * TEXT_BYTES_MAX, 1, 1)


def _element(field: Field) -> Any:
    layout = next(iter(layouts_of(field.classes)))
    return layout.build(*(_least(each) for each in layout.fields))
