"""How far a stream reads: whole batches, from file to file, and what is gone on the way."""

import gzip
import os
import tracemalloc

import pytest
from journal_maker import JournalMaker, message_id

from lockkeeper.journal.batch import CONTROL_START, EOF_RECORD
from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper.journal.records import RewrittenDataFile
from lockkeeper_analytics.errors import ForeignFileError, NoJournalError, OptionError
from lockkeeper_analytics.reading.ranges import between, ranges_in, ranges_of
from lockkeeper_analytics.spark.datasource import LockkeeperDataSource
from lockkeeper_analytics.spark.stream import ReadAllAvailable, ReadMaxBytes
from lockkeeper_analytics.streams import tail
from lockkeeper_analytics.streams.tail import DataLossError


class Query:
    """A query over a journal as Spark runs it, without Spark: micro-batch after micro-batch."""

    def __init__(self, path, **options):
        self.options = {"path": str(path), "columns": "message_id,kind,file_id,offset", **options}
        self.offset = None
        self.restart()

    def restart(self):
        self.reader = LockkeeperDataSource(self.options).streamReader(None)
        return self

    def step(self, limit=None):
        """Return the rows of one micro-batch, None when there is nothing to read."""
        start = self.reader.initialOffset() if self.offset is None else self.offset
        end = self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())
        self.offset = start
        if end == start:
            return None
        rows = self.rows(start, end)
        self.offset = end
        self.reader.commit(end)
        return rows

    def rows(self, start, end):
        pieces = self.reader.partitions(start, end)
        return [
            row for each in pieces for batch in self.reader.read(each) for row in batch.to_pylist()
        ]

    def ids(self):
        """Return the message ids of one micro-batch."""
        return [row["message_id"] for row in self.step() or ()]

    def all_ids(self):
        found = []
        while rows := self.step():
            found += [row["message_id"] for row in rows]
        return found

    def behind(self):
        (report,) = self.reader.reportLatestOffset().values()
        return report["bytesBehind"]


def wanted(*numbers):
    return [message_id(number) for number in numbers]


@pytest.fixture
def maker(tmp_path):
    """Two files of two batches each."""
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 1).flush().add(2, 2).flush().roll()
    return maker.add(3, 3).flush().add(4, 4).flush()


def test_rows_come_once_as_batches_become_whole(maker):
    query = Query(maker.directory)
    assert query.ids() == wanted(1, 2, 3, 4)
    assert query.step() is None
    maker.add(5, 5).add(6, 6).flush()
    assert query.ids() == wanted(5, 6)
    maker.roll().add(7, 7).flush()
    assert query.ids() == wanted(7)
    assert query.step() is None


def test_a_batch_that_is_being_written_is_waited_for(maker):
    query = Query(maker.directory)
    query.step()
    before = maker.path.read_bytes()
    whole = maker.add(5, 5).flush().path.read_bytes()
    for cut in (len(before), len(before) + 20, len(whole) - len(EOF_RECORD) - 1):
        maker.path.write_bytes(whole[:cut])
        assert query.step() is None
    maker.path.write_bytes(whole)
    assert query.ids() == wanted(5)


def test_a_torn_tail_that_the_next_master_left_behind_is_passed(maker):
    query = Query(maker.directory)
    query.step()
    maker.path.write_bytes(maker.path.read_bytes()[: -len(EOF_RECORD)] + CONTROL_START + b"\0\0")
    assert query.step() is None
    maker.roll().add(5, 5).flush()
    assert query.ids() == wanted(5)


def test_a_file_is_not_done_with_while_the_next_one_is_only_prepared(maker):
    query = Query(maker.directory)
    query.step()
    prepared = maker.directory / "db-3.log"
    prepared.write_bytes(EOF_RECORD + bytes(4096))
    maker.add(5, 5).flush()
    assert query.ids() == wanted(5)
    prepared.unlink()
    maker.roll().add(6, 6).flush()
    assert query.ids() == wanted(6)


@pytest.mark.parametrize("limit", [1, 500, 10_000])
def test_a_trigger_reads_as_much_as_it_may(maker, limit):
    query = Query(maker.directory, maxBytesPerTrigger=str(limit))
    sizes = []
    found = []
    while rows := query.step():
        sizes.append(len(rows))
        found += [row["message_id"] for row in rows]
    assert found == wanted(1, 2, 3, 4)
    assert sizes == {1: [1] * 4, 500: [2, 2], 10_000: [4]}[limit]


