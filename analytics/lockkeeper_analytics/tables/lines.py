"""The flight recorder's lines of one part of a journal, with their places."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from lockkeeper_analytics.reading.arrays import microseconds
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.recorder import PREFIX, parse_line
from lockkeeper_analytics.reading.rows import read_part

NUMBER_MAX = 2**53
LINE_COLUMNS = ("directory", "file_id", "offset", "recorder")


class Line(NamedTuple):
    """One line; `told` is its JSON."""

    directory: str
    file_id: int
    offset: int
    told: dict[str, Any]

    @property
    def at(self) -> int | None:
        """When it says that it was, in microseconds since the epoch."""
        at = number(self.told.get("at"))
        return None if at is None else microseconds(at)


def read_lines(part: Part, kind: str, options: ReadOptions) -> Iterator[Line]:
    """Yield the lines of a *kind* in *part* between the options `since` and `until`."""
    since, until = options.since, options.latest
    asked = replace(options, columns=LINE_COLUMNS, destinations=(), since=0, until=0, at_most=0)
    for line in lines_in(read_part(part, asked), kind):
        at = number(line.told.get("at")) or 0
        if at >= since and not (until and at > until):
            yield line


def lines_in(batches: Iterable[pa.RecordBatch], kind: str) -> Iterator[Line]:
    """Yield the lines of a *kind* in *batches* of records, which have LINE_COLUMNS."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in LINE_COLUMNS)
        for directory, file_id, offset, text in zip(*columns, strict=True):
            told = parse_line(PREFIX + text.encode()) if text is not None else None
            if told is not None and told.get("t") == kind:
                yield Line(directory, file_id, offset, told)


def number(value: object) -> int | None:
    """Return *value* if it is a whole number that JSON can hold exactly."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if abs(value) <= NUMBER_MAX else None


def text(value: object) -> str | None:
    """Return *value* if it is a text."""
    return value if isinstance(value, str) else None


def numbers(value: object) -> list[int] | None:
    """Return *value* if it is a list of whole numbers."""
    is_list = isinstance(value, list) and all(number(each) is not None for each in value)
    return value if is_list else None  # type: ignore[return-value]  # the line above has looked
