"""Primitive maps and lists: properties and the bodies of map and stream messages.

Java's types come back as the Python type that is natural, with a marker class where Python has
fewer types than Java, so that a decoded value encodes to the bytes it came from
(openwire.md section 4). A plain `int` is written as Java's int when it fits 32 bits, else as
long; a plain `float` as double.
"""

from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from struct import error as StructError
from typing import Any, TypeAlias, TypeVar

from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.text import decode_text, encode_text

NESTING_MAX = 16
SHORT_TEXT_CHARACTERS = 8191
"""Texts of at least so many characters are written with a 32-bit length."""

_T = TypeVar("_T")
_UNSIGNED_SHORT = Struct(">H")
_INT = Struct(">i")


class Byte(int):
    """A Java byte, -128 to 127."""

    __slots__ = ()


class Short(int):
    """A Java short, 16 bits."""

    __slots__ = ()


class Long(int):
    """A Java long, 64 bits, also when its value is small."""

    __slots__ = ()


class Char(str):
    """A Java char: one UTF-16 unit."""

    __slots__ = ()


class Float(float):
    """A Java float: 32 bits."""

    __slots__ = ()


Value: TypeAlias = "bool | int | float | str | bytes | Mapping[str, Value] | list[Value] | None"
"""What a map or list holds; Byte, Short, Long, Char and Float are among int, str and float."""


def decode_map(data: bytes, position: int = 0) -> tuple[dict[str, Value] | None, int]:
    """Return the map at *position*, None for a null map, and the position after it.

    Raises MalformedMessageError.
    """
    return _decode(_read_map, data, position)


def encode_map(mapping: Mapping[str, Value] | None) -> bytes:
    """Return the bytes of *mapping*, in its order; ValueError when a value does not fit."""
    out = bytearray()
    _encode(_write_map, out, mapping)
    return bytes(out)


def decode_list(data: bytes, position: int = 0) -> tuple[list[Value], int]:
    """Return the list at *position* and the position after it; MalformedMessageError."""
    return _decode(_read_list, data, position)


def encode_list(values: Iterable[Value]) -> bytes:
    """Return the bytes of *values* as a list with its count; ValueError as for maps."""
    out = bytearray()
    _encode(_write_list, out, list(values))
    return bytes(out)


def decode_value(data: bytes, position: int = 0) -> tuple[Value, int]:
    """Return the tagged value at *position* and the position after it."""
    return _decode(_read_value, data, position)


def encode_value(value: Value) -> bytes:
    """Return the bytes of *value*, its tag first; ValueError when it does not fit."""
    out = bytearray()
    _encode(_write_value, out, value)
    return bytes(out)


def _decode(
    read: Callable[[bytes, int, int], tuple[_T, int]], data: bytes, position: int
) -> tuple[_T, int]:
    try:
        return read(data, position, NESTING_MAX)
    except MalformedMessageError:
        raise
    except (StructError, IndexError) as error:
        text = f"primitive value from offset {position}: the data ends within it"
        raise MalformedMessageError(text) from error
    except ValueError as error:
        raise MalformedMessageError(f"primitive value from offset {position}: {error}") from error


def _encode(write: Callable[..., None], out: bytearray, value: Any) -> None:
    try:
        write(out, value, NESTING_MAX)
    except (StructError, OverflowError) as error:
        raise ValueError(f"a value does not fit its Java type: {error}") from error


def _take_bytes(data: bytes, position: int, length: int) -> tuple[bytes, int]:
    end = position + length
    if length < 0 or end > len(data):
        text = f"a length of {length} at offset {position}, {len(data) - position} bytes are left"
        raise MalformedMessageError(text)
    return data[position:end], end


def _read_map(data: bytes, position: int, depth: int) -> tuple[dict[str, Value] | None, int]:
    (count,) = _INT.unpack_from(data, position)
    if count == -1:
        return None, position + 4
    _check_count(count, position, depth)
    position += 4
    found: dict[str, Value] = {}
    for _ in range(count):
        key, position = _read_text(data, position, depth)
        found[key], position = _read_value(data, position, depth)
    return found, position


def _read_list(data: bytes, position: int, depth: int) -> tuple[list[Value], int]:
    (count,) = _INT.unpack_from(data, position)
    _check_count(count, position, depth)
    position += 4
    found: list[Value] = []
    for _ in range(count):
        value, position = _read_value(data, position, depth)
        found.append(value)
    return found, position


def _check_count(count: int, position: int, depth: int) -> None:
    if count < 0:
        raise MalformedMessageError(f"a count of {count} at offset {position}")
    if not depth:
        raise MalformedMessageError(f"maps nested more than {NESTING_MAX} deep at {position}")


def _read_value(data: bytes, position: int, depth: int) -> tuple[Value, int]:
    tag = data[position]
    if tag >= len(_READERS):
        raise MalformedMessageError(f"unknown value type {tag} at offset {position}")
    return _READERS[tag](data, position + 1, depth)


