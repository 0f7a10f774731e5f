"""Options of URIs, `?name=value&name=value`, each known by its name."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias

Known: TypeAlias = Mapping[str, tuple[str, Callable[[str], Any]]]
"""Options by their names: the name of the field, and what reads its value or raises ValueError."""


def read_query(query: str | None, text: str) -> dict[str, str]:
    """Return the options of a query, None for none. Raises ValueError, which tells *text*."""
    found: dict[str, str] = {}
    for part in filter(None, (query or "").split("&")):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"option {part!r} in {text!r} has no value")
        found[name] = value
    return found


def read_options(query: Mapping[str, str], known: Known, text: str) -> dict[str, Any]:
    """Return options by the names of their fields. Raises ValueError with the way out."""
    found: dict[str, Any] = {}
    for name, value in query.items():
        if name not in known:
            raise ValueError(f"{unknown('option', name, tuple(known))}, in {text!r}")
        name_of_field, parse = known[name]
        try:
            found[name_of_field] = parse(value)
        except ValueError as error:
            raise ValueError(f"option {name}={value} in {text!r}: {error}") from None
    return found


def unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    """Return what is wrong with a *name*, and the nearest of those that are *known*."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known) or 'none'}"
    return f"unknown {what} {name!r}; {hint}"


def flag(text: str) -> bool:
    """Read true or false. Raises ValueError."""
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


def count(text: str) -> int:
    """Read a number of at least 0. Raises ValueError."""
    if not text.isdigit():
        raise ValueError("expected a number of at least 0")
    return int(text)
