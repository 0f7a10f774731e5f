"""The data source `lockkeeper`, where Spark finds it by itself.

Spark looks for packages called `pyspark_…` and registers the `DefaultSource` of each, so that after
an installation alone `spark.read.format("lockkeeper")` works. It imports
all of them for whatever Python data source somebody asks for: so this one imports nothing more.

Comes in: options of a reader. Never here: an import of the analytics before one is used.
"""

from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader


class DefaultSource(DataSource):  # type: ignore[misc]  # pyspark is not typed here
    """KahaDB journals; see `lockkeeper_analytics.spark.datasource`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "lockkeeper"

    def schema(self) -> str:
        """Return the columns asked for; raises OptionError."""
        return str(self._source().schema())

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader; raises OptionError."""
        return self._source().reader(schema)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return the reader of a stream; raises OptionError."""
        return self._source().streamReader(schema)

    def _source(self) -> DataSource:
        from lockkeeper_analytics.spark.datasource import LockkeeperDataSource

        return LockkeeperDataSource(self.options)
