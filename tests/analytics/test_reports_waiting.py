"""Reports on what waits: the backlog over time, and transactions without an outcome."""

import pytest
from journal_frames import dicts, journal_in, moment
from journal_maker import JournalMaker, transaction

from lockkeeper.journal.records import Prepare, RemoveDestination
from lockkeeper.message.destination import queue
from lockkeeper_analytics.reports.backlog_over_time import backlog_over_time
from lockkeeper_analytics.reports.transactions import transactions


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


@pytest.mark.spark
@pytest.mark.slow
def test_the_backlog_is_told_for_the_end_of_each_cell(spark, maker):
    backlogged(maker)
    found = dicts(backlog_over_time(journal_in(spark, maker.directory)))
    orders = [row for row in found if row["destination"] == "ORDERS"]
    assert [row["time"] for row in orders] == [moment(1000 * cell) for cell in range(4)]
    assert [row["waiting"] for row in orders] == [2, 3, 2, 1]
    assert [row["oldest_ms"] for row in orders] == [1000, 1500, 1900, 2800]
    assert [row["depth"] for row in orders] == [None, None, None, 5]
    other = [row["waiting"] for row in found if row["destination"] == "OTHER"]
    assert other == [1, 0, 0, 0]


@pytest.mark.spark
@pytest.mark.slow
def test_undecided_transactions_come_first_and_long_ones_are_told(spark, maker):
    maker.add(1, 0).add(2, 0, tx=transaction(1)).clock(0).flush()
    maker.remove(1, tx=transaction(2)).record(Prepare(transaction(2))).clock(100).flush().roll()
    maker.add(3, 200, tx=transaction(3)).commit(transaction(3)).clock(200).flush()
    maker.add(4, 300, tx=transaction(4)).clock(300).flush()
    maker.add(5, 45_000, tx=transaction(4)).rollback(transaction(4)).clock(45_000).flush()
    maker.add(6, 46_000, tx=transaction(3)).commit(transaction(3)).clock(46_000).flush()
    found = dicts(transactions(journal_in(spark, maker.directory)))
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
