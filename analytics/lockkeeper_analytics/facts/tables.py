"""Tables that views read, as data frames: records as they are given, and what is made of these.

The rows are made by the code of the tables, so that they are those of `spark.read` and of SQL.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lockkeeper_analytics.facts.frames import Frames, kept_frame
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.pins import Pins
from lockkeeper_analytics.reading.recorder import EVENT, STATISTICS
from lockkeeper_analytics.reading.schema import BROKER
from lockkeeper_analytics.spark.planned import planned
from lockkeeper_analytics.tables import (
    TABLES,
    body_fields,
    declared_streams,
    events,
    statistics,
    stream_offsets,
)
from lockkeeper_analytics.tables.checked_files import (
    CHECKED_FILES,
    Unchecked,
    arrow_rows,
    checked,
    unchecked,
)
from lockkeeper_analytics.tables.data_files import DATA_FILES, JOURNALS
from lockkeeper_analytics.tables.lines import LINE_COLUMNS, Line, lines_in
from lockkeeper_analytics.tables.options import parse_options
from lockkeeper_analytics.tables.stream_states import STATE_COLUMNS, State, states_in

Batches = Iterator[pa.RecordBatch]


class Recorded(NamedTuple):
    """A table that a column of texts in records tells: what else it reads of them, and how."""

    text: str
    columns: tuple[str, ...]
    told_by: Callable[[Batches, ReadOptions], Batches]


def _of_lines(kind: str, told_by: Callable[[Iterable[Line], ReadOptions], Batches]) -> Recorded:
    return Recorded(
        "recorder",
        LINE_COLUMNS,
        lambda batches, options: told_by(lines_in(batches, kind), options),
    )


def _of_states(told_by: Callable[[Iterable[State], ReadOptions], Batches]) -> Recorded:
    return Recorded(
        "stream_state",
        STATE_COLUMNS,
        lambda batches, options: told_by(states_in(batches), options),
    )


RECORDED = {
    "statistics": _of_lines(STATISTICS, statistics.told_by),
    "events": _of_lines(EVENT, events.told_by),
    "stream_offsets": _of_states(stream_offsets.told_by),
    "declared_streams": _of_states(declared_streams.told_by),
}
"""Tables of the flight recorder, and of what streams keep."""


_UNCHECKED = "directory string, file_id int, path string, following string"

Listed = Mapping[str, DataFrame]
"""Tables of what directories held when they were listed, by name."""


class Source(NamedTuple):
    """Records of journals, and what was listed of their directories before any record was read.

    A broker goes on meanwhile: of a file that was not the last one when it was listed, all records
    are read. One that comes later is in no list. Of what the directories are `pinned` to, if
    anything, nothing else is read. `options` of the data source are those of the records, and those
    of bodies. With `is_small` everything is worked out in one piece.
    """

    records: DataFrame
    listed: Listed
    directories: Sequence[str]
    pinned: Pins | None = None
    options: Mapping[str, str] = {}
    is_small: bool = False


def listed(session: SparkSession, directories: Sequence[str], skip_corrupt: bool = False) -> Listed:
    """Return what *directories* hold now; executors look at what is in the files when asked to.

    Raises OptionError, NoJournalError.
    """
    asked = parse_options({"path": ",".join(directories)})
    there = {}
    for table in (DATA_FILES, JOURNALS):
        columns = table.default_columns
        batches = table.batches(replace(asked, columns=columns))
        told = pa.Table.from_batches(batches, table.arrow(columns))
        there[table.name] = session.createDataFrame(told)
    files = [each for directory in asked.directories for each in unchecked(directory)]
    there[CHECKED_FILES.name] = _checked(session, files, skip_corrupt)
    return there


def _checked(session: SparkSession, files: Sequence[Unchecked], skip_corrupt: bool) -> DataFrame:
    columns = tuple(name for name in CHECKED_FILES.columns if name != BROKER)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            some = [Unchecked(**row) for row in batch.to_pylist()]
            yield from arrow_rows(checked(some, skip_corrupt), columns)

    told = session.createDataFrame(files, _UNCHECKED)
    return told.mapInArrow(rows, CHECKED_FILES.ddl(columns))


def in_one_piece(source: Source) -> Source:
    """Return *source* in partitions of its own: what is made of one needs no shuffle."""
    there = {name: frame.coalesce(1) for name, frame in source.listed.items()}
    return source._replace(records=source.records.coalesce(1), listed=there, is_small=True)


def frames_of(source: Source, cut: Set[str] = frozenset()) -> Frames:
    """Return the tables of *source* as frames, and the views over them; see Frames."""
    records = source.records
    recorded = {name: _recorded(records, name) for name in RECORDED}
    recorded |= {name: kept_frame(recorded[name]) for name in recorded.keys() & cut}
    known = {"records": records, **source.listed, **recorded}
    later = {body_fields.TABLE.name: lambda: _body_fields(source)}
    return Frames(records.sparkSession, known, cut, later)


def _body_fields(source: Source) -> DataFrame:
    """Return the fields of bodies, for which journals are read once more: records have none."""
    path = ",".join(source.directories)
    asked = {**source.options, "table": body_fields.TABLE.name, "path": path}
    fields = planned(source.records.sparkSession, parse_options(asked))
    return kept_frame(fields.coalesce(1) if source.is_small else fields)


def _recorded(records: DataFrame, name: str) -> DataFrame:
    recorded = RECORDED[name]
    options = _whole(name, TABLES[name].default_columns)

    def rows(batches: Batches) -> Batches:
        yield from recorded.told_by(batches, options)

    lines = records.where(f"{recorded.text} IS NOT NULL").select(*recorded.columns)
    return lines.mapInArrow(rows, TABLES[name].ddl(options.columns))


def _whole(table: str, columns: tuple[str, ...]) -> ReadOptions:
    return ReadOptions((), table, tuple(name for name in columns if name != BROKER))
