"""One of every OpenWire structure, in every version, made from the codec's own table."""

from random import Random
from typing import Any

from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.openwire import LAYOUTS, VERSION_MAX, StackElement, Throwable, codec_for
from lockkeeper.message.openwire.structure import Field, Layout, Wire, layouts_of
from lockkeeper.message.primitives import Byte, Char, Float, Long, Short, Value

DEPTH_MAX = 3
TEXTS = ("", "a", "ID:host-1:1", "ORDERS.*,topic://X", "ä€\0\U0001f600", "x" * 300)


def encodings() -> list[bytes]:
    """Return every structure in every version: the version's byte, then the structure."""
    chance = Random(1)
    found = []
    for version in range(1, VERSION_MAX + 1):
        codec = codec_for(version)
        for layout in LAYOUTS.values():
            found.append(bytes([version]) + codec.encode(_made(chance, layout, DEPTH_MAX)))
    return found


def _made(chance: Random, layout: Layout, depth: int) -> Any:
    if layout.structure is Destination:
        return Destination(Kind(layout.type_id - 100), chance.choice(TEXTS[1:]))
    return layout.build(*(_value(chance, field, depth) for field in layout.fields))


def _value(chance: Random, field: Field, depth: int) -> Any:
    if field.wire in (Wire.NESTED, Wire.CACHED):
        return _nested(chance, field, depth)
    if field.wire is Wire.ARRAY:
        return tuple(_nested(chance, field, depth) for _ in range(2)) if depth else None
    return _SIMPLE[field.wire](chance)


def _nested(chance: Random, field: Field, depth: int) -> Any:
    if not depth:
        return None
    return _made(chance, chance.choice(list(layouts_of(field.classes))), depth - 1)


def properties() -> dict[str, Value]:
    """Return a map with a value of every type."""
    return {
        "null": None, "flag": True, "byte": Byte(-1), "char": Char("ä"), "short": Short(-2),
        "int": 7, "long": Long(1 << 40), "double": 1.5, "float": Float(0.5), "text": "grün\0",
        "bytes": b"\0\xff", "map": {"a": 1, "b": {"c": "d"}}, "list": [1, "x", [None]],
        "big": "y" * 9000,
    }  # fmt: skip


def _throwable(_: Random) -> Throwable:
    stack = (StackElement("a.B", "c", "B.java", 3), StackElement())
    return Throwable("a.B", "said", stack, Throwable("d.E", None, stack))


_SIMPLE = {
    Wire.FLAG: lambda chance: chance.random() < 0.5,
    Wire.INT8: lambda chance: chance.randint(-128, 127),
    Wire.INT32: lambda chance: chance.randint(-(1 << 31), (1 << 31) - 1),
    Wire.INT64: lambda chance: chance.randint(-(1 << 63), (1 << 63) - 1),
    Wire.RAW8: lambda chance: chance.choice((b"ActiveMQ", bytes(8))),
    Wire.TEXT: lambda chance: chance.choice((None, *TEXTS)),
    Wire.REQUIRED_TEXT: lambda chance: chance.choice(TEXTS),
    Wire.OCTETS: lambda chance: chance.choice((None, b"", b"x" * 40)),
    Wire.REQUIRED_OCTETS: lambda chance: chance.choice((b"", b"branch-1")),
    Wire.PROPERTIES: lambda chance: chance.choice((None, {}, properties())),
    Wire.THROWABLE: lambda chance: chance.choice((None, _throwable(chance))),
}
