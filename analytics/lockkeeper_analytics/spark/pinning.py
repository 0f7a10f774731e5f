"""Pinning journals for a run whose executors may read a piece of them more than once."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from lockkeeper_analytics.reading.partitions import seen_of
from lockkeeper_analytics.reading.pins import Pins, gone, may_grow, sound_end

_DDL = "path string, size bigint"


def pinned(session: SparkSession, directories: Iterable[str]) -> Pins:
    """Return the files of *directories* as they are now.

    The driver lists them, executors look for the ends of those that may grow; files of a
    history do not. Raises
    NoJournalError, and Spark's error with a GoneError in it when a file goes meanwhile.
    """
    listed = {directory: seen_of(directory) for directory in directories}
    growing = [(file.path, 0) for seen in listed.values() for file in may_grow(seen.files)]
    asked = session.createDataFrame(growing, _DDL).repartition(len(growing) or 1)
    ends = {row["path"]: row["size"] for row in asked.mapInArrow(_with_ends, _DDL).collect()}
    return {
        directory: seen._replace(
            files=tuple(file._replace(size=ends.get(file.path, file.size)) for file in seen.files)
        )
        for directory, seen in listed.items()
    }


def _with_ends(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        paths = batch.column("path").to_pylist()
        ends = pa.array([_end_of(path) for path in paths], pa.int64())
        yield pa.RecordBatch.from_arrays([batch.column("path"), ends], names=["path", "size"])


def _end_of(path: str) -> int:
    try:
        return sound_end(path)
    except FileNotFoundError:
        raise gone(path) from None
