"""Data structures: slots dataclasses whose annotations carry wire type and versions.

A field is written `prefetch_size: Int32 = 0`; one that came with a later version of the protocol
`droppable: Annotated[Flag, Since(2)] = False`. The fields of a base class are marshalled first.
The registry knows every structure by its type byte; the codec compiles what it finds there.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import Enum, auto
from operator import attrgetter
from typing import (
    Annotated,
    Any,
    ForwardRef,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
)

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId, XATransactionId
from lockkeeper.message.openwire.wiretypes import Throwable
from lockkeeper.message.primitives import Value

VERSION_MAX = 12


class Wire(Enum):
    """The loose wire types of openwire.md section 2."""

    FLAG = auto()
    INT8 = auto()
    INT32 = auto()
    INT64 = auto()
    RAW8 = auto()
    TEXT = auto()
    REQUIRED_TEXT = auto()
    OCTETS = auto()
    REQUIRED_OCTETS = auto()
    PROPERTIES = auto()
    NESTED = auto()
    CACHED = auto()
    ARRAY = auto()
    THROWABLE = auto()


@dataclass(frozen=True, slots=True)
class Since:
    """The first OpenWire version that has the field."""

    version: int


@dataclass(frozen=True, slots=True)
class Until:
    """The last OpenWire version that has the field."""

    version: int


class DataStructure:
    """Base of every structure defined by a table in this package."""

    __slots__ = ()


Structure: TypeAlias = (
    DataStructure | Destination | ProducerId | MessageId | LocalTransactionId | XATransactionId
)
_T = TypeVar("_T")

Flag = Annotated[bool, Wire.FLAG]
Int8 = Annotated[int, Wire.INT8]
Int32 = Annotated[int, Wire.INT32]
Int64 = Annotated[int, Wire.INT64]
Raw8 = Annotated[bytes, Wire.RAW8]
Text = Annotated[str | None, Wire.TEXT]
RequiredText = Annotated[str, Wire.REQUIRED_TEXT]
Octets = Annotated[bytes | None, Wire.OCTETS]
Properties = Annotated[dict[str, Value] | None, Wire.PROPERTIES]
Failure = Annotated[Throwable | None, Wire.THROWABLE]
Nested = Annotated[_T | None, Wire.NESTED]
Cached = Annotated[_T | None, Wire.CACHED]
Array = Annotated[tuple[_T, ...] | None, Wire.ARRAY]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a layout: its place is its index, its presence depends on the version."""

    name: str
    wire: Wire
    classes: tuple[type, ...] = ()
    since: int = 1
    until: int = VERSION_MAX
    default: Any = None

    def present(self, version: int) -> bool:
        """Tell whether *version* has the field."""
        return self.since <= version <= self.until


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of one structure on the wire.

    `build` takes the values of all fields in wire order, `take` gives them.
    """

    type_id: int
    name: str
    structure: type
    fields: tuple[Field, ...]
    build: Callable[..., Any]
    take: Callable[[Any], tuple[Any, ...]]


LAYOUTS: dict[int, Layout] = {}
"""Every layout by its type byte."""


def register(layout: Layout) -> None:
    """Add *layout* to the registry; ValueError when its type byte is taken."""
    if layout.type_id in LAYOUTS:
        raise ValueError(f"type {layout.type_id} is {LAYOUTS[layout.type_id].name} already")
    LAYOUTS[layout.type_id] = layout


@dataclass_transform()
def base(cls: type[_T]) -> type[_T]:
    """Make *cls* an abstract structure: fields for others to inherit, no type byte."""
    return dataclass(slots=True)(cls)


@dataclass_transform()
def structure(type_id: int) -> Callable[[type[_T]], type[_T]]:
    """Return a decorator that makes a class the structure with *type_id* on the wire."""

    def decorate(cls: type[_T]) -> type[_T]:
        made = dataclass(slots=True)(cls)
        _register_class(type_id, made)
        return made

    return decorate


@dataclass_transform(frozen_default=True)
def identity(type_id: int) -> Callable[[type[_T]], type[_T]]:
    """Return a decorator like `structure` whose instances are immutable and hashable."""

    def decorate(cls: type[_T]) -> type[_T]:
        made = dataclass(frozen=True, slots=True)(cls)
        _register_class(type_id, made)
        return made

    return decorate


def layouts_of(classes: tuple[type, ...]) -> Iterator[Layout]:
    """Yield the layouts of *classes* and of what inherits from them."""
    return (layout for layout in LAYOUTS.values() if issubclass(layout.structure, classes))


def taker(*names: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives the attributes *names* of an object as a tuple."""
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)


def _register_class(type_id: int, cls: type) -> None:
    found = tuple(_field(each, cls) for each in fields(cls))
    take = taker(*(each.name for each in found))
    register(Layout(type_id, cls.__name__, cls, found, cls, take))


def _field(declared: "dataclasses.Field[Any]", cls: type) -> Field:
    content, *marks = get_args(declared.type)
    (wire,) = (mark for mark in marks if isinstance(mark, Wire))
    since = next((mark.version for mark in marks if isinstance(mark, Since)), 1)
    until = next((mark.version for mark in marks if isinstance(mark, Until)), VERSION_MAX)
    nested = wire in (Wire.NESTED, Wire.CACHED, Wire.ARRAY)
    classes = tuple(_classes(content, cls)) if nested else ()
    return Field(declared.name, wire, classes, since, until, declared.default)


def _classes(hint: Any, cls: type) -> Iterator[type]:
    """Yield the structure classes that *hint* names; a quoted name is *cls* itself."""
    if isinstance(hint, ForwardRef):
        yield cls
    elif get_origin(hint) is not None:
        for part in get_args(hint):
            yield from _classes(part, cls)
    elif isinstance(hint, type) and hint is not type(None):
        yield hint
