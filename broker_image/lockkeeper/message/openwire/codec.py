"""The one loose codec of all structures, compiled once per (structure, version).

A compiled structure is a tuple of steps. Neighbouring fields of fixed size are one step, one
`struct` call; every other field is a call of its reader. Nothing is guessed: bytes that are cut
short, unknown or impossible raise MalformedMessageError with structure, field and offset.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct, calcsize
from struct import error as StructError
from typing import Any, Final

from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.openwire import wiretypes
from lockkeeper.message.openwire.structure import (
    LAYOUTS,
    VERSION_MAX,
    Field,
    Layout,
    Structure,
    Wire,
    layouts_of,
)
from lockkeeper.message.openwire.wiretypes import SHORT, BadValueError

NESTING_MAX: Final = 16
ARRAY_ELEMENTS_MAX: Final = 4096
FIXED = {Wire.FLAG: "?", Wire.INT8: "b", Wire.INT32: "i", Wire.INT64: "q", Wire.RAW8: "8s"}
READERS: dict[Wire, Callable[[bytes, int], tuple[Any, int]]] = {
    Wire.TEXT: wiretypes.read_text,
    Wire.REQUIRED_TEXT: wiretypes.read_required_text,
    Wire.OCTETS: wiretypes.read_octets,
    Wire.REQUIRED_OCTETS: wiretypes.read_required_octets,
    Wire.PROPERTIES: wiretypes.read_properties,
}
WRITERS: dict[Wire, Callable[[bytearray, Any], None]] = {
    Wire.TEXT: wiretypes.write_text,
    Wire.REQUIRED_TEXT: wiretypes.write_text,
    Wire.OCTETS: wiretypes.write_octets,
    Wire.REQUIRED_OCTETS: wiretypes.write_octets,
    Wire.PROPERTIES: wiretypes.write_properties,
}
WRONG_BYTES = (BadValueError, StructError, IndexError, UnicodeDecodeError)
WRONG_VALUES = (BadValueError, StructError, TypeError, AttributeError, UnicodeEncodeError)

Read = Callable[[bytes, int, int], tuple[Any, int]]
Write = Callable[[bytearray, Any], None]


class Codec:
    """The loose codec of one protocol version; get it from `codec_for`."""

    __slots__ = ("_readers", "_writers", "stack_traces", "version")

    def __init__(self, version: int, stack_traces: bool) -> None:
        """*stack_traces* tells whether exceptions carry their stack (StackTraceEnabled)."""
        if not 1 <= version <= VERSION_MAX:
            raise ValueError(f"OpenWire version {version} is not one of 1 to {VERSION_MAX}")
        self.version = version
        self.stack_traces = stack_traces
        self._readers = _Readers(self)
        self._writers = _Writers(self)

    def decode(
        self, data: bytes, position: int = 0, end: int | None = None
    ) -> tuple[Structure, int]:
        """Return the structure whose type byte is at *position*, and the position after it.

        Nothing from *end* on is read. Raises MalformedMessageError.
        """
        if end is not None and end < len(data):
            data = data[:end]
        if not 0 <= position < len(data):
            raise MalformedMessageError(f"no type byte at offset {position} of {len(data)} bytes")
        read = self._readers.get_or_compile(data[position])
        if read is None:
            raise MalformedMessageError(f"unknown type {data[position]} at offset {position}")
        result: tuple[Structure, int] = read(data, position + 1, NESTING_MAX)
        return result

    def encode(self, structure: Structure) -> bytes:
        """Return the loose bytes of *structure*, type byte first, without a size.

        Raises ValueError, naming the field, when a value does not fit its wire type.
        """
        out = bytearray()
        self._writers[type(structure)](out, structure)
        return bytes(out)

    def compile_reader(self, layout: Layout) -> Read:
        """Return the function that reads the fields of *layout*."""
        steps = tuple(self._read_steps(layout))
        build, several = layout.build, len(steps)

        def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
            values: list[Any] = []
            try:
                for size, step in steps:
                    if size:
                        values += step(data, position)
                        position += size
                    else:
                        value, position = step(data, position, depth)
                        values.append(value)
            except WRONG_BYTES as error:
                present = _present_field(layout, len(values), position, len(data), self.version)
                raise _malformed(layout, present, position, error) from error
            return build(*values), position

        return read if several else lambda data, position, depth: (build(), position)

    def compile_writer(self, layout: Layout) -> Write:
        """Return the function that writes the type byte and the fields of *layout*."""
        steps = tuple(self._write_steps(layout))
        take, type_id = layout.take, layout.type_id

        def write(out: bytearray, structure: Any) -> None:
            out.append(type_id)
            values = take(structure)
            start = 0
            try:
                for start, stop, step in steps:
                    if stop:
                        out += step(*values[start:stop])
                    else:
                        step(out, values[start])
            except WRONG_VALUES as error:
                name = f"{layout.name}.{layout.fields[start].name}"
                raise ValueError(f"{name} does not fit the wire: {error}") from error

        return write

    def _read_steps(self, layout: Layout) -> "list[tuple[int, Callable[..., Any]]]":
        steps: list[tuple[int, Callable[..., Any]]] = []
        for start, stop, run in _runs(layout.fields, self.version):
            field = layout.fields[start]
            if run:
                steps.append((run.size, run.unpack_from))
            elif field.present(self.version):
                steps.append((0, self._reader_of(field)))
            else:
                steps += [(0, _constant(each.default)) for each in layout.fields[start:stop]]
        return steps

    def _write_steps(self, layout: Layout) -> "list[tuple[int, int, Callable[..., Any]]]":
        steps: list[tuple[int, int, Callable[..., Any]]] = []
        for start, stop, run in _runs(layout.fields, self.version):
            field = layout.fields[start]
            if run:
                steps.append((start, stop, run.pack))
            elif field.present(self.version):
                steps.append((start, 0, self._writer_of(field)))
        return steps

    def _reader_of(self, field: Field) -> Read:
        if field.wire in READERS:
            read = READERS[field.wire]
            return lambda data, position, depth: read(data, position)
        if field.wire is Wire.THROWABLE:
            traces = self.stack_traces
            return lambda data, position, _: wiretypes.read_throwable(data, position, traces)
        nested = self._nested_reader(field.classes)
        return _array_reader(nested) if field.wire is Wire.ARRAY else nested

    def _writer_of(self, field: Field) -> Write:
        if field.wire in WRITERS:
            return WRITERS[field.wire]
        if field.wire is Wire.THROWABLE:
            traces = self.stack_traces
            return lambda out, value: wiretypes.write_throwable(out, value, traces)
        nested = self._nested_writer()
        return _array_writer(nested) if field.wire is Wire.ARRAY else nested

    def _nested_reader(self, classes: tuple[type, ...]) -> Read:
        allowed = frozenset(layout.type_id for layout in layouts_of(classes))
        readers = self._readers

        def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
            if not data[position]:
                return None, position + 1
            type_id = data[position + 1]
            if type_id not in allowed:
                raise BadValueError(f"an object of type {type_id} does not belong here")
            if not depth:
                raise BadValueError(f"objects nested more than {NESTING_MAX} deep")
            return readers[type_id](data, position + 2, depth - 1)

        return read

    def _nested_writer(self) -> Write:
        writers = self._writers

        def write(out: bytearray, value: Any) -> None:
            if value is None:
                out.append(0)
            else:
                out.append(1)
                writers[type(value)](out, value)

        return write


class _Readers(dict[int, Read]):
    """The compiled readers by type byte, each made at its first use."""

    def __init__(self, codec: Codec) -> None:
        super().__init__()
        self._codec = codec

    def __missing__(self, type_id: int) -> Read:
        read = self[type_id] = self._codec.compile_reader(LAYOUTS[type_id])
        return read

    def get_or_compile(self, type_id: int) -> Read | None:
        """Return the reader of *type_id*, or None when there is no such structure."""
        return self[type_id] if type_id in LAYOUTS else None


class _Writers(dict[type, Write]):
    """The compiled writers by class, each made at its first use."""

    def __init__(self, codec: Codec) -> None:
        super().__init__()
        self._codec = codec
        self[Destination] = _write_destination

    def __missing__(self, structure: type) -> Write:
        for layout in LAYOUTS.values():
            if layout.structure is structure:
                write = self[structure] = self._codec.compile_writer(layout)
                return write
        raise TypeError(f"{structure.__name__} is not an OpenWire structure")


@lru_cache(maxsize=2 * VERSION_MAX)
def codec_for(version: int = VERSION_MAX, stack_traces: bool = True) -> Codec:
    """Return the codec of *version*, 1 to 12; ValueError for any other."""
    return Codec(version, stack_traces)


def decode(
    data: bytes, position: int = 0, version: int = VERSION_MAX, end: int | None = None
) -> tuple[Structure, int]:
    """Return the structure whose type byte is at *position*, and the position after it."""
    return codec_for(version).decode(data, position, end)


def encode(structure: Structure, version: int = VERSION_MAX) -> bytes:
    """Return the loose bytes of *structure*, type byte first, without a size."""
    return codec_for(version).encode(structure)


def _write_destination(out: bytearray, destination: Destination) -> None:
    out += destination.wire[1:]


def _constant(value: Any) -> Read:
    """Return a reader of a field that this version does not have."""
    return lambda data, position, depth: (value, position)


def _runs(fields: tuple[Field, ...], version: int) -> list[tuple[int, int, Struct | None]]:
    """Return the fields as (start, stop, struct); neighbours of fixed size come together."""
    found: list[tuple[int, int, Struct | None]] = []
    index = 0
    while index < len(fields):
        start, pattern = index, ">"
        while (
            index < len(fields) and fields[index].wire in FIXED and fields[index].present(version)
        ):
            pattern += FIXED[fields[index].wire]
            index += 1
        if index == start:
            index += 1
        found.append((start, index, Struct(pattern) if len(pattern) > 1 else None))
    return found


def _array_reader(nested: Read) -> Read:
    def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
        if not data[position]:
            return None, position + 1
        (count,) = SHORT.unpack_from(data, position + 1)
        if count < 0:
            raise BadValueError(f"an array of {count} elements")
        if count > ARRAY_ELEMENTS_MAX:
            raise BadValueError(f"an array of {count} elements, more than {ARRAY_ELEMENTS_MAX}")
        position += 3
        elements = []
        for _ in range(count):
            element, position = nested(data, position, depth)
            if element is None:
                raise BadValueError("null in an array")
            elements.append(element)
        return tuple(elements), position

    return read


def _array_writer(nested: Write) -> Write:
    def write(out: bytearray, elements: tuple[Any, ...] | None) -> None:
        if elements is None:
            out.append(0)
            return
        out.append(1)
        out += SHORT.pack(len(elements))
        for element in elements:
            nested(out, element)

    return write


def _present_field(layout: Layout, index: int, position: int, end: int, version: int) -> Field:
    """Return the field that could not be read: *index*, or one of its run of fixed size."""
    for field in layout.fields[index:]:
        if field.wire not in FIXED or not field.present(version):
            break
        position += calcsize(">" + FIXED[field.wire])
        if position > end:
            return field
    return layout.fields[index]


def _malformed(
    layout: Layout, field: Field, position: int, error: Exception
) -> MalformedMessageError:
    cut_short = isinstance(error, StructError | IndexError)
    why = "the data ends here" if cut_short else str(error)
    return MalformedMessageError(f"{layout.name}.{field.name} at offset {position}: {why}")
