"""Reports on what waits and what that keeps: backlog, subscriptions, transactions, files."""

import json

import pytest
from journal_maker import START, JournalMaker, moment, rows_of, transaction
from journal_reports import asked

from lockkeeper.journal.records import Prepare, RemoveDestination, Subscription
from lockkeeper.message.destination import queue, topic

NEWS = topic("NEWS")
DAY = 86_400_000
ACTIVEMQ = ("amq-5.17.2-crash", "amq-6.1.7-clean")


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


def backlogged(maker):
    """ORDERS has 2, 3, 2, then 1 message at the ends of its cells; OTHER's were purged."""
    maker.add(1, 0).add(2, 500).add(10, 600, queue("OTHER")).clock(600).flush()
    maker.add(3, 1100).add(4, 1200).remove(1).clock(1200).flush()
    maker.record(RemoveDestination(queue("OTHER"))).clock(1300).flush()
    maker.remove(2).remove(4, tx=transaction(1)).record(Prepare(transaction(1)))
    maker.clock(2000).flush()
    maker.remove(3).clock(3000).flush()
    figures = {"enqueued": 9, "depth": 5}
    maker.statistics(3100, **figures).clock(3100).flush()


def test_the_backlog_is_told_for_the_end_of_each_cell(report, maker):
    backlogged(maker)
    found = report("backlog_over_time", maker.directory)
    orders = [row for row in found if row["destination"] == "ORDERS"]
    assert [row["time"] for row in orders] == [moment(1000 * cell) for cell in range(4)]
    assert [row["waiting"] for row in orders] == [2, 3, 2, 1]
    assert [row["oldest_ms"] for row in orders] == [1000, 1500, 1900, 1900]
    assert [row["depth"] for row in orders] == [None, None, None, 5]
    other = [row["waiting"] for row in found if row["destination"] == "OTHER"]
    assert other == [1, 0, 0, 0]


def test_what_waits_waits_until_the_journal_ends(report, maker):
    maker.line("event", 0, event="start", broker="b", brokerId="ID:b", replica="b-0", epoch=1)
    for number in range(1, 21):
        maker.add(number, number)
    maker.clock(100).flush().statistics(10_000, enqueued=20, depth=20, consumers=1).flush()
    maker.statistics(60_000, enqueued=20, depth=20, consumers=0).flush()
    maker.line("event", 10_800_000, event="stop", broker="b", replica="b-0").flush()
    found = report("backlog_over_time", maker.directory)
    assert {row["seconds"] for row in found} == {60}
    begin = -(START % 60_000)
    assert [(row["time"], row["waiting"], row["oldest_ms"]) for row in found] == [
        (moment(begin + 60_000 * cell), 20, min(begin + 60_000 * (cell + 1), 10_800_000) - 1)
        for cell in range(181)
    ]
    assert {row["depth"] for row in found} == {20, None}


def test_what_came_as_the_journal_ended_has_waited_no_longer(report, maker):
    # Cells of five minutes: what came a moment ago has not waited until the end of its cell.
    for number in range(1, 145):
        at = number * DAY // 144
        maker.add(number, at).clock(at).flush().remove(number).clock(at + 5).flush()
    maker.add(999, DAY + 10).clock(DAY + 10).flush().clock(DAY + 15).flush()
    found = report("backlog_over_time", maker.directory)
    assert {row["seconds"] for row in found} == {300}
    assert [(row["waiting"], row["oldest_ms"]) for row in found if row["waiting"]] == [(1, 5)]


@pytest.mark.parametrize("is_bounded", [False, True])
def test_what_waits_is_in_the_last_cell_whatever_is_known_of_its_time(maker, is_bounded):
    maker.add(1, 0).clock(0).flush().remove(1).clock(10).flush()
    maker.add(2, 59_970).clock(59_970).flush().add(3, 59_990).flush()
    options = {}
    if is_bounded:
        # What is known to be younger says that this one may have been written later.
        maker.add(4, 60_100).clock(60_100).flush()
        options = {"until": str(START + 60_000)}
    (waiting,) = asked("SELECT sum(waiting) AS n FROM backlog_report", maker.directory, **options)
    cells = asked("FROM backlog_over_time_report ORDER BY time", maker.directory, **options)
    rates = asked("FROM rates_report ORDER BY time", maker.directory, **options)
    assert cells[-1]["waiting"] == waiting["n"] == 2
    assert cells[-1]["time"] == rates[-1]["time"]


