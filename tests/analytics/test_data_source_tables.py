"""The data source's option `table`, as Spark uses it, without a Spark running."""

import pickle

import pyarrow as pa
import pytest
from journal_maker import JournalMaker
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lockkeeper_analytics.errors import NoJournalError, OptionError
from lockkeeper_analytics.spark.datasource import LockkeeperDataSource
from lockkeeper_analytics.tables import TABLES


@pytest.fixture
def maker(tmp_path):
    """Two files of one directory."""
    return JournalMaker(tmp_path / "journal").add(1, 0).flush().roll().remove(1).clock(9).flush()


def source(directory, **options):
    return LockkeeperDataSource({"path": str(directory), **options})


@pytest.mark.parametrize("name", TABLES)
def test_the_schema_is_that_of_the_table_and_of_its_batches(maker, name):
    table = TABLES[name]
    asked = source(maker.directory, table=name)
    columns = [part.split("` ")[0].strip("` ") for part in asked.schema().split(", `")]
    assert columns == list(table.default_columns)
    reader = pickle.loads(pickle.dumps(asked.reader(None)))
    for partition in reader.partitions():
        for batch in reader.read(pickle.loads(pickle.dumps(partition))):
            assert batch.schema == table.arrow(columns)
            assert isinstance(batch, pa.RecordBatch)


def test_a_table_is_cut_where_its_rows_do_not_depend_on_each_other(maker):
    def partitions(name):
        return len(source(maker.directory, table=name).reader(None).partitions())

    assert [partitions(name) for name in ("records", "statistics", "events")] == [2, 2, 2]
    assert [partitions(name) for name in ("messages", "acks", "files")] == [1, 1, 1]


def test_only_the_columns_asked_for_are_there(maker):
    asked = source(maker.directory, table="messages", columns="outcome,message_id")
    assert asked.schema() == "`outcome` string, `message_id` string"


def test_what_is_wrong_is_told_before_anything_is_read(maker, tmp_path):
    with pytest.raises(OptionError, match="unknown table"):
        source(maker.directory, table="mesages").schema()
    with pytest.raises(NoJournalError, match="no such directory"):
        source(tmp_path / "nowhere", table="messages").reader(None).partitions()


TYPES = {
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "boolean": BooleanType(),
    "timestamp": TimestampType(),
    "binary": BinaryType(),
    "map<string,string>": MapType(StringType(), StringType()),
    "map<string,bigint>": MapType(StringType(), LongType()),
    "array<string>": ArrayType(StringType()),
    "array<bigint>": ArrayType(LongType()),
}


@pytest.mark.parametrize("name", TABLES)
def test_batches_have_the_arrow_types_that_spark_insists_on(name):
    columns = TABLES[name].columns.values()
    declared = StructType([StructField(each.name, TYPES[each.ddl]) for each in columns])
    wanted = to_arrow_schema(declared, timezone="UTC")
    assert wanted.equals(TABLES[name].arrow([each.name for each in columns]))
