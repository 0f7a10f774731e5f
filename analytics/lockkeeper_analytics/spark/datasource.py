"""The Spark data source `lockkeeper`: journal directories in, rows of a table out.

    spark.dataSource.register(LockkeeperDataSource)
    spark.read.format("lockkeeper").option("columns", "kind,destination").load("data/kahadb")

Options: path (directories, commas between), table (records, messages, acks, statistics, events,
subscriptions, destinations, files, transactions, body_fields, stream_messages, stream_offsets or
declared_streams), columns, destination (names or wildcards, commas between), since and until
(ISO 8601 or ms), body (true: decode bodies too), bodyBytesMax, corrupt (fail or skip), pushdown
(true: filters spare reading). docs/analytics.md lists the columns.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.spark.pushdown import narrowed
from lockkeeper_analytics.spark.stream import JournalStreamReader
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

FORMAT = "lockkeeper"


class LockkeeperDataSource(DataSource):  # type: ignore[misc]  # pyspark is not typed here
    """KahaDB journals, Lockkeeper's or ActiveMQ's, also of a running broker; batch or stream."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns asked for; raises OptionError."""
        options = parse_options(self.options)
        return TABLES[options.table].ddl(options.columns)

    def reader(self, schema: Any) -> "JournalReader":
        """Return the reader; raises OptionError."""
        return JournalReader(parse_options(self.options))

    def streamReader(self, schema: Any) -> JournalStreamReader:
        """Return the reader of a stream; raises OptionError."""
        return JournalStreamReader(parse_options(self.options))


class JournalReader(DataSourceReader):  # type: ignore[misc]  # pyspark is not typed here
    """Plans pieces on the driver and reads each where Spark wants it read."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    @property
    def pushFilters(self) -> "_PushFilters":
        """What Spark hands the query's filters to, where it is told to."""
        return _PushFilters(self)

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each part of a file, or each directory; raises NoJournalError."""
        pieces = TABLES[self.options.table].plan(self.options)
        return [InputPartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one piece as Arrow batches."""
        return TABLES[self.options.table].rows(partition.value, self.options)


class _PushFilters:
    """Narrows a reader's options by filters, and leaves all filters to Spark as well.

    Only where the option `pushdown` says so: Spark 4.3 keeps what a Python source made of the
    filters with the loaded frame, so that of two uses of the frame in one query, such as a union,
    both would read what the filters of one of them leave.

    Where `spark.sql.python.filterPushdown.enabled` is off, Spark refuses a reader with a method
    `pushFilters` of its own. This one works there as it does elsewhere, so it says that it is
    the inherited one: nothing relies on it.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: JournalReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        """Return all *filters*: Spark is to apply them too."""
        if self._reader.options.pushdown:
            self._reader.options = narrowed(self._reader.options, filters)
        return filters