def test_spark_may_set_the_limit_aside(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1")
    assert isinstance(query.reader.getDefaultReadLimit(), ReadMaxBytes)
    assert len(query.step(ReadAllAvailable())) == 4


def test_what_is_behind_is_reported(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1")
    query.step()
    behind = query.behind()
    assert behind > 500
    query.step()
    assert 0 < query.behind() < behind
    query.all_ids()
    assert query.behind() == 0


def test_available_now_ends_at_what_was_there(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1")
    query.reader.prepareForTriggerAvailableNow()
    maker.add(5, 5).flush().roll().add(6, 6).flush()
    assert query.all_ids() == wanted(1, 2, 3, 4)
    query.restart()
    query.reader.prepareForTriggerAvailableNow()
    assert query.all_ids() == wanted(5, 6)


def test_a_query_may_begin_with_what_comes(maker):
    query = Query(maker.directory, startingOffsets="latest")
    assert query.step() is None
    maker.add(5, 5).flush().roll().add(6, 6).flush()
    assert query.ids() == wanted(5, 6)


def test_a_query_goes_on_where_its_checkpoint_says(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1")
    assert query.ids() == wanted(1)
    assert query.restart().all_ids() == wanted(2, 3, 4)


def test_a_batch_that_was_planned_is_the_same_when_it_is_read_again(maker):
    query = Query(maker.directory)
    start = query.reader.initialOffset()
    end = query.reader.latestOffset(start, ReadAllAvailable())
    rows = query.rows(start, end)
    maker.add(5, 5).flush().roll().add(6, 6).flush()
    assert query.restart().rows(start, end) == rows


def test_files_removed_while_the_query_runs_are_held_until_they_are_read(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1")
    assert query.ids() == wanted(1)
    (maker.directory / "db-1.log").unlink()
    maker.roll().add(5, 5).flush()
    assert query.ids() == wanted(2)
    (maker.directory / "db-2.log").unlink()
    assert query.all_ids() == wanted(3, 4, 5)
    assert query.reader.commit(query.offset) is None
    held = [os.path.realpath(each) for each in os.scandir("/proc/self/fd")]
    assert [name for name in held if str(maker.directory) in name] == [str(maker.path)]
    query.reader.stop()


def test_a_removed_file_that_was_read_to_its_end_is_no_loss(maker):
    query = Query(maker.directory)
    query.step()
    (maker.directory / "db-1.log").unlink()
    (maker.directory / "db-2.log").unlink()
    maker.roll().add(5, 5).flush()
    assert query.ids() == wanted(5)


@pytest.mark.parametrize("option", [{"holdBytes": "0"}, {"holdSeconds": "0"}, {"holdBytes": "9"}])
def test_removed_before_it_was_read_is_an_error_with_the_range_and_the_way_out(maker, option):
    query = Query(maker.directory, maxBytesPerTrigger="1", **option)
    assert query.ids() == wanted(1)
    at = query.offset[str(maker.directory)]["position"]
    (maker.directory / "db-1.log").unlink()
    with pytest.raises(DataLossError, match=rf"db-1\.log from byte {at} on was removed before "):
        query.step()
    with pytest.raises(DataLossError, match=r"failOnDataLoss to false.*journal\.archive"):
        query.step()


def test_or_a_row_names_what_is_gone_and_the_query_goes_on(maker):
    maker.roll().add(5, 5).flush().roll().add(6, 6).flush()
    columns = "message_id,kind,file_id,offset,trace,file,broker"
    options = {"columns": columns, "maxBytesPerTrigger": "1", "failOnDataLoss": "false"}
    query = Query(maker.directory, **options)
    assert query.ids() == wanted(1)
    query.restart()
    position = query.offset[str(maker.directory)]["position"]
    for number in (1, 2):
        (maker.directory / f"db-{number}.log").unlink()
    rows = []
    while step := query.step():
        rows += step
    lost = [row for row in rows if row["kind"] == "lost"]
    assert [(row["file_id"], row["offset"]) for row in lost] == [(1, position), (2, 0)]
    assert lost[0]["trace"] == f"db-1.log from byte {position} on"
    assert (lost[1]["file"], lost[1]["broker"]) == ("db-2.log", "journal")
    assert [row["message_id"] for row in rows] == [None, None, *wanted(5, 6)]


@pytest.mark.parametrize("table", ["events", "statistics"])
def test_tables_of_the_flight_recorder_name_what_is_gone(maker, table):
    maker.line("event", 1, event="start").statistics(5).flush().roll().statistics(6).flush()
    options = {"table": table, "columns": "", "failOnDataLoss": "false", "holdBytes": "0"}
    query = Query(maker.directory, maxBytesPerTrigger="1", **options)
    query.step()
    (maker.directory / "db-2.log").unlink()
    rows = []
    while (step := query.step()) is not None:
        rows += step
    (lost,) = [row for row in rows if row["file_id"] == 2]
    assert lost["offset"] == 0 and lost["at"] is None
    if table == "events":
        assert lost["event"] == "lost" and "db-2.log from byte 0 on" in lost["cause"]
    else:
        assert lost["destination"] is None


def test_gaps_from_before_the_query_are_no_loss(maker):
    for _ in range(3):
        maker.roll()
    maker.add(5, 5).flush()
    (maker.directory / "db-1.log").unlink()
    query = Query(maker.directory, maxBytesPerTrigger="1")
    assert query.all_ids() == wanted(3, 4, 5)


def test_a_gap_that_came_later_is_one(maker):
    query = Query(maker.directory, holdBytes="0")
    query.step()
    maker.roll().add(5, 5).flush()
    maker.path.unlink()
    maker.roll().add(6, 6).flush()
    with pytest.raises(DataLossError, match=r"db-3\.log from byte 0 on"):
        query.step()


def test_a_file_that_goes_while_an_earlier_one_is_read_is_lost(tmp_path):
    maker = JournalMaker(tmp_path / "journal")
    for number in range(1, 5):
        maker.add(number, number).flush()
    maker.roll().add(5, 5).flush().roll().add(6, 6).flush()
    query = Query(maker.directory, maxBytesPerTrigger="1", holdBytes="0")
    assert query.ids() == wanted(1)
    (maker.directory / "db-2.log").unlink()
    with pytest.raises(DataLossError, match=r"db-2\.log from byte 0 on"):
        query.all_ids()


def test_a_file_that_came_and_went_between_two_looks_is_lost(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1", holdBytes="0", failOnDataLoss="false")
    query.all_ids()
    maker.roll().add(5, 5).flush().add(6, 6).flush()
    maker.file_id = 5
    maker.add(7, 7).flush()
    rows = []
    while (step := query.step()) is not None:
        rows += step
    ids = [(row["file_id"], row["message_id"]) for row in rows]
    assert ids == [*zip((3, 3, 4, 5), (*wanted(5, 6), None, *wanted(7)), strict=True)]


def test_archived_files_are_no_loss(maker):
    query = Query(maker.directory, maxBytesPerTrigger="1")
    assert query.ids() == wanted(1)
    query.reader.stop()
    archive = maker.directory / "data-archive"
    archive.mkdir()
    (maker.directory / "db-1.log").rename(archive / "db-1.log")
    assert query.restart().all_ids() == wanted(2, 3, 4)


def test_a_file_removed_after_the_plan_is_told_by_who_reads_it(maker):
    query = Query(maker.directory, holdBytes="0")
    start = query.reader.initialOffset()
    end = query.reader.latestOffset(start, ReadAllAvailable())
    pieces = query.reader.partitions(start, end)
    (maker.directory / "db-1.log").unlink()
    with pytest.raises(DataLossError, match=r"db-1\.log from byte 0 on"):
        list(query.reader.read(pieces[0]))
    query.options["failOnDataLoss"] = "false"
    (batch,) = query.restart().reader.read(pieces[0])
    assert batch.to_pylist() == [{"message_id": None, "kind": "lost", "file_id": 1, "offset": 0}]


def test_a_copy_put_back_from_before_the_checkpoint_is_told(maker):
    query = Query(maker.directory)
    query.step()
    maker.path.write_bytes(maker.path.read_bytes()[:200])
    with pytest.raises(DataLossError, match="it ends before byte"):
        query.step()
    query.options["failOnDataLoss"] = "false"
    assert query.restart().step() == []
    maker.path.write_bytes(b"")
    maker.roll().add(5, 5).flush()
    assert query.ids() == wanted(5)


def test_what_activemq_rewrites_is_not_read_twice(maker):
    query = Query(maker.directory)
    query.step()
    maker.file_id = 3
    maker.record(RewrittenDataFile(1)).remove(1).flush()
    maker.file_id = 2
    assert query.step() is None
    maker.add(5, 5).flush()
    assert query.ids() == wanted(5)
    (maker.directory / "db-1.log").unlink()
    maker.file_id = 4
    maker.add(6, 6).flush()
    assert query.ids() == wanted(6)


def test_damage_in_the_file_that_is_written_is_an_error_once_it_is_done_with(maker):
    data = bytearray(maker.path.read_bytes())
    data[data.index(CONTROL_START, 1) + 60] ^= 1
    maker.path.write_bytes(data)
    maker.add(5, 5).flush()
    query = Query(maker.directory)
    assert query.ids() == wanted(1, 2, 3)
    assert query.step() is None
    maker.roll().add(6, 6).flush()
    with pytest.raises(Exception, match=r"db-2\.log: corrupt batch at offset"):
        query.step()
    query.options["corrupt"] = "skip"
    assert query.restart().ids() == wanted(5, 6)


@pytest.mark.parametrize(
    "foreign", [gzip.compress(bytes(9000), mtime=0), b"not a journal" * 900, b"\0\1"]
)
def test_a_file_that_is_none_of_a_journal_ends_no_other(maker, foreign):
    query = Query(maker.directory)
    assert query.ids() == wanted(1, 2, 3, 4)
    other = maker.directory / "db-3.log"
    other.write_bytes(foreign)
    maker.add(5, 5).flush()
    complaint = r"db-3\.log: the file does not begin as one of a journal does"
    for each in (query, Query(maker.directory), Query(maker.directory, maxBytesPerTrigger="1")):
        with pytest.raises(ForeignFileError, match=complaint):
            each.all_ids()
    skipping = Query(maker.directory, corrupt="skip")
    assert skipping.ids() == wanted(1, 2, 3, 4, 5)
    assert skipping.step() is None
    other.unlink()
    assert query.restart().ids() == wanted(5)


def test_nor_is_one_that_stands_alone_a_journal_that_has_nothing_yet(tmp_path):
    (tmp_path / "db-1.log").write_bytes(b"not a journal")
    with pytest.raises(ForeignFileError, match=r"db-1\.log: the file does not begin as one"):
        Query(tmp_path).step()


def test_several_journals_share_the_limit_and_each_keeps_its_mark(maker, tmp_path):
    other = JournalMaker(tmp_path / "other").add(11, 1).flush().add(12, 2).flush()
    query = Query(f"north={maker.directory}, {other.directory}", maxBytesPerTrigger="1")
    query.options["columns"] = "broker,message_id"
    query.restart()
    rows = query.step()
    assert [tuple(row.values()) for row in rows] == [
        ("north", message_id(1)),
        ("other", message_id(11)),
    ]
    assert set(query.offset) == {"north", str(other.directory)}
    assert sorted(query.all_ids()) == sorted(wanted(2, 3, 4, 12))


def test_a_journal_that_the_checkpoint_knows_must_be_named(maker, tmp_path):
    other = JournalMaker(tmp_path / "other").add(11, 1).flush()
    query = Query(maker.directory)
    query.step()
    query.options["path"] = str(other.directory)
    with pytest.raises(DataLossError, match="which the option path does not name"):
        query.restart().step()
    query.options["failOnDataLoss"] = "false"
    assert query.restart().ids() == wanted(11)


@pytest.mark.parametrize("table", ["messages", "acks", "files", "transactions", "destinations"])
def test_a_table_that_is_no_stream_says_what_is(maker, table):
    with pytest.raises(OptionError, match=r"spark\.read, or stream one of records, sta"):
        Query(maker.directory, table=table, columns="")


def test_a_place_without_a_journal_is_named(tmp_path):
    with pytest.raises(NoJournalError, match="no journal file"):
        Query(tmp_path).step()


SETS = [set(), {0}, {1}, {1, 2, 3}, {1, 3, 4, 9}, {2, 3, 4, 5}, {0, 9}]


@pytest.mark.parametrize("numbers", SETS)
@pytest.mark.parametrize("others", SETS)
def test_ranges_are_sets_of_numbers(numbers, others):
    ours, theirs = ranges_of(numbers), ranges_of(others)
    assert ranges_in(str(ours)) == ours
    assert {number for number in range(12) if number in ours} == numbers
    assert (ours | theirs, ours - theirs) == (
        ranges_of(numbers | others),
        ranges_of(numbers - others),
    )


def test_ranges_are_short():
    assert str(ranges_of(range(5, 5000))) == "5-4999"
    assert str(between(5, FILE_ID_MAX) - between(7, 7)) == f"5-6,8-{FILE_ID_MAX}"
    assert str(between(5, 4)) == ""


@pytest.mark.parametrize("is_before", [True, False])
def test_a_gap_of_any_width_takes_little_room(maker, is_before):
    maker.roll().add(5, 5).flush()
    query = Query(maker.directory, failOnDataLoss="false")
    if not is_before:
        query.step()
    maker.file_id = FILE_ID_MAX
    maker.add(6, 6).flush()
    tracemalloc.start()
    rows = query.step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    lost = [row for row in rows if row["kind"] == "lost"]
    assert rows[-1]["message_id"] == message_id(6)
    assert len(lost) == (0 if is_before else tail.LOST_FILES_MAX)
    assert peak < 16 * 1024 * 1024


def test_what_is_beyond_the_most_files_that_are_told_is_told_at_once(maker, monkeypatch):
    monkeypatch.setattr(tail, "LOST_FILES_MAX", 2)
    query = Query(maker.directory, failOnDataLoss="false", holdBytes="0", columns="kind,trace")
    query.step()
    maker.file_id = 9
    maker.add(9, 9).flush()
    assert [row["trace"] for row in query.step()] == [
        "db-3.log from byte 0 on",
        "db-4.log from byte 0 on, up to db-8.log",
        None,
    ]
