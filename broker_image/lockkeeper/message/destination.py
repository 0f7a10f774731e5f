"""Destinations: a kind and a name; composites and wildcards in the name."""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final

from lockkeeper.keeping import SHORT_CHARACTERS_MAX
from lockkeeper.message.text import encode_text

COMPOSITE_SEPARATOR: Final = ","
PATH_SEPARATOR: Final = "."
ANY_CHILD: Final = "*"
ANY_DESCENDANT: Final = ">"


class Kind(IntEnum):
    """The kind of a destination; the values are KahaDB's, OpenWire's type byte is 100 more."""

    QUEUE = 0
    TOPIC = 1
    TEMP_QUEUE = 2
    TEMP_TOPIC = 3


SCHEMES = {
    "queue": Kind.QUEUE,
    "topic": Kind.TOPIC,
    "temp-queue": Kind.TEMP_QUEUE,
    "temp-topic": Kind.TEMP_TOPIC,
}


@dataclass(frozen=True, slots=True)
class Destination:
    """A queue or topic, temporary or not, by its physical name (OpenWire types 100 to 103)."""

    kind: Kind
    name: str

    @property
    def is_queue(self) -> bool:
        """Tell whether messages go to one consumer each."""
        return self.kind in (Kind.QUEUE, Kind.TEMP_QUEUE)

    @property
    def is_topic(self) -> bool:
        """Tell whether messages go to every subscription."""
        return self.kind in (Kind.TOPIC, Kind.TEMP_TOPIC)

    @property
    def is_temporary(self) -> bool:
        """Tell whether the destination lives only as long as the connection that made it."""
        return self.kind in (Kind.TEMP_QUEUE, Kind.TEMP_TOPIC)

    @property
    def is_composite(self) -> bool:
        """Tell whether the name lists several destinations."""
        return COMPOSITE_SEPARATOR in self.name

    @property
    def is_pattern(self) -> bool:
        """Tell whether the name holds a wildcard, `*` for one level or `>` for all below."""
        path = self.path
        return ANY_CHILD in path or ANY_DESCENDANT in path

    @property
    def path(self) -> tuple[str, ...]:
        """The name's levels."""
        return tuple(self.name.split(PATH_SEPARATOR))

    @property
    def wire(self) -> bytes:
        """The loose OpenWire bytes of this destination as a nested object, flag included."""
        is_short = len(self.name) <= SHORT_CHARACTERS_MAX
        return _kept_wire(self) if is_short else destination_wire(self)

    def parts(self) -> "tuple[Destination, ...]":
        """Return the destinations a composite lists, or only this one."""
        if not self.is_composite:
            return (self,)
        names = (part.strip() for part in self.name.split(COMPOSITE_SEPARATOR))
        return tuple(parse_destination(name, self.kind) for name in names if name)

    def __reduce__(self) -> "tuple[type[Destination], tuple[Kind, str]]":
        """Return how a copy in another process is made: compiled, nothing can be set later."""
        return Destination, (self.kind, self.name)

    def __str__(self) -> str:
        """Return the URL form, such as `queue://ORDERS`."""
        scheme = next(name for name, kind in SCHEMES.items() if kind is self.kind)
        return f"{scheme}://{self.name}"


def queue(name: str) -> Destination:
    """Return the queue called *name*."""
    return Destination(Kind.QUEUE, name)


def topic(name: str) -> Destination:
    """Return the topic called *name*."""
    return Destination(Kind.TOPIC, name)


def parse_destination(text: str, default: Kind = Kind.QUEUE) -> Destination:
    """Return the destination that *text* names: `NAME`, or `queue://NAME` and the like.

    Raises ValueError when the name is empty.
    """
    scheme, separator, name = text.partition("://")
    if separator and scheme in SCHEMES:
        kind = SCHEMES[scheme]
    else:
        kind, name = default, text
    if not name:
        raise ValueError(f"a destination needs a name: {text!r} has none")
    return Destination(kind, name)


def path_matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Tell whether *path* is one of the names *pattern* stands for.

    `*` stands for exactly one level; `>` at the end for any number of levels, zero included,
    as in ActiveMQ (`A.>` matches `A`).
    """
    for level, expected in enumerate(pattern):
        if expected == ANY_DESCENDANT:
            return True
        if level >= len(path) or expected not in (ANY_CHILD, path[level]):
            return False
    return len(pattern) == len(path)


def path_covers(pattern: tuple[str, ...], wildcard: tuple[str, ...]) -> bool:
    """Tell whether *pattern* stands for every name that *wildcard* stands for."""
    for level, expected in enumerate(pattern):
        if expected == ANY_DESCENDANT:
            return True
        if level >= len(wildcard) or wildcard[level] == ANY_DESCENDANT:
            return False
        if expected not in (ANY_CHILD, wildcard[level]):
            return False
    return len(pattern) == len(wildcard)


def paths_overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Tell whether there is a name that both *one* and *other* stand for, wildcards or not."""
    for mine, yours in zip(one, other, strict=False):
        if ANY_DESCENDANT in (mine, yours):
            return True
        if mine != yours and ANY_CHILD not in (mine, yours):
            return False
    shorter = min(len(one), len(other))
    return one[shorter:] in ((), (ANY_DESCENDANT,)) and other[shorter:] in ((), (ANY_DESCENDANT,))


def destination_wire(destination: Destination) -> bytes:
    """Return the loose bytes of *destination* as a nested object: flag, type byte, name."""
    name = encode_text(destination.name)
    return b"\x01%c\x01%b%b" % (100 + destination.kind, len(name).to_bytes(2, "big"), name)


@lru_cache(maxsize=4096)
def _kept_wire(destination: Destination) -> bytes:
    return destination_wire(destination)