def test_a_subscriber_that_is_away_for_a_day_is_stuck_and_a_connected_one_is_not(report, maker):
    for name in ("gone", "there", "idle", "over"):
        maker.record(Subscription(NEWS, f"ann:{name}", False, b"\0"))
    maker.clock(0).flush()
    maker.add(1, 10, NEWS).add(2, 20, NEWS).clock(20).flush().roll()
    maker.record(Subscription(NEWS, "ann:over")).remove(1, NEWS, subscription="ann:gone")
    for number in (1, 2):
        maker.remove(number, NEWS, subscription="ann:idle")
    opened = {"clientId": "ann", "consumer": "ID:c:1:1:1", "destination": "topic://NEWS"}
    maker.line("event", 30, event="consumerOpened", subscription="there", **opened)
    maker.clock(30).flush().add(3, 2 * DAY, queue("OTHER")).clock(2 * DAY).flush()
    found = report("subscriptions", maker.directory)
    told = {row["subscription"]: row for row in found}
    assert list(told) == ["ann:there", "ann:gone", "ann:idle"]
    there, gone, idle = told.values()
    assert (gone["verdict"], gone["pending"], gone["files"]) == ("stuck", 1, 1)
    assert (gone["last_ack_at"], gone["absent_ms"]) == (moment(30), 2 * DAY - 30)
    assert (gone["oldest_pending_at"], gone["connected"]) == (moment(20), None)
    assert (there["verdict"], there["pending"], there["absent_ms"]) == ("ok", 2, 0)
    assert (idle["verdict"], idle["pending"], idle["bytes"]) == ("ok", 0, 0)


def test_undecided_transactions_come_first_and_long_ones_are_told(report, maker):
    maker.add(1, 0).add(2, 0, tx=transaction(1)).clock(0).flush()
    maker.remove(1, tx=transaction(2)).record(Prepare(transaction(2))).clock(100).flush().roll()
    maker.add(3, 200, tx=transaction(3)).commit(transaction(3)).clock(200).flush()
    maker.add(4, 300, tx=transaction(4)).clock(300).flush()
    maker.add(5, 45_000, tx=transaction(4)).rollback(transaction(4)).clock(45_000).flush()
    maker.add(6, 46_000, tx=transaction(3)).commit(transaction(3)).clock(46_000).flush()
    found = report("transactions", maker.directory)
    told = [(row["state"], row["verdict"], row["age_ms"], row["adds"]) for row in found]
    assert told == [
        ("open", "stuck", 46_000, 1),
        ("in_doubt", "stuck", 45_900, 0),
        ("rolled_back", "slow", 44_700, 2),
        ("committed", "ok", 0, 1),
        ("committed", "ok", 0, 1),
    ]
    assert {row["kind"] for row in found} == {"local"}
    assert (found[1]["removes"], found[1]["files"]) == (1, 1)


def test_what_prepares_a_transaction_before_it_began_prepares_nothing(report, maker):
    # A broker that starts does not know the transaction yet, and ignores the record.
    maker.record(Prepare(transaction(1))).add(1, 1, tx=transaction(1))
    maker.add(2, 2, tx=transaction(2)).record(Prepare(transaction(2))).clock(2).flush()
    told = {row["transaction"]: row["state"] for row in report("transactions", maker.directory)}
    assert told == {str(transaction(1)): "open", str(transaction(2)): "in_doubt"}
    table = rows_of(maker.directory, table="transactions")
    outcomes = {row["transaction"]: row["outcome"] for row in table}
    assert outcomes == {str(transaction(1)): "open", str(transaction(2)): "prepared"}


def test_files_are_kept_as_a_replay_says_and_what_emptying_one_frees(report, maker, golden):
    maker.add(1, 0).add(2, 1).clock(1).flush().roll().remove(1).add(3, 2).clock(2).flush()
    maker.roll().remove(3).clock(3).flush().roll().add(4, 4).remove(4).clock(4).flush()
    maker.roll().add(5, 5).clock(5).flush()
    # The report tells of directories in the order of their names, wherever they are.
    places = sorted([maker.directory, *(golden / name for name in ACTIVEMQ)])
    found = report("garbage", *places)
    replayed = [row for place in places for row in rows_of(place, table="files")]
    assert [(row["file"], row["bytes"]) for row in found] == [
        (row["file"], row["file_bytes"]) for row in replayed
    ]
    names = ("live_messages", "live_bytes")
    for row, other in zip(found, replayed, strict=True):
        assert row["freed"] == other["freed_by_cleanup"]
        assert [row[name] for name in names] == [other[name] for name in names]
        assert set(filter(None, row["pinned_by"].split("; "))) == set(other["pinned_by"])
    ours = [row for row in found if row["directory"] == str(maker.directory)]
    sizes = [row["bytes"] for row in ours]
    frees = [row["frees_bytes"] for row in ours]
    # Nothing but message 2 keeps the first file, and with it the second and third.
    assert frees == [sum(sizes[:3]), None, None, None, None]
    assert [row["freed"] for row in ours] == [False, False, False, True, False]


def test_what_waits_for_activemqs_subscriptions_is_what_it_served(report, golden):
    name = ACTIVEMQ[0]
    manifest = json.loads((golden / f"{name}.manifest.json").read_text())
    served = {
        ":".join(place.split(":")[1:3]): len(messages)
        for place, messages in manifest["recovered_after_index_deletion"].items()
        if place.startswith("sub:")
    }
    found = report("subscriptions", golden / name)
    assert {row["subscription"]: row["pending"] for row in found} == served
    assert all(row["connected"] is None for row in found)
