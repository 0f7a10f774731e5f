"""Options of the data source: checked by name and value before anything is read."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches

from lockkeeper.message.destination import SCHEMES, parse_destination
from lockkeeper_analytics.errors import OptionError
from lockkeeper_analytics.reading.arrays import LATEST
from lockkeeper_analytics.reading.asked import (
    BODY_BYTES_MAX,
    BODY_SAMPLES,
    Pattern,
    ReadOptions,
    StreamOptions,
)
from lockkeeper_analytics.reading.pins import pins_in
from lockkeeper_analytics.reading.schema import BODY_COLUMNS
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
    "bodySamples",
    "bodyMask",
    "corrupt",
    "pushdown",
    "pinned",
    "startingOffsets",
    "maxBytesPerTrigger",
    "failOnDataLoss",
    "holdBytes",
    "holdSeconds",
)
STREAM_SCHEME = "stream://"
DIGITS_MAX = 20
"""Of a number only so many digits are looked at: that is beyond every bound."""
NUMBER_MAX = 2**53
OFFSETS_CHOICES = ("earliest", "latest")
_NAMED = re.compile(r"([\w.-]+)=(.+)")


def parse_options(options: Mapping[str, str]) -> ReadOptions:
    """Return the checked options; raises OptionError, which names the nearest right word."""
    given = {_known(name): value for name, value in options.items()}
    corrupt = _choice(given, "corrupt", CORRUPT_CHOICES)
    places = _places(given)
    table = _table(given.get("table", RECORDS))
    if "pinned" in given and not table.is_pinnable:
        raise OptionError(f"option pinned: rows of {table.name} are not of parts of a journal")
    return ReadOptions(
        directories=tuple(places),
        table=table.name,
        columns=_columns(given, table),
        destinations=_destinations(given, table),
        since=_time("since", given.get("since", "")),
        until=_time("until", given.get("until", "")),
        body_bytes_max=_number(given, "bodyBytesMax", BODY_BYTES_MAX, "bytes"),
        body_samples=_number(given, "bodySamples", BODY_SAMPLES, "bodies"),
        body_masks=tuple(_list(given.get("bodyMask", ""))),
        skip_corrupt=corrupt == "skip",
        pushdown=_flag("pushdown", given.get("pushdown", "false")),
        names=tuple(places.values()),
        pinned=pins_in(given["pinned"]) if "pinned" in given else None,
        stream=_stream(given),
    )


def _stream(given: Mapping[str, str]) -> StreamOptions:
    usual = StreamOptions()
    return StreamOptions(
        from_latest=_choice(given, "startingOffsets", OFFSETS_CHOICES) == "latest",
        bytes_max=_number(given, "maxBytesPerTrigger", usual.bytes_max, "bytes"),
        fails_on_data_loss=_flag("failOnDataLoss", given.get("failOnDataLoss", "true")),
        hold_bytes=_number(given, "holdBytes", usual.hold_bytes, "bytes"),
        hold_seconds=_number(given, "holdSeconds", usual.hold_seconds, "seconds"),
    )


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """Return the value of an option, the first of *choices* without one."""
    chosen = given.get(name, choices[0]).lower()
    if chosen not in choices:
        raise OptionError(f"option {name}: {chosen!r} is not one of {', '.join(choices)}")
    return chosen


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


def _places(given: Mapping[str, str]) -> dict[str, str]:
    """Return the directories, each with the name given for it: `NAME=DIR`, or nothing.

    Spark gives `load(one)` as path and `load([several])` as paths, a JSON array. A directory of
    this machine whose name has a comma or `=` in it comes before what these stand for elsewhere.
    """
    path = given.get("path", "").strip()
    listed = [path] if _is_there(path) else _list(path)
    if "paths" in given:
        listed += json.loads(given["paths"])
    if not listed:
        raise OptionError("option path: name one or more journal directories, commas between")
    places, found = dict[str, str](), dict[str, str]()
    for each in listed:
        named = None if _is_directory(each) else _NAMED.fullmatch(each)
        name, place = (named[1], named[2]) if named else ("", each)
        known, same = places.get(place, ""), found.setdefault(_resolved(place), place)
        if same != place:
            raise OptionError(f"option path: {place} is {same}, and would be read twice")
        if name and known and known != name:
            raise OptionError(f"option path: {place} has two names, {known!r} and {name!r}")
        if name and name in places.values() and known != name:
            raise OptionError(f"option path: {name!r} names two directories")
        places[place] = name or known
    return places


def _resolved(place: str) -> str:
    """Return what is the same for all names of a directory of this machine."""
    return os.path.realpath(place) if _is_directory(place) else place.rstrip("/")


def _is_there(place: str) -> bool:
    """Tell whether *place*, with a name or without, is one directory of this machine."""
    named = _NAMED.fullmatch(place)
    return _is_directory(place) or (named is not None and _is_directory(named[2]))


def _is_directory(place: str) -> bool:
    return os.path.isdir(place)  # noqa: PTH112  # Path raises where a text can be no path


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
        if not table.has_bodies:
            told = " and ".join(each.name for each in TABLES.values() if each.has_bodies)
            raise OptionError(f"option body: table {table.name} has none; {told} have")
        asked += tuple(name for name in BODY_COLUMNS if name not in asked)
    return asked


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"option {name}: {text!r} is neither true nor false")
    return text.lower() == "true"


def parse_destinations(text: str) -> tuple[Pattern, ...]:
    """Return the names and wildcards in *text*, commas between; raises OptionError."""
    return tuple(map(_pattern, _list(text)))


def _destinations(given: Mapping[str, str], table: Table) -> tuple[Pattern, ...]:
    patterns = parse_destinations(given.get("destination", ""))
    if patterns and not table.has_destinations:
        raise OptionError(f"option destination: rows of {table.name} are of all destinations")
    return patterns


def _pattern(text: str) -> Pattern:
    is_stream = text.startswith(STREAM_SCHEME)
    try:
        destination = parse_destination(text.removeprefix(STREAM_SCHEME))
    except ValueError as error:
        raise OptionError(f"option destination: {error}") from None
    named = text.partition("://")[0] in SCHEMES and "://" in text
    return Pattern(destination.kind if named else None, destination.path, is_stream)


def _time(name: str, text: str) -> int:
    """Return *text*, an ISO 8601 time (UTC unless it says otherwise) or ms, in ms; 0: no bound.

    What is before 1970 is before every record.
    """
    if not text:
        return 0
    example = "2026-01-31T12:00:00Z"
    if text.isdecimal():
        milliseconds = int(text[:DIGITS_MAX])
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise OptionError(
                f"option {name}: {text!r} is neither an ISO 8601 time such as {example} "
                "nor milliseconds since 1970"
            ) from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        milliseconds = round(moment.timestamp() * 1000)
    if milliseconds > LATEST // 1000:
        raise OptionError(
            f"option {name}: {text!r} is after the year 9999: it takes an ISO 8601 time such as "
            f"{example}, or milliseconds since 1970"
        )
    return max(milliseconds, 1 if name == "until" else 0)


def _number(given: Mapping[str, str], name: str, usual: int, unit: str) -> int:
    text = given.get(name, str(usual))
    if not text.isdecimal():
        raise OptionError(f"option {name}: {text!r} is not a number of {unit}")
    number = int(text[:DIGITS_MAX])
    if number > NUMBER_MAX:
        raise OptionError(f"option {name}: {text!r} is more than {NUMBER_MAX} {unit}, the most")
    return number
