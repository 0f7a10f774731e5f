"""Last values of columns that may be null: the last one that is known, by either engine.

Of a row whose value is null, Spark's `max_by` tells null, DuckDB's skips it.
"""

import re

import pytest
from journal_frames import journal_in
from journal_maker import ORDERS, START, JournalMaker, message_id, moment
from journal_reports import asked

from lockkeeper.message.destination import queue
from lockkeeper_analytics.texts import view_texts

DLQ = queue("DLQ")
NEVER_NULL = {"origin_kind", "origin", "destination_kind", "destination", "shown_id", "message_id"}
"""Columns that every add has."""

CALL = re.compile(r"\b(?:max|min)_by\((?:\w+\.)?(\w+), [\w.]+\)(?:\s+FILTER \(WHERE ([^)]*)\))?")


@pytest.fixture
def directory(tmp_path):
    """A journal whose last records leave out what those before them told."""
    maker = JournalMaker(tmp_path / "journal")
    maker.line("event", 0, event="start", broker="shop", replica="shop-0", epoch=1)
    maker.add(1, 10).clock(10).flush()
    properties = {"dlqDeliveryFailureCause": "no such customer"}
    maker.add(1, 20, DLQ, properties=properties, original_destination=ORDERS).remove(1)
    maker.clock(20).flush().statistics(100, depth=4).flush()
    maker.remove(1, DLQ).add(1, 200, DLQ, original_destination=ORDERS).clock(200).flush()
    maker.line("stats", 300, broker="shop", destinations={str(ORDERS): {"enqueued": 1}}).flush()
    maker.line("event", 400, event="stop", replica="shop-0").clock(400).flush()
    return maker.directory


def test_what_is_left_out_later_hides_nothing(report, directory):
    (poison,) = report("poison", directory)
    assert (poison["message_id"], poison["cause"]) == (message_id(1), "no such customer")
    (broker,) = report("brokers", directory)
    assert broker["broker"] == "shop"
    backlog = report("backlog_over_time", directory)
    first = next(row for row in backlog if row["destination"] == "ORDERS")
    assert (first["time"], first["depth"]) == (moment(-(START % 1000)), 4)


def test_the_last_known_number_of_consumers_counts(directory):
    assert asked("FROM unattended", directory) == [
        {"directory": str(directory), "destination_kind": "queue", "destination": "ORDERS"}
    ]


@pytest.mark.spark
@pytest.mark.slow
def test_the_last_known_number_of_consumers_counts_in_spark(spark, directory):
    (row,) = journal_in(spark, directory).frames.ask("SELECT * FROM unattended").collect()
    assert row.asDict() == asked("FROM unattended", directory)[0]


def test_no_view_asks_for_the_last_of_what_may_be_null():
    texts = "\n".join(view_texts().values())
    calls = CALL.findall(texts)
    assert len(calls) == len(re.findall(r"\b(?:max|min)_by\(", texts))
    loose = [name for name, condition in calls if f"{name} IS NOT NULL" not in condition]
    assert {*loose} <= NEVER_NULL
