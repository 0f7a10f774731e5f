"""Tables that views read, as data frames: records as they are given, and what is made of these.

The rows are made by the code of the tables, so that they are those of `spark.read` and of SQL.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lockkeeper_analytics.facts.frames import Frames
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.recorder import EVENT, STATISTICS
from lockkeeper_analytics.reading.schema import BROKER
from lockkeeper_analytics.tables import TABLES, events, statistics
from lockkeeper_analytics.tables.data_files import DATA_FILES, JOURNALS
from lockkeeper_analytics.tables.lines import LINE_COLUMNS, lines_in
from lockkeeper_analytics.tables.options import parse_options

_RECORDED = {"statistics": (STATISTICS, statistics.told_by), "events": (EVENT, events.told_by)}
"""Tables of the flight recorder: which lines tell them, and how."""


Listed = Mapping[str, DataFrame]
"""Tables of what directories held when they were listed, by name."""


class Source(NamedTuple):
    """Records of journals, and what was listed of their directories before any record was read.

    A broker goes on meanwhile: of a file that was not the last one when it was listed, all records
    are read. One that comes later is in no list.
    """

    records: DataFrame
    listed: Listed


def listed(session: SparkSession, directories: Sequence[str]) -> Listed:
    """Return what *directories* hold now. Raises OptionError, NoJournalError."""
    path = ",".join(directories)
    return {
        table.name: session.createDataFrame(pa.Table.from_batches(table.batches(options)))
        for table in (DATA_FILES, JOURNALS)
        for options in [replace(parse_options({"path": path}), columns=table.default_columns)]
    }


def frames_of(source: Source, cut: Set[str] = frozenset()) -> Frames:
    """Return the tables of *source* as frames, and the views over them; see Frames."""
    records = source.records
    recorded = {name: _recorded(records, name) for name in _RECORDED}
    known = {"records": records, **source.listed, **recorded}
    return Frames(records.sparkSession, known, cut)


def _recorded(records: DataFrame, name: str) -> DataFrame:
    kind, told_by = _RECORDED[name]
    options = _whole(name, TABLES[name].default_columns)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by(lines_in(batches, kind), options)

    lines = records.where("recorder IS NOT NULL").select(*LINE_COLUMNS)
    return lines.mapInArrow(rows, TABLES[name].ddl(options.columns))


def _whole(table: str, columns: tuple[str, ...]) -> ReadOptions:
    return ReadOptions((), table, tuple(name for name in columns if name != BROKER))
