"""A file of which a part was not read is not said to go: that part may be a message that waits."""

import gzip
import re

import pytest
from journal_maker import JournalMaker, rows_of

from lockkeeper.journal.batch import CONTROL_SIZE, CONTROL_START, EOF_RECORD, build_batch
from lockkeeper.journal.errors import CorruptBatchError, JournalError
from lockkeeper_analytics.errors import AnalyticsError, ForeignFileError
from lockkeeper_analytics.facts.journal import journal_of, read_journals
from lockkeeper_analytics.facts.shuffled import read_table
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.tables import checked_files

KEPT = "damage in it was skipped"


@pytest.fixture
def maker(tmp_path):
    """A message that waits, and another one that is done with; a file behind."""
    maker = JournalMaker(tmp_path / "journal").add(1, 0).flush().add(2, 1).remove(2).flush()
    return maker.roll().add(3, 2).flush()


def change(maker, to):
    """Change the bytes of the first file."""
    path = maker.directory / "db-1.log"
    path.write_bytes(to(path.read_bytes()))
    return maker.directory


def flipped(data):
    """Damage the batch of the message that waits."""
    return data[:60] + bytes([data[60] ^ 1]) + data[61:]


def zeroed(data):
    return bytes(60) + data[60:]


def bad_record(data):
    """Let the batch of the message that waits be sound, and its record be none."""
    end = data.index(CONTROL_START, 1)
    batch = data[CONTROL_SIZE:end]
    return build_batch(batch[:6] + b"\xff" * 9 + batch[15:])[:end] + data[end:]


def bad_record_alone(data):
    return bad_record(data)[: data.index(CONTROL_START, 1)] + EOF_RECORD


def torn(data):
    """Cut the last batch off."""
    return data[: data.rindex(CONTROL_START) + 100]


def torn_before_zeros(data):
    return torn(data) + bytes(4096)


DAMAGES = [flipped, zeroed, bad_record, bad_record_alone, torn, torn_before_zeros]


def reported(directory):
    """Return which file goes, and why another stays, by the report and by the table."""
    options = {"path": str(directory), "corrupt": "skip"}
    text = "SELECT file, freed, pinned_by FROM garbage_report"
    batches = query.run(text, options)
    report = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    table = rows_of(directory, table="files", corrupt="skip")
    told = [
        (each["file"], each["freed_by_cleanup"], "; ".join(each["pinned_by"])) for each in table
    ]
    assert told == report
    return {file: None if freed else why for file, freed, why in report}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_skipped_keeps_its_file(maker, damage):
    told = reported(change(maker, damage))
    assert KEPT in told["db-1.log"].split("; ")
    assert KEPT not in told["db-2.log"]


@pytest.mark.parametrize("prepared", [b"", bytes(9000), EOF_RECORD + bytes(9000)])
def test_sound_files_go_whatever_is_behind_their_end(maker, prepared):
    maker.remove(1).flush().roll().remove(3).add(4, 5).flush()
    directory = change(maker, lambda data: data[: -len(EOF_RECORD)] + prepared)
    told = reported(directory)
    assert told["db-1.log"] is None
    assert told["db-2.log"] is None
    assert told["db-3.log"]


def test_the_last_file_may_be_torn(maker):
    data = maker.path.read_bytes()
    maker.path.write_bytes(data[:-20])
    for directory in (maker.directory, change(maker, lambda data: data)):
        assert len(rows_of(directory, table="files")) == 2
    # Also with space behind it that was prepared for later.
    maker.roll().path.write_bytes(EOF_RECORD + bytes(4096))
    assert len(rows_of(maker.directory, table="files")) == 3
    assert KEPT not in reported(maker.directory)["db-2.log"]


@pytest.mark.parametrize("damage", [torn, torn_before_zeros])
@pytest.mark.parametrize("tail_bytes", [10, 200, checked_files.TAIL_BYTES])
def test_a_torn_file_with_another_behind_it_is_an_error_with_its_place(
    maker, monkeypatch, damage, tail_bytes
):
    monkeypatch.setattr(checked_files, "TAIL_BYTES", tail_bytes)
    path = maker.directory / "db-1.log"
    at = path.read_bytes().rindex(CONTROL_START)
    directory = change(maker, damage)
    complaint = rf"db-1\.log: corrupt batch at offset {at}: .*, and db-2\.log was written behind it"
    with pytest.raises(CorruptBatchError, match=complaint):
        rows_of(directory, table="files")
    with pytest.raises((AnalyticsError, JournalError), match=complaint):
        list(query.run("FROM garbage_report", {"path": str(directory)}))


@pytest.mark.parametrize(
    "foreign", [gzip.compress(bytes(9000), mtime=0), b"not a journal", b"\0\1"]
)
def test_a_last_file_that_is_none_of_a_journal_is_an_error(maker, foreign):
    maker.path.write_bytes(foreign)
    with pytest.raises(ForeignFileError, match=r"db-2\.log: .*does not begin as one of a journal"):
        rows_of(maker.directory)
    left = rows_of(maker.directory, corrupt="skip")
    maker.path.unlink()
    assert left == rows_of(maker.directory)


@pytest.mark.parametrize("size", [1, 4, len(CONTROL_START), CONTROL_SIZE, CONTROL_SIZE + 5])
@pytest.mark.parametrize("prepared", [b"", bytes(9000)])
def test_a_first_write_that_was_cut_off_is_no_error(maker, size, prepared):
    written = maker.path.read_bytes()
    maker.path.write_bytes(written[:size] + prepared)
    left = rows_of(maker.directory)
    maker.path.unlink()
    assert left == rows_of(maker.directory)


@pytest.mark.parametrize("tail_bytes", [10, 200, checked_files.TAIL_BYTES])
def test_whole_files_are_no_error_however_much_is_looked_at(maker, monkeypatch, tail_bytes):
    monkeypatch.setattr(checked_files, "TAIL_BYTES", tail_bytes)
    assert len(rows_of(maker.directory, table="files")) == 2


@pytest.mark.spark
@pytest.mark.slow
def test_spark_keeps_damaged_files_too(spark, maker, tmp_path):
    directories = [str(change(maker, flipped))]
    other = JournalMaker(tmp_path / "other").add(2, 1).remove(2).flush().add(1, 0).flush()
    other.roll().add(3, 2).flush()
    directories.append(str(change(other, torn)))
    files = read_table(spark, "files", directories, corrupt="skip").toArrow().to_pylist()
    expected = [row for each in directories for row in rows_of(each, table="files", corrupt="skip")]
    assert sorted(map(repr, files)) == sorted(map(repr, expected))
    journal = journal_of(read_journals(spark, directories, skip_corrupt=True), is_small=True)
    rows = journal.report("garbage").toArrow().to_pylist()
    options = {"path": ",".join(directories), "corrupt": "skip"}
    batches = query.run("FROM garbage_report", options)
    assert rows == [row for batch in batches for row in batch.to_pylist()]
    assert [KEPT in row["pinned_by"] for row in rows] == [True, False] * 2
    with pytest.raises(Exception, match=re.escape("db-2.log was written behind it")):
        journal_of(read_journals(spark, directories[1:])).frame("checked_files").toArrow()
