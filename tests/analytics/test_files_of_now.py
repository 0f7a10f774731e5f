"""What is said to go is not needed: by a broker that goes on, by what came after `until`."""

import pytest
from journal_maker import START, JournalMaker, rows_of

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper_analytics.facts.journal import journal_of, read_journals
from lockkeeper_analytics.facts.shuffled import read_table
from lockkeeper_analytics.narrowing import PRESENT
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.tables import records
from lockkeeper_analytics.tables.base import BASE

GARBAGE = "SELECT file FROM garbage_report WHERE freed"
FILES = "SELECT file FROM files WHERE freed_by_cleanup"

spark_test = pytest.mark.spark
slow = pytest.mark.slow


@pytest.fixture
def maker(tmp_path):
    """A file whose one message is done with; it is written to."""
    return JournalMaker(tmp_path / "journal").add(1, 0).remove(1).clock(1).flush()


def goes_on(maker):
    """Write a live message into the file, and begin the next one."""
    maker.add(2, 100).clock(100).flush().roll().add(3, 200).clock(200).flush()


def asked(text, directory, **options):
    return [
        row["file"]
        for batch in query.run(text, {"path": str(directory), **options})
        for row in batch.to_pylist()
    ]


def freed(frame):
    """Return the files that go, by the report or by the table."""
    rows = frame.toArrow().to_pylist()
    return sorted(row["file"] for row in rows if row.get("freed") or row.get("freed_by_cleanup"))


@pytest.mark.parametrize("text", [GARBAGE, FILES])
def test_a_file_that_is_written_to_while_records_are_read_stays(maker, monkeypatch, text):
    """By DuckDB, for which the broker goes on once the records are read."""
    read = records.TABLE.read

    def then_more(piece, options):
        yield from read(piece, options)
        if maker.file_id == 1:
            goes_on(maker)

    monkeypatch.setitem(BASE, "records", records.TABLE._replace(read=then_more))
    assert asked(text, maker.directory) == []
    assert maker.file_id == 2
    assert asked(text, maker.directory) == []


@spark_test
@slow
@pytest.mark.parametrize("is_pinned", [False, True])
def test_a_file_that_is_written_to_while_spark_works_stays(spark, maker, is_pinned):
    source = read_journals(spark, [str(maker.directory)], is_pinned=is_pinned)
    read = source._replace(records=source.records.localCheckpoint())
    goes_on(maker)
    assert freed(journal_of(read).report("garbage")) == []


@spark_test
@slow
def test_a_table_of_spark_frees_no_file_that_was_written_to_meanwhile(spark, maker):
    files = read_table(spark, "files", [str(maker.directory)])
    goes_on(maker)
    rows = {row["file"]: row for row in files.toArrow().to_pylist()}
    assert rows.keys() == {"db-1.log"}
    assert not rows["db-1.log"]["freed_by_cleanup"]


@pytest.mark.parametrize("until", [str(START - 1000), str(START + 50)])
def test_files_are_told_as_they_are_now_until_whenever(maker, until):
    """Then nothing in the first file was live, or there was nothing at all."""
    goes_on(maker)
    now = rows_of(maker.directory, table="files")
    assert rows_of(maker.directory, table="files", until=until) == now
    assert asked(GARBAGE, maker.directory, until=until) == []
    assert asked(FILES, maker.directory, until=until) == []


@pytest.mark.parametrize("view", PRESENT)
def test_what_is_behind_them_is_told_of_now_until_whenever(maker, view):
    goes_on(maker)
    options = {"path": str(maker.directory)}
    then, now = (
        [row for batch in query.run(f"FROM {view} ORDER BY ALL", each) for row in batch.to_pylist()]
        for each in ({**options, "until": str(START + 50)}, options)
    )
    assert then == now


def test_messages_are_told_as_they_were_beside_files_as_they_are(maker):
    goes_on(maker)
    text = """SELECT (SELECT count(*) FROM messages WHERE outcome = 'pending') AS file
        UNION ALL SELECT sum(live_messages) FROM files"""
    assert asked(text, maker.directory, until=str(START + 50)) == [0, 2]


def test_the_file_before_one_that_is_only_prepared_stays(maker):
    """ActiveMQ prepares a file before it has filled the last one."""
    maker.roll().path.write_bytes(EOF_RECORD + bytes(4096))
    assert asked(GARBAGE, maker.directory) == asked(FILES, maker.directory) == []
    (row, _) = rows_of(maker.directory, table="files")
    assert row["pinned_by"] == ["nothing is written behind it"]


def in_order(rows):
    """Return *rows* in an order of their own, maps as lists."""
    return sorted(repr(sorted(row.items())) for row in rows)


@spark_test
@slow
@pytest.mark.parametrize("until", ["", str(START - 1000), str(START + 100)])
def test_spark_and_duckdb_tell_the_same_of_directories_without_records(spark, tmp_path, until):
    """Also where there are none up to `until`."""
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    (prepared / "db-1.log").write_bytes(EOF_RECORD + bytes(4096))
    maker = JournalMaker(tmp_path / "journal").add(1, 0).clock(0).flush().roll()
    maker.add(2, 5000).clock(5000).flush().roll().add(3, 9000).clock(9000).flush()
    directories = [str(prepared), f"north={maker.directory}"]
    options = {"until": until} if until else {}
    told = read_table(spark, "files", directories, **options).toArrow().to_pylist()
    plain = [rows_of(each, table="files", **options) for each in directories]
    assert in_order(told) == in_order([*plain[0], *plain[1]])
    assert {row["broker"] for row in told} == {"prepared", "north"}
    journal = journal_of(read_journals(spark, directories))
    rows = journal.report("garbage").toArrow().to_pylist()
    path = ",".join(directories)
    batches = query.run("FROM garbage_report", {"path": path, **options})
    assert rows == [row for batch in batches for row in batch.to_pylist()]
    assert len(rows) == 4
