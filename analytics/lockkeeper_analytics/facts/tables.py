"""Tables that views read, as data frames: records as they are given, and what is made of these.

The rows are made by the code of the tables, so that they are those of `spark.read` and of SQL.
"""

from collections.abc import Iterator, Set

import pyarrow as pa
from pyspark.sql import DataFrame

from lockkeeper_analytics.facts.frames import Frames
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.recorder import EVENT, STATISTICS
from lockkeeper_analytics.reading.schema import BROKER
from lockkeeper_analytics.tables import TABLES, events, statistics
from lockkeeper_analytics.tables.data_files import DATA_FILES
from lockkeeper_analytics.tables.lines import LINE_COLUMNS, lines_in

_RECORDED = {"statistics": (STATISTICS, statistics.told_by), "events": (EVENT, events.told_by)}
"""Tables of the flight recorder: which lines tell them, and how."""


def frames_of(records: DataFrame, cut: Set[str] = frozenset()) -> Frames:
    """Return the tables made of *records* as frames, and the views over them; see Frames."""
    recorded = {name: _recorded(records, name) for name in _RECORDED}
    known = {"records": records, "data_files": _listed(records), **recorded}
    if BROKER in records.columns:
        known["journals"] = records.select("directory", BROKER).distinct()
    return Frames(records.sparkSession, known, cut)


def _recorded(records: DataFrame, name: str) -> DataFrame:
    kind, told_by = _RECORDED[name]
    options = _whole(name, TABLES[name].default_columns)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by(lines_in(batches, kind), options)

    lines = records.where("recorder IS NOT NULL").select(*LINE_COLUMNS)
    return lines.mapInArrow(rows, TABLES[name].ddl(options.columns))


def _listed(records: DataFrame) -> DataFrame:
    """Return the data files as they are when it is asked for, of the directories with records."""
    columns = tuple(name for name in DATA_FILES.columns if name != BROKER)
    options = _whole(DATA_FILES.name, columns)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for directory in batch.column("directory").to_pylist():
                yield from DATA_FILES.rows(directory, options)

    directories = records.select("directory").distinct()
    return directories.mapInArrow(rows, DATA_FILES.ddl(columns))


def _whole(table: str, columns: tuple[str, ...]) -> ReadOptions:
    return ReadOptions((), table, tuple(name for name in columns if name != BROKER))
