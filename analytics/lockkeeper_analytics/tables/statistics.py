"""`statistics`: one row for each destination of each statistics line of the flight recorder.

The counters are the recorder's own: they begin at 0 with each master.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from lockkeeper.journal.counters import COUNTERS
from lockkeeper.message.destination import SCHEMES, Destination
from lockkeeper_analytics.reading.asked import ReadOptions, is_asked_for
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.recorder import STATISTICS
from lockkeeper_analytics.reading.schema import INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables import records
from lockkeeper_analytics.tables.lines import Line, number, numbers, read_lines, text
from lockkeeper_analytics.tables.shape import NUMBERS, Getter, Table, Type, fields


class _Row(NamedTuple):
    """One destination of a line."""

    line: Line
    kind: str
    name: str
    figures: dict[str, Any]


def _figure(name: str, key: str, meaning: str) -> tuple[str, Type, Getter, str]:
    return name, LONG, lambda row: number(row.figures.get(key)), meaning


def _latency(key: str) -> Getter:
    def get(row: _Row) -> list[int] | None:
        latency = row.figures.get("latency")
        return numbers(latency.get(key)) if isinstance(latency, dict) else None

    return get


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.line.directory, "the journal directory, as it was named"),
    ("at", TIME, lambda row: row.line.at, "when the line was written"),
    (
        "broker_name",
        TEXT,
        lambda row: text(row.line.told.get("broker")),
        "name of the broker, as it says",
    ),
    ("destination_kind", TEXT, lambda row: row.kind, "`queue`, `topic`, …"),
    ("destination", TEXT, lambda row: row.name, "name of the destination"),
    *(_figure(counter.name, counter.json_name, counter.meaning) for counter in COUNTERS),
    _figure("depth", "depth", "messages there at that time"),
    _figure("consumers", "consumers", "consumers at that time"),
    ("latency_le", NUMBERS, _latency("le"), "upper bounds of classes of latency, in ms"),
    ("latency_count", NUMBERS, _latency("n"), "acknowledged messages in each class"),
    ("file_id", INT, lambda row: row.line.file_id, "number of the data file"),
    ("offset", LONG, lambda row: row.line.offset, "where the record begins there, in bytes"),
)


def read(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the statistics in *part*."""
    yield from told_by(read_lines(part, STATISTICS, options), options)


def told_by(lines: Iterable[Line], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the statistics of *lines*."""
    yield from _FIELDS.batches(_rows(lines, options), options.columns)


def _rows(lines: Iterable[Line], options: ReadOptions) -> Iterator[_Row]:
    for line in lines:
        several = line.told.get("destinations")
        for url, figures in several.items() if isinstance(several, dict) else ():
            kind, _, name = url.partition("://")
            if kind not in SCHEMES or not isinstance(figures, dict):
                continue
            if is_asked_for(Destination(SCHEMES[kind], name), options.destinations):
                yield _Row(line, kind, name, figures)


TABLE = Table(
    "statistics",
    "the figures of destinations over time, by the flight recorder",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    records.plan_files,
    read,
    lost=lambda _lost: {},
    is_pinnable=True,
)
