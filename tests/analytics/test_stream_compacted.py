"""Files that the broker compacts while a stream has yet to read them: no row is missing unsaid."""

import pytest
from journal_maker import JournalMaker
from test_tail import Query, wanted

from lockkeeper_analytics.reading.storage import ARCHIVE
from lockkeeper_analytics.spark.stream import ReadAllAvailable
from lockkeeper_analytics.streams.tail import DataLossError

LOST = {"failOnDataLoss": "false", "holdBytes": "0"}


@pytest.fixture(params=[0, 4096], ids=["as long as they are", "with zeros behind"])
def maker(request, tmp_path):
    """Three files, of four, two and one batches."""
    maker = JournalMaker(tmp_path / "journal", request.param)
    for number in range(1, 5):
        maker.add(number, number).flush()
    maker.roll().add(5, 5).flush().add(6, 6).flush()
    return maker.roll().add(7, 7).flush()


def compact(maker, number, *left):
    """Put a copy in the place of a file, as the broker does."""
    path = maker.directory / f"db-{number}.log"
    whole = path.read_bytes()
    # Whoever has opened the file still reads what it was.
    path.unlink()
    path.write_bytes(whole)
    for each in left:
        maker.add(each, each)
    maker.compact(number)


def archive(maker, number):
    """Give a file a second name in the archive, as the broker does before it compacts it."""
    folder = maker.directory / ARCHIVE
    folder.mkdir(exist_ok=True)
    (folder / f"db-{number}.log").hardlink_to(maker.directory / f"db-{number}.log")


def steps(query):
    """Return ids, and what is lost as file and offset, of all steps that there are."""
    found = []
    while (rows := query.step()) is not None:
        for row in rows:
            is_lost = row["kind"] == "lost"
            found.append((row["file_id"], row["offset"]) if is_lost else row["message_id"])
    return [each for each in found if each is not None]


def position(query):
    return query.offset[query.options["path"]]["position"]


