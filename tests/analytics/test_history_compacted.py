"""Files that the broker compacts between two runs: the rest is kept, and what is gone told."""

from pathlib import Path

import pytest
from journal_maker import ORDERS, JournalMaker, message_id, rows_of, transaction
from random_journal import framed

from lockkeeper.journal.records import RemoveDestination, Subscription
from lockkeeper.message.destination import topic
from lockkeeper.message.openwire import SubscriptionInfo
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.history import keeping
from lockkeeper_analytics.tables.options import parse_options

NEWS = topic("NEWS")
INFO = SubscriptionInfo(client_id="ann", subscription_name="one", destination=NEWS)
SUBSCRIBE = Subscription(NEWS, "ann:one", False, framed(INFO))
UNSUBSCRIBE = Subscription(NEWS, "ann:one", False, None)


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal").clock(0).add(1, 0).add(2, 1).flush()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "history"


def keep(folder, directory):
    return keeping.keep(parse_options({"path": f"north={directory}"}), str(folder))


def messages(folder):
    """Return the numbers of the messages in the history, by their places."""
    rows = rows_of(folder / "broker=north")
    rows.sort(key=lambda row: (row["file_id"], row["offset"]))
    found = [row["message_id"] for row in rows if row["kind"] == "add"]
    return [int(each.rpartition(":")[2]) for each in found]


def lost(folder):
    return [row["trace"] for row in rows_of(folder / "broker=north") if row["kind"] == "lost"]


def test_a_run_goes_on_behind_what_it_has_of_a_file_that_was_compacted(maker, folder):
    keep(folder, maker.directory)
    end = maker.path.stat().st_size - 5
    maker.add(3, 2).add(4, 3).flush().roll().add(5, 4).flush()
    maker.add(2, 1).add(4, 3).compact(1)
    assert keep(folder, maker.directory) == (2, 1)
    assert messages(folder) == [1, 2, 4, 5]
    assert lost(folder) == [f"db-1.log from byte {end} on"]
    maker.add(4, 3).compact(1).roll().add(6, 5).flush()
    assert keep(folder, maker.directory) == (1, 0)
    assert messages(folder) == [1, 2, 4, 5, 6]


@pytest.mark.parametrize("file_bytes", [0, 4096], ids=["as long as it is", "with zeros behind"])
def test_of_a_file_that_was_kept_to_its_end_nothing_is_lost(folder, tmp_path, file_bytes):
    maker = JournalMaker(tmp_path / "journal", file_bytes).add(1, 0).add(2, 1).flush()
    keep(folder, maker.directory)
    maker.add(2, 1).compact(1).add(2, 1).compact(1).roll().add(3, 2).flush()
    assert keep(folder, maker.directory) == (1, 0)
    assert messages(folder) == [1, 2, 3]
    assert lost(folder) == []


def test_what_was_compacted_before_anybody_read_it_is_told_but_for_the_first_run(maker, folder):
    maker.roll().add(3, 2).flush().add(2, 1).compact(1)
    assert keep(folder, maker.directory)[1] == 0
    maker.roll().add(4, 3).add(5, 4).flush().roll().add(6, 5).flush()
    maker.add(5, 4).compact(3)
    assert keep(folder, maker.directory)[1] == 1
    assert messages(folder) == [2, 3, 5, 6]
    assert lost(folder) == ["db-3.log from byte 0 on"]
    assert keep(folder, maker.directory) == (0, 0)


@pytest.fixture
def during_the_run(monkeypatch):
    """Have something done once, between the plan of a run's first part and its reading."""

    def plan(action):
        part_of = keeping.part_of
        waiting = [action]

        def acted(*asked):
            part = part_of(*asked)
            if waiting:
                waiting.pop()()
            return part

        monkeypatch.setattr(keeping, "part_of", acted)

    return plan


def test_what_is_compacted_while_a_run_reads_is_told_and_what_is_left_is_kept(
    maker, folder, during_the_run
):
    maker.roll().add(3, 2).flush()
    during_the_run(lambda: maker.add(2, 1).compact(1))
    assert keep(folder, maker.directory) == (3, 1)
    assert (messages(folder), lost(folder)) == ([2, 3], ["db-1.log from byte 0 on"])
    assert keep(folder, maker.directory) == (0, 0)


