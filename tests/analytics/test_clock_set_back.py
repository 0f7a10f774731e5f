"""Journals of a broker whose clock somebody has set back: no time that has passed is below 0."""

import pytest
from journal_maker import JournalMaker
from streams_journal import Streams, draft
from streams_kit import DiskBench


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


def test_what_waits(report, maker):
    maker.add(1, 10_000).clock(4_000).flush()
    (row,) = report("backlog_over_time", maker.directory)
    assert (row["waiting"], row["oldest_ms"]) == (1, 0)


def test_what_groups_have_to_consume(report, tmp_path):
    bench = DiskBench(tmp_path)
    told = Streams(tmp_path, bench, bench.connect())
    bench.now += 800
    bench.tick()
    bench.now -= 600
    # The broker looks at its clock once a turn.
    told.clock()
    told.send("orders", 0, draft(0))
    told.commit("billing", ("orders", 0, 0))
    bench.settle()
    (row,) = report("lag_over_time", tmp_path)
    assert (row["waiting"], row["oldest_ms"]) == (1, 0)


def test_starts(report, maker):
    maker.line("event", 0, event="start", broker="b", replica="b-0", epoch=1).clock(10_000).flush()
    maker.roll()
    maker.line("event", 4_000, event="start", broker="b", replica="b-0", epoch=2).flush()
    first, second = report("takeovers", maker.directory)
    assert (first["silent_ms"], second["silent_ms"]) == (None, 0)
