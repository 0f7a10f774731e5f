"""The bounds of the time at which a record was written."""

import json

import pytest
from journal_maker import START, JournalMaker, rows_of

from lockkeeper.journal.records import Trace
from lockkeeper_analytics.reading.recorder import parse_clock, parse_line

COLUMNS = "kind,written_after,written_before"


def bounds(directory, kind="remove"):
    """Return the bounds of the records of a kind, in ms after START; None: not known."""
    rows = [row for row in rows_of(directory, columns=COLUMNS) if row["kind"] == kind]
    return [(after(row["written_after"]), after(row["written_before"])) for row in rows]


def after(moment):
    return None if moment is None else round(moment.timestamp() * 1000) - START


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path)


def test_without_a_clock_the_adds_around_bound_a_remove(maker):
    maker.add(1, 1000).flush().remove(1).flush().add(2, 60_000).flush()
    assert bounds(maker.directory) == [(1000, 60_000)]


def test_before_the_first_and_behind_the_last_add_one_bound_is_missing(maker):
    maker.remove(0).flush().add(1, 1000).flush().remove(1).flush()
    assert bounds(maker.directory) == [(None, 1000), (1000, None)]


def test_an_add_that_came_earlier_than_the_one_before_it_moves_no_bound_back(maker):
    maker.add(1, 2000).remove(1).add(2, 1500).remove(2).add(3, 2500).flush()
    assert bounds(maker.directory) == [(2000, 2000), (2000, 2500)]


def test_a_clock_line_tells_the_time_of_its_whole_batch(maker):
    maker.add(1, 1000).flush().remove(1).clock(5000).remove(2).flush().add(3, 9000).flush()
    assert bounds(maker.directory) == [(5000, 5000), (5000, 5000)]


def test_a_batch_without_a_clock_line_was_written_before_the_next_is_due(maker):
    maker.clock(5000).flush().remove(1).flush().clock(900_000).flush()
    assert bounds(maker.directory) == [(5000, 5050)]


def test_a_clock_line_may_name_another_interval(maker):
    maker.line("clock", 5000, every=1000).flush().remove(1).flush()
    assert bounds(maker.directory) == [(5000, 6000)]


@pytest.mark.parametrize(
    "ending",
    [
        Trace("LOADED Sat Nov 21 07:49:32 UTC 2026"),
        Trace('lk1 {"t":"event","at":1,"event":"stop","broker":"b"}'),
        Trace('lk1 {"t":"event","at":1,"event":"takeover","broker":"b"}'),
    ],
)
def test_another_broker_need_not_keep_the_clock(maker, ending):
    maker.clock(5000).flush().record(ending).flush().remove(1).flush().add(2, 900_000).flush()
    assert bounds(maker.directory) == [(5000, 900_000)]


def test_a_later_add_shows_that_no_clock_is_kept(maker):
    maker.clock(5000).flush().add(1, 8000).flush().remove(1).flush()
    assert bounds(maker.directory) == [(8000, None)]


def test_bounds_come_from_neighbouring_files(maker):
    maker.add(1, 1000).flush().roll().remove(1).flush().roll().remove(2).flush()
    maker.roll().add(2, 7000).flush()
    assert bounds(maker.directory) == [(1000, 7000), (1000, 7000)]


def test_of_a_real_activemq_every_bound_is_in_order(golden):
    rows = rows_of(golden / "amq-5.17.2-crash", columns=COLUMNS)
    known = [row for row in rows if row["written_after"] and row["written_before"]]
    assert len(known) > 0.9 * len(rows)
    assert all(row["written_after"] <= row["written_before"] for row in known)
    times = [row["written_after"] for row in known]
    assert times == sorted(times)


@pytest.mark.parametrize(
    "text", [b"", b"LOADED", b"lk1 ", b"lk1 [1]", b"lk1 {", b'lk2 {"t":"clock","at":1}']
)
def test_text_that_is_no_line_is_none(text):
    assert parse_line(text) is None
    assert parse_clock(text) is None


@pytest.mark.parametrize(
    "line", [{"t": "stats", "at": 1}, {"t": "clock"}, {"t": "clock", "at": "x"}]
)
def test_only_a_whole_clock_line_tells_the_time(line):
    text = b"lk1 " + json.dumps(line).encode()
    assert parse_line(text) == line
    assert parse_clock(text) is None


def test_of_two_clock_lines_in_a_batch_the_last_one_tells_its_time(maker):
    maker.clock(5000).add(1, 60_000).remove(1).clock(60_010).flush()
    assert bounds(maker.directory) == [(60_010, 60_010)]
