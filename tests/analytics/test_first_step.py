"""A query that is killed in its first micro-batch goes on where it began, not where it would now.

Spark keeps where that micro-batch ends, and asks for its beginning anew.
"""

import pytest
from journal_maker import JournalMaker
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes
from test_tail import Query, wanted

from lockkeeper_analytics.streams.tail import DataLossError


@pytest.fixture
def maker(tmp_path):
    """Four files of a batch each, the second of which is not there."""
    maker = JournalMaker(tmp_path / "journal")
    for number in (1, 2, 3):
        maker.add(number, number).flush().roll()
    (maker.directory / "db-2.log").unlink()
    return maker.add(4, 4).flush()


def first_step(query, limit=None):
    """Plan the first micro-batch and let nobody read it; return where it ends."""
    return query.reader.latestOffset(query.reader.initialOffset(), limit or ReadAllAvailable())


def again(query, end):
    """Return what the micro-batch has that a query started again reads: ids, numbers lost."""
    query.restart()
    rows = query.rows(query.reader.initialOffset(), end)
    query.offset = end
    kinds = {row["kind"] for row in rows}
    assert kinds <= {"add", "lost"}
    return [row["message_id"] or row["file_id"] for row in rows]


def test_what_was_removed_meanwhile_is_lost_and_what_was_not_there_is_none(maker):
    query = Query(maker.directory, failOnDataLoss="false")
    end = first_step(query)
    for number in (1, 3):
        (maker.directory / f"db-{number}.log").unlink()
    assert again(query, end) == [1, 3, *wanted(4)]
    assert query.step() is None


def test_the_query_ends_with_what_was_removed_meanwhile(maker):
    query = Query(maker.directory)
    end = first_step(query, ReadMaxBytes(1))
    (maker.directory / "db-1.log").unlink()
    query.restart()
    with pytest.raises(DataLossError, match=r"db-1\.log from byte 0 on"):
        query.reader.partitions(query.reader.initialOffset(), end)


def test_what_came_after_a_latest_beginning_is_read(maker):
    query = Query(maker.directory, startingOffsets="latest")
    query.offset = query.reader.initialOffset()
    maker.add(5, 5).flush()
    end = query.reader.latestOffset(query.offset, ReadAllAvailable())
    maker.add(6, 6).flush().roll().add(7, 7).flush()
    assert again(query, end) == wanted(5)
    assert query.ids() == wanted(6, 7)


@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_a_journal_that_is_added_begins_where_its_own_first_step_did(tmp_path, maker, starting):
    known = Query(maker.directory, startingOffsets=starting)
    known.step()
    known.offset = known.offset or known.reader.initialOffset()
    other = JournalMaker(tmp_path / "other").add(8, 8).flush()
    query = Query(f"{maker.directory},{other.directory}", startingOffsets=starting)
    begin = query.reader.latestOffset(known.offset, ReadMaxBytes(1))
    other.add(9, 9).flush()
    end = query.reader.latestOffset(begin, ReadAllAvailable())
    maker.roll()
    query.restart()
    there = [row["message_id"] for row in query.rows(known.offset, begin)]
    there += [row["message_id"] for row in query.rows(begin, end)]
    assert there == (wanted(8, 9) if starting == "earliest" else wanted(9))


def test_what_is_available_now_is_not_read_from_the_beginning_again(maker):
    query = Query(maker.directory)
    assert [row["message_id"] for row in query.step(ReadMaxBytes(1))] == wanted(1)
    query.reader.prepareForTriggerAvailableNow()
    maker.add(5, 5).flush()
    assert query.ids() == wanted(3, 4)
    assert query.step() is None
    assert query.restart().ids() == wanted(5)


def test_offsets_of_later_steps_tell_nothing_of_the_beginning(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1")
    query.step()
    assert query.offset[str(maker.directory)]["began"]["file"] == 1
    query.step()
    assert query.offset[str(maker.directory)]["began"] == {}
