"""Spark tells of streams what DuckDB does: reports, tables, and micro-batches."""

import pytest
from journal_maker import rows_of
from report_rows import assert_same
from streams_journal import write_one_anew, write_streams

from lockkeeper_analytics.facts.journal import journal_of, read_journals
from lockkeeper_analytics.frames import table
from lockkeeper_analytics.narrowing import Narrowing
from lockkeeper_analytics.reports import GROUPS, REPORTS
from lockkeeper_analytics.spark.questions import answers
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.tables.options import parse_destinations

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = ("stream_messages", "stream_offsets", "declared_streams")
ROWS_MAX = 10_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return str(write_streams(tmp_path_factory.mktemp("spark") / "kahadb").directory)


@pytest.mark.parametrize("destination", ["", "orders"])
def test_reports_of_streams_are_those_of_sql(spark, directory, destination):
    narrowing = Narrowing(parse_destinations(destination))
    journal = journal_of(read_journals(spark, [directory]), narrowing, is_small=True)
    names = [*(each.name for each in GROUPS["Streams"]), "backlog"]
    questions = {name: journal.question(name) for name in names}
    told = answers(journal.frames.session, questions, ROWS_MAX)
    for name in names:
        options = {"path": directory, "destination": destination}
        batches = list(query.run(REPORTS[name].sql, options))
        assert batches[0].schema.names == told[name].schema.names
        found = [row for batch in batches for row in batch.to_pylist()]
        assert_same(found, told[name].to_pylist())
        assert bool(found) is (name != "backlog" or not destination), name


def test_a_stream_that_is_declared_anew_is_told_as_by_sql(spark, tmp_path):
    directory = str(write_one_anew(tmp_path, 1).directory)
    found = journal_of(read_journals(spark, [directory])).report("lag_over_time").toArrow()
    batches = query.run(REPORTS["lag_over_time"].sql, {"path": directory})
    assert_same([row for each in batches for row in each.to_pylist()], found.to_pylist())
    assert found.to_pylist()[-1]["oldest_ms"] == 7_000


@pytest.mark.parametrize("name", TABLES)
def test_tables_have_the_rows_of_the_data_source(spark, directory, name):
    found = table(spark, name, directory).toArrow().to_pylist()
    expected = rows_of(directory, table=name)
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_messages_come_in_micro_batches(spark, directory, tmp_path):
    columns = "stream,partition,offset,location"
    reader = spark.readStream.format("lockkeeper").option("table", "stream_messages")
    frame = reader.option("columns", columns).load(directory)
    writer = frame.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(str(tmp_path / "rows")).awaitTermination(120)
    found = [row.asDict() for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
    expected = rows_of(directory, table="stream_messages", columns=columns)
    assert sorted(found, key=repr) == sorted(expected, key=repr)
