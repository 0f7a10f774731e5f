"""Fields of one body: their places and types, within bounds, without names that may be secret."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

FIELDS_MAX = 500
"""So many fields of one body are told."""
NAMES_MAX = 64
"""An object with more names than this is a table: its names are values."""
DEPTH_MAX = 32
ANY = "*"
"""Stands for names that may be values: an object is used as a table."""
ITEMS = "[*]"
"""Stands for the items of an array, as in JSONPaths."""
HIDDEN = "***"
"""Stands for names that a mask hides, with all that is below."""
REAL_MAX = 1024
"""Below a place that is longer, masks are about the names that are shown: those there are may be as
long as a body."""

_NAME = re.compile(r"[A-Za-z_@#$:][A-Za-z0-9_@#$:-]{0,39}")
_FORMATS = (
    ("uuid", re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")),
    ("date", re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")),
    (
        "date-time",
        re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{5,19}(Z|[+-][0-9]{2}:?[0-9]{2})?"),
    ),
)
_NUMBERS = (
    ("boolean", re.compile(r"true|false")),
    ("integer", re.compile(r"[+-]?[0-9]{1,18}")),
    ("number", re.compile(r"[+-]?[0-9]{1,18}([.][0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")),
)
_LONG = 64
"""A text that is longer has no format that is known here."""


class Place(NamedTuple):
    """Where a field is: by the names that are *shown*, and by the *real* ones."""

    shown: str
    real: str

    def below(self, shown: str, real: str | None = None) -> "Place":
        """Return a place in this one, with what leads there, which may have a name of its own."""
        above = self.real if len(self.real) <= REAL_MAX else self.shown
        return Place(self.shown + shown, above + (shown if real is None else real))


class Fields:
    """The places of a body's fields, each with its types; names that *masks* match are hidden.

    A mask is a place with `*` and `?` in it, such as `$.customer.*` or `*password*`; upper and
    lower case are one.
    """

    def __init__(self, masks: Sequence[str] = ()) -> None:
        self.types: dict[str, set[str]] = {}
        # A bracket would begin a set of characters; places have some, see ITEMS.
        self._masks = [mask.lower().replace("[", "[[]") for mask in masks]

    def add(self, place: str, kind: str) -> bool:
        """Note a field, and tell whether there is room for what is below it."""
        if place not in self.types and len(self.types) >= FIELDS_MAX:
            return False
        self.types.setdefault(place, set()).add(kind)
        return True

    def is_hidden(self, place: Place) -> bool:
        """Tell whether a mask hides the field at *place*, by the name there is or the one shown."""
        return any(fnmatchcase(name.lower(), mask) for mask in self._masks for name in set(place))


def shown_name(name: str) -> str:
    """Return *name* if it looks like one that programs give, else ANY."""
    return name if _NAME.fullmatch(name) else ANY


def text_type(text: str) -> str:
    """Return `string`, with its format where it is one of a few."""
    if len(text) <= _LONG:
        for name, pattern in _FORMATS:
            if pattern.fullmatch(text):
                return f"string ({name})"
    return "string"


def written_type(text: str) -> str:
    """Return the type of what is always written as text: a number may be meant."""
    if len(text) <= _LONG:
        for name, pattern in _NUMBERS:
            if pattern.fullmatch(text):
                return name
    return text_type(text)
