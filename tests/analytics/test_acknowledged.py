"""Latencies count from the stay that an acknowledgement ends, as the table of acknowledgements."""

from collections import Counter
from itertools import combinations
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_maker import ORDERS, JournalMaker
from journal_reports import asked
from random_journal import RandomJournal, framed
from sequential_tables import sequential_rows

from lockkeeper.journal.records import Subscription
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import SubscriptionInfo

DLQ = queue("DLQ")
CAUSE = {"dlqDeliveryFailureCause": "no such customer"}
PLACE = ("destination_kind", "destination", "message_id", "subscription")


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


def test_each_stay_of_an_id_has_its_own_latency(report, maker):
    maker.add(1, 0).clock(0).flush().remove(1).clock(10).flush()
    maker.add(1, 100_000).clock(100_000).flush().remove(1).clock(100_010).flush()
    (latency,) = report("latency", maker.directory)
    assert (latency["acknowledged"], latency["p50_ms"], latency["max_ms"]) == (2, 10.0, 10.0)


def test_a_dead_letter_that_was_sent_back_is_acknowledged_at_last(report, maker):
    maker.add(1, 0).clock(0).flush()
    maker.add(1, 50, DLQ, properties=CAUSE, original_destination=ORDERS).remove(1).clock(50).flush()
    maker.add(1, 60_000).remove(1, DLQ).clock(60_000).flush().remove(1).clock(60_020).flush()
    maker.add(2, 70_000).clock(70_000).flush().remove(2).clock(70_005).flush()
    found = report("latency", maker.directory)
    told = {row["destination"]: (row["acknowledged"], row["max_ms"]) for row in found}
    assert told == {"ORDERS": (2, 20.0), "DLQ": (1, 59_950.0)}
    totals = report("totals", maker.directory)
    assert {row["destination"]: row["acknowledged"] for row in totals} == {"ORDERS": 2, "DLQ": 1}


def in_any_order(letters, removes):
    """Return every order of letters, L, and removes, R."""
    size = letters + removes
    for places in combinations(range(size), letters):
        yield "".join("L" if at in places else "R" for at in range(size))


@pytest.mark.parametrize(
    ("letters", "removes", "subscriptions"), [(2, 2, 2), (1, 2, 2), (2, 3, 3), (2, 2, 3)]
)
def test_each_death_of_a_topics_message_is_of_one_remove(
    report, maker, letters, removes, subscriptions
):
    orders = list(in_any_order(letters, removes))
    for order in orders:
        for name in range(subscriptions):
            info = SubscriptionInfo(client_id="ann", subscription_name=str(name))
            maker.record(Subscription(topic(order), f"ann:{name}", False, framed(info)))
        maker.add(1, 10, topic(order))
    maker.clock(10).flush()
    for at in range(letters + removes):
        for order in orders:
            before = order[:at]
            if order[at] == "L":
                grave = queue(f"DLQ.{order}.{before.count('L')}")
                maker.add(1, 100 + at, grave, properties=CAUSE, original_destination=topic(order))
            else:
                maker.remove(1, topic(order), subscription=f"ann:{before.count('R')}")
        maker.clock(100 + at).flush()
    acks = sequential_rows(maker.directory, "acks")
    expected = Counter(row["destination"] for row in acks if row["outcome"] == "acknowledged")
    found = report("latency", maker.directory)
    assert {row["destination"]: row["acknowledged"] for row in found} == expected
    died = Counter(row["destination"] for row in acks if row["outcome"] == "dead_lettered")
    assert (expected + died).keys() == set(orders)


@pytest.mark.timeout(300)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), ids=st.sampled_from([2, 5, 12]))
def test_latencies_are_those_of_the_table_of_acknowledgements(seed, ids):
    with TemporaryDirectory() as folder:
        directory = RandomJournal(Path(folder) / "journal", Random(seed), ids).write()
        acks = sequential_rows(directory, "acks")
        expected = Counter(
            (*(row[name] for name in PLACE), row["latency_at_least_ms"], row["latency_at_most_ms"])
            for row in acks
        )
        found = Counter(
            (*(row[name] for name in PLACE), row["earliest_ms"], row["latest_ms"])
            for row in asked("FROM acknowledged", directory)
        )
        assert found == expected
