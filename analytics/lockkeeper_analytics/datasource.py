"""The Spark data source `lockkeeper`: journal directories in, one row for each record out.

    spark.dataSource.register(LockkeeperDataSource)
    spark.read.format("lockkeeper").option("columns", "kind,destination").load("data/kahadb")

Options: path (directories, commas between), columns, destination (names or wildcards, commas
between), since (ISO 8601 or ms), body (true: decode bodies too), bodyBytesMax, corrupt (fail or
skip). docs/analytics.md lists the columns.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from lockkeeper_analytics.options import ReadOptions, parse_options
from lockkeeper_analytics.partitions import Part, plan_parts
from lockkeeper_analytics.rows import read_part
from lockkeeper_analytics.schema import ddl_of

FORMAT = "lockkeeper"


class LockkeeperDataSource(DataSource):  # type: ignore[misc]  # pyspark is not typed here
    """Batch reads of KahaDB journals, Lockkeeper's or ActiveMQ's, also of a running broker."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns asked for; raises OptionError."""
        return ddl_of(parse_options(self.options).columns)

    def reader(self, schema: Any) -> "JournalReader":
        """Return the reader; raises OptionError."""
        return JournalReader(parse_options(self.options))


class JournalReader(DataSourceReader):  # type: ignore[misc]  # pyspark is not typed here
    """Plans parts on the driver and reads each where Spark wants it read."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each part of a file; raises NoJournalError."""
        parts = plan_parts(self.options.directories, self.options.since)
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part as Arrow batches."""
        part: Part = partition.value
        return read_part(part, self.options)
