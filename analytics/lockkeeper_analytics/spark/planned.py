"""Frames of tables whose pieces are planned here, and read where Spark wants them read.

They have the rows of `spark.read.format("lockkeeper")`. For that one, Spark starts Python processes
of their own that tell it a schema and a plan: seconds before anything is read.
"""

import pickle
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.tables import TABLES


def planned(session: SparkSession, options: ReadOptions) -> DataFrame:
    """Return the rows that *options* ask for; which files there are is looked up now.

    Each piece is a partition. Raises NoJournalError.
    """
    table = TABLES[options.table]
    # All of them go to every task, which unpickles its own alone.
    pieces = [pickle.dumps(each) for each in table.plan(options)]

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from TABLES[options.table].rows(pickle.loads(pieces[number]), options)

    numbers = session.range(0, len(pieces), 1, max(1, len(pieces)))
    return numbers.mapInArrow(rows, table.ddl(options.columns))
