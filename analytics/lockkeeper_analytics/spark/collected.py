"""The rows of reports in bounded memory: the first of them here, all of them in files."""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

ROWS_MAX = 100_000
"""So many rows of a report come into this process's memory, its page and its JSON."""


class Collected(NamedTuple):
    """The first ROWS_MAX rows of a report, and how many it has."""

    first: pa.Table
    rows: int


def collect(frames: Mapping[str, DataFrame], out: Path) -> dict[str, Collected]:
    """Write all rows of each frame to NAME.parquet in *out*, and return the first of them.

    One query of Spark answers all *frames*, which are known by their names.
    """
    first = {name: frame.limit(ROWS_MAX + 1) for name, frame in frames.items()}
    return {
        name: _written(frames[name], found, out / f"{name}.parquet")
        for name, found in gathered(first).items()
    }


def gathered(frames: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """Return all rows of each frame; one query reads once what several of them read.

    Each frame has a column, whose values are lists of one row; in the rows of others it is null.
    """
    rows = [frame.select(F.array(F.struct("*")).alias(name)) for name, frame in frames.items()]
    every = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows)
    found = every.toArrow()
    return {name: pa.Table.from_struct_array(pc.list_flatten(found[name])) for name in frames}


def _written(frame: DataFrame, found: pa.Table, path: Path) -> Collected:
    """Write all rows of *frame* to *path*; *found* are the first ROWS_MAX, and one more."""
    if found.num_rows <= ROWS_MAX:
        pq.write_table(found, path)
        return Collected(found, found.num_rows)
    count = 0
    with pq.ParquetWriter(path, found.schema) as writer:
        # One partition after the other, so that memory holds no more than two.
        for row in frame.mapInArrow(_packed, "batch binary").toLocalIterator():
            batch = pa.ipc.open_stream(row["batch"]).read_all().cast(found.schema)
            writer.write_table(batch)
            count += batch.num_rows
    return Collected(found.slice(0, ROWS_MAX), count)


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each batch as one row of bytes, which is how Arrow's types come through unchanged."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packed], names=["batch"])