def _read_text(data: bytes, position: int, depth: int) -> tuple[str, int]:
    (length,) = _UNSIGNED_SHORT.unpack_from(data, position)
    raw, position = _take_bytes(data, position + 2, length)
    return decode_text(raw), position


def _read_big_text(data: bytes, position: int, depth: int) -> tuple[str, int]:
    raw, position = _read_bytes(data, position, depth)
    return decode_text(raw), position


def _read_bytes(data: bytes, position: int, depth: int) -> tuple[bytes, int]:
    (length,) = _INT.unpack_from(data, position)
    return _take_bytes(data, position + 4, length)


def _read_null(data: bytes, position: int, depth: int) -> tuple[None, int]:
    return None, position


def _fixed(pattern: str, make: Callable[[Any], Value]) -> Callable[..., tuple[Value, int]]:
    layout = Struct(pattern)

    def read(data: bytes, position: int, depth: int) -> tuple[Value, int]:
        return make(layout.unpack_from(data, position)[0]), position + layout.size

    return read


def _nested(read: Callable[..., tuple[Value, int]]) -> Callable[..., tuple[Value, int]]:
    return lambda data, position, depth: read(data, position, depth - 1)


_READERS: tuple[Callable[..., tuple[Value, int]], ...] = (
    _read_null,
    _fixed(">?", bool),
    _fixed(">b", Byte),
    _fixed(">H", lambda unit: Char(chr(unit))),
    _fixed(">h", Short),
    _fixed(">i", int),
    _fixed(">q", Long),
    _fixed(">d", float),
    _fixed(">f", Float),
    _read_text,
    _read_bytes,
    _nested(_read_map),
    _nested(_read_list),
    _read_big_text,
)


def _write_map(out: bytearray, mapping: Mapping[str, Value] | None, depth: int) -> None:
    if mapping is None:
        out += _INT.pack(-1)
        return
    _check_depth(depth)
    out += _INT.pack(len(mapping))
    for key, value in mapping.items():
        if not isinstance(key, str):
            raise ValueError(f"a map key must be a text, not {key!r}")
        raw = encode_text(key)
        out += _UNSIGNED_SHORT.pack(len(raw))
        out += raw
        _write_value(out, value, depth)


def _write_list(out: bytearray, values: list[Value], depth: int) -> None:
    _check_depth(depth)
    out += _INT.pack(len(values))
    for value in values:
        _write_value(out, value, depth)


def _check_depth(depth: int) -> None:
    if not depth:
        raise ValueError(f"maps and lists nested more than {NESTING_MAX} deep")


def _write_value(out: bytearray, value: Value, depth: int) -> None:
    packer = _PACKERS.get(type(value))
    if packer is not None:
        out += packer(value)
    elif isinstance(value, Mapping):
        out.append(11)
        _write_map(out, value, depth - 1)
    elif isinstance(value, list | tuple):
        out.append(12)
        _write_list(out, list(value), depth - 1)
    else:
        raise ValueError(f"{type(value).__name__} is not a type that a property can have")


def _pack_int(value: int) -> bytes:
    fits = -0x80000000 <= value <= 0x7FFFFFFF
    return _TAGGED_INT.pack(5, value) if fits else _TAGGED_LONG.pack(6, value)


def _pack_text(value: str) -> bytes:
    raw = encode_text(value)
    units = len(value) + sum(character > "\uffff" for character in value)
    if units < SHORT_TEXT_CHARACTERS:
        return b"\x09" + _UNSIGNED_SHORT.pack(len(raw)) + raw
    return b"\x0d" + _INT.pack(len(raw)) + raw


def _pack_char(value: str) -> bytes:
    if len(value) != 1 or value > "\uffff":
        raise ValueError(f"a char is one UTF-16 unit, not {value!r}")
    return b"\x03" + _UNSIGNED_SHORT.pack(ord(value))


def _pack_bytes(value: bytes) -> bytes:
    return b"\x0a" + _INT.pack(len(value)) + bytes(value)


_TAGGED_INT = Struct(">bi")
_TAGGED_LONG = Struct(">bq")
_TAGGED_BYTE = Struct(">bb")
_TAGGED_SHORT = Struct(">bh")
_TAGGED_DOUBLE = Struct(">bd")
_TAGGED_FLOAT = Struct(">bf")
_PACKERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"\x00",
    bool: lambda value: b"\x01\x01" if value else b"\x01\x00",
    Byte: lambda value: _TAGGED_BYTE.pack(2, value),
    Char: _pack_char,
    Short: lambda value: _TAGGED_SHORT.pack(4, value),
    int: _pack_int,
    Long: lambda value: _TAGGED_LONG.pack(6, value),
    float: lambda value: _TAGGED_DOUBLE.pack(7, value),
    Float: lambda value: _TAGGED_FLOAT.pack(8, value),
    str: _pack_text,
    bytes: _pack_bytes,
    bytearray: _pack_bytes,
}
