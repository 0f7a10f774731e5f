"""Filter of a history's rows: the options `destination` and `since`, and the rows' life.

A history is replayed from its first record on, whatever is asked for: whether a message counts
depends on what stands before it. `until` ends the replay, so that everything is told as of then.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from lockkeeper.message.destination import SCHEMES, Destination
from lockkeeper_analytics.reading.asked import ReadOptions, is_asked_for
from lockkeeper_analytics.reading.partitions import journal_files
from lockkeeper_analytics.tables.entries import Place, read_entries
from lockkeeper_analytics.tables.history import History
from lockkeeper_analytics.tables.shape import MICROSECONDS, Fields, Getter

Value = TypeVar("Value")


class Told(NamedTuple):
    """A row of a history: the directory, and what the row is about."""

    directory: str
    about: Any


class RowFilter:
    """Tells which rows are asked for."""

    def __init__(self, options: ReadOptions) -> None:
        self._patterns = options.destinations
        self._since = options.since * MICROSECONDS
        self._kept: dict[Place, bool] = {}

    def keeps(self, place: Place, latest: int | None = None) -> bool:
        """Tell whether a row about *place*, over at *latest* (microseconds), is asked for.

        None: it is not over, or it is not known when it was.
        """
        if latest is not None and latest < self._since:
            return False
        kept = self._kept.get(place)
        if kept is None:
            kind, name = place
            known = kind is not None and name is not None
            kept = self._kept[place] = not self._patterns or (
                known and is_asked_for(Destination(SCHEMES[kind or ""], name or ""), self._patterns)
            )
        return kept


def plan_directories(options: ReadOptions) -> Sequence[str]:
    """Return one piece for each directory. Raises NoJournalError."""
    for directory in options.directories:
        journal_files(directory)
    return options.directories


def whole(
    directory: str, options: ReadOptions, wanted: Sequence[str], *keeps: str
) -> tuple[History, RowFilter]:
    """Return the history of *directory* after its last record, and what is asked for of it."""
    history = History(*keeps)
    for _ in history.replay(read_entries(directory, options, wanted)):
        pass
    return history, RowFilter(options)


def batches_of(
    directory: str, values: Iterator[Value], fields: Fields, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """Yield *values* as rows of *directory*."""
    return fields.batches((Told(directory, value) for value in values), options.columns)


def of(get: Getter) -> Getter:
    """Return what asks *get* of what a row is about."""
    return lambda row: get(row.about)


def milliseconds_between(start: int | None, end: int | None) -> int | None:
    """Return the ms from *start* to *end* (microseconds), not below 0; None: not known."""
    return None if start is None or end is None else max(0, end - start) // MICROSECONDS
