"""Options of the data source: checked by name and value before anything is read."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches

from lockkeeper.message.destination import SCHEMES, parse_destination
from lockkeeper_analytics.asked import BODY_BYTES_MAX, Pattern, ReadOptions
from lockkeeper_analytics.errors import OptionError
from lockkeeper_analytics.schema import BODY_COLUMNS
from lockkeeper_analytics.tables import RECORDS, TABLES
from lockkeeper_analytics.tables.shape import Table

CORRUPT_CHOICES = ("fail", "skip")
NAMES = (
    "path",
    "paths",
    "table",
    "columns",
    "destination",
    "since",
    "until",
    "body",
    "bodyBytesMax",
    "corrupt",
)


def parse_options(options: Mapping[str, str]) -> ReadOptions:
    """Return the checked options; raises OptionError, which names the nearest right word."""
    given = {_known(name): value for name, value in options.items()}
    corrupt = given.get("corrupt", "fail").lower()
    if corrupt not in CORRUPT_CHOICES:
        raise OptionError(f"option corrupt: {corrupt!r} is not one of {', '.join(CORRUPT_CHOICES)}")
    table = _table(given.get("table", RECORDS))
    return ReadOptions(
        directories=_directories(given),
        table=table.name,
        columns=_columns(given, table),
        destinations=_destinations(given, table),
        since=_time("since", given.get("since", "")),
        until=_time("until", given.get("until", "")),
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


def _table(name: str) -> Table:
    if name not in TABLES:
        raise OptionError(f"option table: unknown table {name!r}{_nearest(name, TABLES)}")
    return TABLES[name]


def _columns(given: Mapping[str, str], table: Table) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(_list(given.get("columns", "")))) or table.default_columns
    for name in asked:
        if name not in table.columns:
            known = _nearest(name, table.columns)
            raise OptionError(f"option columns: unknown column {name!r} of {table.name}{known}")
    if _flag("body", given.get("body", "false")):
        if table.name != RECORDS:
            raise OptionError(f"option body: table {table.name} has none, table {RECORDS} has")
        asked += tuple(name for name in BODY_COLUMNS if name not in asked)
    return asked


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"option {name}: {text!r} is neither true nor false")
    return text.lower() == "true"


def _destinations(given: Mapping[str, str], table: Table) -> tuple[Pattern, ...]:
    patterns = tuple(map(_pattern, _list(given.get("destination", ""))))
    if patterns and not table.has_destinations:
        raise OptionError(f"option destination: rows of {table.name} are of all destinations")
    return patterns


def _pattern(text: str) -> Pattern:
    try:
        destination = parse_destination(text)
    except ValueError as error:
        raise OptionError(f"option destination: {error}") from None
    named = text.partition("://")[0] in SCHEMES and "://" in text
    return Pattern(destination.kind if named else None, destination.path)


def _time(name: str, text: str) -> int:
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
            f"option {name}: {text!r} is neither an ISO 8601 time such as {example} "
            "nor milliseconds since 1970"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _bytes_max(text: str) -> int:
    if not text.isdigit():
        raise OptionError(f"option bodyBytesMax: {text!r} is not a number of bytes")
    return int(text)
