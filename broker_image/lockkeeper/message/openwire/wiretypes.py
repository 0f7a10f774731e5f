"""Readers and writers of OpenWire's loose wire types (openwire.md section 2).

A reader is called as `read(data, position)` and returns the value and the position after it; a
writer appends to a `bytearray`. Readers raise BadValueError, IndexError, struct.error or
UnicodeDecodeError: the codec, which knows what was being read, turns them into one error.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.primitives import Value, decode_map, encode_map
from lockkeeper.message.text import decode_text, encode_text

SHORT = Struct(">h")
LENGTH = Struct(">H")
INT = Struct(">i")
TEXT_BYTES_MAX: Final = 0xFFFF
CAUSES_MAX: Final = 64
PROPERTIES_BYTES_MAX: Final = 0xFFFF
"""Of a WireFormatInfo, which alone has properties that are read at once."""


class BadValueError(ValueError):
    """A value on the wire is impossible; the text says why."""


@dataclass(frozen=True, slots=True)
class StackElement:
    """One line of a Java stack trace."""

    class_name: str | None = None
    method: str | None = None
    file: str | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Throwable:
    """A Java exception: its class, its message and, if negotiated, stack and cause."""

    class_name: str | None = None
    message: str | None = None
    stack: tuple[StackElement, ...] = ()
    cause: "Throwable | None" = None


def read_bytes(data: bytes, position: int, length: int) -> tuple[bytes, int]:
    """Return *length* bytes from *position*; BadValueError when negative or beyond the end."""
    end = position + length
    if length < 0 or end > len(data):
        raise BadValueError(f"a length of {length} bytes where {len(data) - position} are left")
    return data[position:end], end


def read_text(data: bytes, position: int) -> tuple[str | None, int]:
    """Return a nullable string: flag, unsigned 16-bit length, modified UTF-8."""
    if not data[position]:
        return None, position + 1
    start = position + 3
    end = start + ((data[position + 1] << 8) | data[position + 2])
    if end > len(data):
        raise BadValueError(f"a text of {end - start} bytes where {len(data) - start} are left")
    return decode_text(data[start:end]), end


def write_text(out: bytearray, text: str | None) -> None:
    """Append a nullable string; BadValueError above 65,535 encoded bytes."""
    if text is None:
        out.append(0)
        return
    raw = encode_text(text)
    if len(raw) > TEXT_BYTES_MAX:
        raise BadValueError(f"a text of {len(raw)} bytes, more than {TEXT_BYTES_MAX}")
    out.append(1)
    out += LENGTH.pack(len(raw))
    out += raw


def read_required_text(data: bytes, position: int) -> tuple[str, int]:
    """Return a string that may not be null: ids and destination names."""
    text, position = read_text(data, position)
    if text is None:
        raise BadValueError("null where a text is required")
    return text, position


def read_octets(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Return nullable bytes: flag, signed 32-bit length, data."""
    if not data[position]:
        return None, position + 1
    (length,) = INT.unpack_from(data, position + 1)
    return read_bytes(data, position + 5, length)


def write_octets(out: bytearray, octets: bytes | None) -> None:
    """Append nullable bytes."""
    if octets is None:
        out.append(0)
        return
    out.append(1)
    out += INT.pack(len(octets))
    out += octets


def read_required_octets(data: bytes, position: int) -> tuple[bytes, int]:
    """Return bytes that may not be null: the parts of an XA transaction id."""
    octets, position = read_octets(data, position)
    if octets is None:
        raise BadValueError("null where bytes are required")
    return octets, position


def read_properties(data: bytes, position: int) -> tuple[dict[str, Value] | None, int]:
    """Return the primitive map held by nullable bytes."""
    octets, position = read_octets(data, position)
    if octets is None:
        return None, position
    if len(octets) > PROPERTIES_BYTES_MAX:
        raise BadValueError(f"properties of {len(octets)} bytes")
    try:
        properties, end = decode_map(octets)
    except MalformedMessageError as error:
        raise BadValueError(str(error)) from error
    if properties is None or end != len(octets):
        raise BadValueError("a property map that is null or shorter than its length")
    return properties, position


def write_properties(out: bytearray, properties: dict[str, Value] | None) -> None:
    """Append a primitive map as nullable bytes."""
    write_octets(out, None if properties is None else encode_map(properties))


def read_throwable(data: bytes, position: int, stack_traces: bool) -> tuple[Throwable | None, int]:
    """Return a nullable exception with the causes it has, 64 at most."""
    chain: list[tuple[str | None, str | None, tuple[StackElement, ...]]] = []
    while data[position]:
        if len(chain) == CAUSES_MAX:
            raise BadValueError(f"an exception with more than {CAUSES_MAX} causes")
        class_name, position = read_text(data, position + 1)
        message, position = read_text(data, position)
        stack: tuple[StackElement, ...] = ()
        if stack_traces:
            stack, position = _read_stack(data, position)
        chain.append((class_name, message, stack))
        if not stack_traces:
            position -= 1
            break
    throwable: Throwable | None = None
    for class_name, message, stack in reversed(chain):
        throwable = Throwable(class_name, message, stack, throwable)
    return throwable, position + 1


def write_throwable(out: bytearray, throwable: Throwable | None, stack_traces: bool) -> None:
    """Append a nullable exception; stack and causes only when *stack_traces*."""
    while throwable is not None:
        out.append(1)
        write_text(out, throwable.class_name)
        write_text(out, throwable.message)
        if not stack_traces:
            return
        out += SHORT.pack(len(throwable.stack))
        for element in throwable.stack:
            write_text(out, element.class_name)
            write_text(out, element.method)
            write_text(out, element.file)
            out += INT.pack(element.line)
        throwable = throwable.cause
    out.append(0)


def _read_stack(data: bytes, position: int) -> tuple[tuple[StackElement, ...], int]:
    (count,) = SHORT.unpack_from(data, position)
    if count < 0:
        raise BadValueError(f"a stack of {count} elements")
    position += 2
    elements: list[StackElement] = []
    for _ in range(count):
        class_name, position = read_text(data, position)
        method, position = read_text(data, position)
        file, position = read_text(data, position)
        (line,) = INT.unpack_from(data, position)
        position += 4
        elements.append(StackElement(class_name, method, file, line))
    return tuple(elements), position
