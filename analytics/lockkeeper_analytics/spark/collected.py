"""The rows of reports in bounded memory: the first of them here, all of them in files."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lockkeeper_analytics.spark.questions import Question, answers

ROWS_MAX = 100_000
"""So many rows of a report come into this process's memory, its page and its JSON."""


class Collected(NamedTuple):
    """The first ROWS_MAX rows of a report, and how many it has."""

    first: pa.Table
    rows: int


def collect(
    session: SparkSession, questions: Mapping[str, Question], out: Path
) -> dict[str, Collected]:
    """Write all rows that answer each question to NAME.parquet in *out*; return the first of them.

    One query of Spark answers all *questions*, which are known by their names.
    """
    return {
        name: _written(session, questions[name], found, out / f"{name}.parquet")
        for name, found in answers(session, questions, ROWS_MAX + 1).items()
    }


def _written(session: SparkSession, question: Question, found: pa.Table, path: Path) -> Collected:
    """Write all rows of the answer to *path*; *found* are the first ROWS_MAX, and one more."""
    if found.num_rows <= ROWS_MAX:
        pq.write_table(found, path)
        return Collected(found, found.num_rows)
    count = 0
    with pq.ParquetWriter(path, found.schema) as writer:
        # One partition after the other, so that memory holds no more than two.
        rows = question.asked(session).mapInArrow(_packed, "batch binary")
        for row in rows.toLocalIterator():
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