def test_so_is_a_file_in_whose_middle_the_last_run_ended(maker, folder, during_the_run):
    keep(folder, maker.directory)
    end = maker.path.stat().st_size - 5
    maker.add(3, 2).add(4, 3).flush().roll().add(5, 4).flush()
    during_the_run(lambda: maker.add(2, 1).add(4, 3).compact(1))
    assert keep(folder, maker.directory)[1] == 1
    assert (messages(folder), lost(folder)) == ([1, 2, 4, 5], [f"db-1.log from byte {end} on"])
    assert keep(folder, maker.directory) == (0, 0)


def test_unless_the_last_run_ended_where_the_file_did(maker, folder, during_the_run):
    keep(folder, maker.directory)
    maker.roll().add(3, 2).flush()
    during_the_run(lambda: maker.add(2, 1).compact(1))
    assert keep(folder, maker.directory) == (1, 0)
    assert (messages(folder), lost(folder)) == ([1, 2, 3], [])
    assert keep(folder, maker.directory) == (0, 0)


def test_what_the_archive_has_is_kept_whole(maker, folder):
    keep(folder, maker.directory)
    maker.add(3, 2).flush().roll().add(4, 3).flush()
    archive = maker.directory / "data-archive"
    archive.mkdir()
    (archive / "db-1.log").hardlink_to(maker.directory / "db-1.log")
    whole = (archive / "db-1.log").read_bytes()
    (maker.directory / "db-1.log").unlink()
    (maker.directory / "db-1.log").write_bytes(whole)
    maker.add(2, 1).compact(1)
    assert keep(folder, maker.directory) == (2, 0)
    assert messages(folder) == [1, 2, 3, 4]


def test_another_journal_is_none_though_it_was_compacted(maker, folder, tmp_path):
    keep(folder, maker.directory)
    other = JournalMaker(Path(tmp_path / "other")).clock(0).add(9, 0).flush().roll()
    other.add(8, 1).flush().add(9, 0).compact(1)
    with pytest.raises(AnalyticsError, match="it is not the journal"):
        keep(folder, other.directory)
    assert message_id(9) not in [row["message_id"] for row in rows_of(folder / "broker=north")]


def began_before_its_message(maker):
    yield maker.record(SUBSCRIBE)
    yield maker.add(7, 5, NEWS).add(3, 6).remove(3)
    yield maker.record(SUBSCRIBE).add(7, 5, NEWS)


def began_anew(maker):
    yield maker.record(SUBSCRIBE).add(6, 3, NEWS)
    yield maker.add(5, 4).record(UNSUBSCRIBE).record(SUBSCRIBE).add(7, 5, NEWS)
    yield maker.add(5, 4).record(SUBSCRIBE).add(7, 5, NEWS)


def was_committed(maker):
    yield maker.add(7, 5, tx=transaction(1))
    yield maker.commit(transaction(1)).add(3, 6).remove(3)
    yield maker.add(7, 5, tx=transaction(1)).commit(transaction(1))


def came_to_a_queue_that_was_removed(maker):
    yield maker.record(RemoveDestination(ORDERS))
    yield maker.add(7, 5).add(3, 6).remove(3)
    yield maker.record(RemoveDestination(ORDERS)).add(7, 5)


def came_again(maker):
    yield maker.add(7, 3).remove(7)
    yield maker.add(7, 5).add(3, 6).remove(3)
    yield maker.add(7, 5)


def pending(directory):
    rows = rows_of(directory, table="subscriptions")
    return [(row["subscription"], row["pending"]) for row in rows if row["state"] == "live"]


@pytest.mark.parametrize(
    "story",
    [
        began_before_its_message,
        began_anew,
        was_committed,
        came_to_a_queue_that_was_removed,
        came_again,
    ],
)
def test_what_was_left_is_told_as_the_journal_tells_it(story, maker, folder):
    """A story is what is written before a run and behind it, and what a compaction leaves."""
    steps = story(maker.remove(1).remove(2))
    next(steps).flush()
    keep(folder, maker.directory)
    next(steps).clock(6).flush().roll().clock(10).add(9, 10).flush()
    next(steps).compact(1)
    keep(folder, maker.directory)
    history = folder / "broker=north"
    assert pending(history) == pending(maker.directory)
    columns = "destination,message_id,outcome,waiting_for"
    told = rows_of(maker.directory, table="messages", columns=columns)
    found = rows_of(history, table="messages", columns=columns)
    assert [row for row in found if row in told] == told
    live = [row for row in found if row["outcome"] in ("pending", "open")]
    assert live == [row for row in told if row["outcome"] == "pending"]
