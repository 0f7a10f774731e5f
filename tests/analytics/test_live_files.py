"""Files that a broker is writing, preparing, moving or has damaged."""

import pytest
from journal_maker import START, JournalMaker, message_id, rows_of

from lockkeeper.journal.batch import CONTROL_START, EOF_RECORD
from lockkeeper.journal.errors import CorruptBatchError
from lockkeeper.journal.records import RewrittenDataFile
from lockkeeper_analytics.errors import NoJournalError
from lockkeeper_analytics.reading.batches import read_chunks
from lockkeeper_analytics.reading.partitions import plan_parts
from lockkeeper_analytics.reading.rows import read_part
from lockkeeper_analytics.tables.options import parse_options


@pytest.fixture
def maker(tmp_path):
    """Three batches of two messages each."""
    maker = JournalMaker(tmp_path / "journal")
    for number in range(0, 6, 2):
        maker.add(number, number).add(number + 1, number + 1).flush()
    return maker


def ids(directory, **options):
    return [row["message_id"] for row in rows_of(directory, columns="message_id", **options)]


def wanted(*numbers):
    return [message_id(number) for number in numbers]


@pytest.mark.parametrize("cut", [1, 6, 20, 40, 300])
def test_a_torn_tail_ends_the_read_at_the_last_whole_batch(maker, cut):
    data = maker.path.read_bytes()
    last = data.rindex(CONTROL_START)
    maker.path.write_bytes(data[: last + cut])
    assert ids(maker.directory) == wanted(0, 1, 2, 3)


def test_rows_appear_as_batches_become_whole(maker):
    data = maker.path.read_bytes()
    ends = [data.index(CONTROL_START, at) for at in (1, data.index(CONTROL_START, 1) + 1)]
    maker.path.write_bytes(data[: ends[0]] + EOF_RECORD + bytes(4096))
    assert ids(maker.directory) == wanted(0, 1)
    maker.path.write_bytes(data[: ends[1]] + EOF_RECORD + bytes(4096))
    assert ids(maker.directory) == wanted(0, 1, 2, 3)


@pytest.mark.parametrize("filler", [EOF_RECORD + bytes(9000), bytes(9000)])
def test_what_was_prepared_for_later_is_not_read(maker, filler):
    maker.path.write_bytes(maker.path.read_bytes()[: -len(EOF_RECORD)] + filler)
    assert ids(maker.directory) == wanted(0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("mode", ["none", "sparse", "zeros", "chunked", "async", "nochecksum"])
def test_every_way_of_preparing_files_gives_the_same_rows(golden, mode):
    kinds = [row["kind"] for row in rows_of(golden / f"prealloc-{mode}", columns="kind")]
    assert (kinds.count("add"), kinds.count("remove")) == (8, 3)


def test_damage_before_sound_batches_is_an_error_with_its_place(maker):
    data = bytearray(maker.path.read_bytes())
    second = data.index(CONTROL_START, 1)
    data[second + 60] ^= 1
    maker.path.write_bytes(data)
    with pytest.raises(CorruptBatchError, match=rf"db-1\.log: corrupt batch at offset {second}"):
        rows_of(maker.directory)
    assert ids(maker.directory, corrupt="skip") == wanted(0, 1, 4, 5)


@pytest.mark.parametrize("chunk_bytes", [28, 100, 700, 5000])
def test_batches_longer_than_a_chunk_are_read_whole(maker, chunk_bytes):
    starts = [
        chunk.base + start
        for chunk in read_chunks(maker.path, chunk_bytes=chunk_bytes)
        for start, _ in chunk.batches
    ]
    whole = next(read_chunks(maker.path))
    assert starts == [start for start, _ in whole.batches]


def test_files_are_read_in_numeric_order(maker):
    for number in range(6, 30):
        maker.roll().add(number, number).flush()
    assert ids(maker.directory) == wanted(*range(30))


def test_archived_files_belong_to_the_journal(maker):
    maker.roll().add(6, 6).flush()
    archive = maker.directory / "data-archive"
    archive.mkdir()
    (maker.directory / "db-1.log").rename(archive / "db-1.log")
    assert ids(maker.directory) == wanted(0, 1, 2, 3, 4, 5, 6)


def test_a_file_that_was_archived_since_the_plan_is_read_where_it_is(maker):
    options = parse_options({"path": str(maker.directory), "columns": "message_id"})
    (part,) = plan_parts(options.directories)
    archive = maker.directory / "data-archive"
    archive.mkdir()
    maker.path.rename(archive / "db-1.log")
    assert sum(batch.num_rows for batch in read_part(part, options)) == 6


def test_a_file_that_was_deleted_since_the_plan_has_no_rows(maker):
    options = parse_options({"path": str(maker.directory)})
    (part,) = plan_parts(options.directories)
    maker.path.unlink()
    assert list(read_part(part, options)) == []


def test_a_rewritten_file_counts_once_its_source_is_gone(maker):
    maker.roll().record(RewrittenDataFile(1)).flush().add(9, 9).flush()
    assert ids(maker.directory) == wanted(0, 1, 2, 3, 4, 5)
    (maker.directory / "db-1.log").unlink()
    assert ids(maker.directory) == [None, *wanted(9)]


def test_only_what_was_written_since_a_time_comes(maker):
    assert ids(maker.directory, since=str(START + 3)) == wanted(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: None, "no such directory"),
        (lambda path: path.write_text(""), "not a directory"),
        (lambda path: path.mkdir(), "no journal file"),
    ],
)
def test_a_place_without_a_journal_is_named(tmp_path, make, complaint):
    place = tmp_path / "place"
    make(place)
    with pytest.raises(NoJournalError, match=f"{place}: {complaint}"):
        plan_parts((str(place),))
