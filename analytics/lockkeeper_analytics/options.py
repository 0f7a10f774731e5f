"""Options of the data source: checked by name and value before anything is read."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches

from lockkeeper.message.destination import SCHEMES, Kind, parse_destination
from lockkeeper_analytics.errors import OptionError
from lockkeeper_analytics.schema import BODY_COLUMNS, COLUMNS, DEFAULT_COLUMNS

BODY_BYTES_MAX = 1024 * 1024
CORRUPT_CHOICES = ("fail", "skip")
NAMES = ("path", "paths", "columns", "destination", "since", "body", "bodyBytesMax", "corrupt")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A destination to keep: a name that may hold wildcards, of one kind or of any."""

    kind: Kind | None
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read; `since` is in ms since the epoch, 0 for everything."""

    directories: tuple[str, ...]
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    destinations: tuple[Pattern, ...] = ()
    since: int = 0
    body_bytes_max: int = BODY_BYTES_MAX
    skip_corrupt: bool = False


def parse_options(options: Mapping[str, str]) -> ReadOptions:
    """Return the checked options; raises OptionError, which names the nearest right word."""
    given = {_known(name): value for name, value in options.items()}
    corrupt = given.get("corrupt", "fail").lower()
    if corrupt not in CORRUPT_CHOICES:
        raise OptionError(f"option corrupt: {corrupt!r} is not one of {', '.join(CORRUPT_CHOICES)}")
    return ReadOptions(
        directories=_directories(given),
        columns=_columns(given),
        destinations=tuple(map(_pattern, _list(given.get("destination", "")))),
        since=_since(given.get("since", "")),
        body_bytes_max=_bytes_max(given.get("bodyBytesMax", str(BODY_BYTES_MAX))),
        skip_corrupt=corrupt == "skip",
    )


def _known(name: str) -> str:
    by_lower = {known.lower(): known for known in NAMES}
    if name.lower() not in by_lower:
        raise OptionError(f"unknown option {name!r}{_nearest(name, NAMES)}")
    return by_lower[name.lower()]


def _nearest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"{meant} (known: {', '.join(known)})"


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _directories(given: Mapping[str, str]) -> tuple[str, ...]:
    """Spark gives `load(one)` as path and `load([several])` as paths, a JSON array."""
    directories = _list(given.get("path", ""))
    if "paths" in given:
        directories += json.loads(given["paths"])
    if not directories:
        raise OptionError("option path: name one or more journal directories, commas between")
    return tuple(dict.fromkeys(directories))


def _columns(given: Mapping[str, str]) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(_list(given.get("columns", "")))) or DEFAULT_COLUMNS
    for name in asked:
        if name not in COLUMNS:
            raise OptionError(f"option columns: unknown column {name!r}{_nearest(name, COLUMNS)}")
    if _flag("body", given.get("body", "false")):
        asked += tuple(name for name in BODY_COLUMNS if name not in asked)
    return asked


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"option {name}: {text!r} is neither true nor false")
    return text.lower() == "true"


def _pattern(text: str) -> Pattern:
    try:
        destination = parse_destination(text)
    except ValueError as error:
        raise OptionError(f"option destination: {error}") from None
    named = text.partition("://")[0] in SCHEMES and "://" in text
    return Pattern(destination.kind if named else None, destination.path)


def _since(text: str) -> int:
    """Return *text*, an ISO 8601 time (UTC unless it says otherwise) or ms, in ms."""
    if not text:
        return 0
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        example = "2026-01-31T12:00:00Z"
        raise OptionError(
            f"option since: {text!r} is neither an ISO 8601 time such as {example} "
            "nor milliseconds since 1970"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _bytes_max(text: str) -> int:
    if not text.isdigit():
        raise OptionError(f"option bodyBytesMax: {text!r} is not a number of bytes")
    return int(text)