def test_what_the_query_holds_is_read_to_its_end(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1")
    assert query.ids() == wanted(1)
    compact(maker, 1, 4)
    compact(maker, 2, 6)
    assert steps(query) == wanted(2, 3, 4, 5, 6, 7)
    query.reader.stop()


@pytest.mark.parametrize("limits", [{"holdBytes": "9"}, {"holdBytes": "0"}, {"holdSeconds": "0"}])
def test_what_may_not_be_held_any_more_is_an_error(maker, limits):
    query = Query(maker.directory, maxBytesPerTrigger="1", **limits)
    assert query.ids() == wanted(1)
    compact(maker, 1, 4)
    at = position(query)
    with pytest.raises(DataLossError, match=rf"db-1\.log from byte {at} on was removed .*compact"):
        query.step()
    query.reader.stop()


def test_a_file_that_was_not_read_is_lost_and_what_is_left_of_it_is_read(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1", **LOST)
    assert query.ids() == wanted(1)
    compact(maker, 2, 6)
    assert steps(query) == [*wanted(2, 3, 4), (2, 0), *wanted(6, 7)]


def test_of_a_file_in_whose_middle_the_query_stopped_nothing_is_given_again(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1", **LOST)
    assert query.ids() == wanted(1)
    at = position(query)
    compact(maker, 1, 1, 4)
    assert steps(query.restart()) == [(1, at), *wanted(5, 6, 7)]


@pytest.mark.parametrize("limit", ["1", "100000"])
def test_a_file_that_was_read_to_its_end_loses_nothing(maker, limit):
    query = Query(maker.directory, maxBytesPerTrigger=limit, holdBytes="0")
    assert steps(query) == wanted(1, 2, 3, 4, 5, 6, 7)
    maker.add(8, 8).flush()
    assert steps(query) == wanted(8)
    maker.roll().add(9, 9).flush()
    compact(maker, 3, 7)
    compact(maker, 1, 1)
    assert steps(query.restart()) == wanted(9)


def test_what_came_behind_its_end_later_is_lost(maker):
    query = Query(maker.directory, **LOST)
    assert steps(query) == wanted(1, 2, 3, 4, 5, 6, 7)
    at = position(query)
    maker.add(8, 8).flush().roll().add(9, 9).flush()
    compact(maker, 3, 7)
    assert steps(query.restart()) == [(3, at), *wanted(9)]


def test_files_that_were_compacted_when_the_stream_began_are_no_loss(maker):
    compact(maker, 1, 2, 3)
    compact(maker, 2, 6)
    query = Query(maker.directory, maxBytesPerTrigger="1", holdBytes="0")
    assert steps(query.restart()) == wanted(2, 3, 6, 7)


def test_but_what_is_compacted_once_more_is_one(maker):
    compact(maker, 1, 1, 2, 3)
    compact(maker, 2, 5, 6)
    query = Query(maker.directory, maxBytesPerTrigger="1", **LOST)
    query.step()
    compact(maker, 1, 3)
    compact(maker, 2, 6)
    at = position(query)
    assert steps(query.restart()) == [(1, at), (2, 0), *wanted(6, 7)]


def test_a_copy_that_was_read_to_its_middle_and_is_compacted_again_is_lost_from_there(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1", **LOST)
    query.offset = query.reader.initialOffset()
    path = maker.directory / "db-1.log"
    compact(maker, 1, 1, 2, 3)
    rows = query.step()
    assert (rows[0]["kind"], rows[0]["offset"]) == ("lost", 0)
    at, size = position(query), path.stat().st_size
    assert 0 < at < size
    compact(maker, 1, 3)
    assert steps(query.restart())[0] == (1, at)


def test_the_whole_file_is_read_in_the_archive(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1", holdBytes="0")
    assert query.ids() == wanted(1)
    for number, left in ((1, 4), (2, 6)):
        archive(maker, number)
        compact(maker, number, left)
    assert steps(query.restart()) == wanted(2, 3, 4, 5, 6, 7)
    fresh = Query(maker.directory, holdBytes="0")
    assert steps(fresh) == wanted(1, 2, 3, 4, 5, 6, 7)


def test_a_file_compacted_after_the_plan_is_told_by_who_reads_it(maker):
    query = Query(maker.directory, **LOST)
    start = query.reader.initialOffset()
    end = query.reader.latestOffset(start, ReadAllAvailable())
    pieces = query.reader.partitions(start, end)
    compact(maker, 1, 4)
    rows = [each for batch in query.reader.read(pieces[0]) for each in batch.to_pylist()]
    assert [(row["kind"], row["offset"]) for row in rows] == [("lost", 0)]
    query.options["failOnDataLoss"] = "true"
    with pytest.raises(DataLossError, match=r"db-1\.log from byte 0 on"):
        list(query.restart().reader.read(pieces[0]))


def test_one_that_was_read_to_its_end_before_the_plan_is_not(maker):
    query = Query(maker.directory, holdBytes="0")
    assert steps(query) == wanted(1, 2, 3, 4, 5, 6, 7)
    maker.roll().add(8, 8).flush()
    end = query.reader.latestOffset(query.offset, ReadAllAvailable())
    pieces = query.reader.partitions(query.offset, end)
    compact(maker, 3, 7)
    found = [batch for each in pieces for batch in query.reader.read(each)]
    rows = [row for batch in found for row in batch.to_pylist()]
    assert [row["message_id"] for row in rows] == wanted(8)


def test_a_step_that_was_planned_before_is_told_when_it_is_read_again(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1", **LOST)
    start = query.reader.initialOffset()
    end = query.reader.latestOffset(start, query.reader.getDefaultReadLimit())
    compact(maker, 1, 4)
    found = query.restart().rows(start, end)
    assert [row["offset"] for row in found if row["kind"] == "lost"] == [0]
    assert [row["message_id"] for row in found if row["kind"] == "add"] == wanted(4)
    query.offset = end
    at = position(query)
    assert steps(query) == [(1, at), *wanted(5, 6, 7)]


def test_offsets_of_earlier_versions_are_understood(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1", holdBytes="0")
    query.step()
    (offset,) = query.offset.values()
    offset.pop("copies")
    offset["seen"] = 3
    assert steps(query.restart()) == wanted(2, 3, 4, 5, 6, 7)
