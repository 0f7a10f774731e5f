"""Reports that compare: consumers, hours, periods, brokers."""

import pytest
from journal_maker import ORDERS, START, JournalMaker, message_id, moment

from lockkeeper.journal.records import RemoveMessage
from lockkeeper.message.destination import queue
from lockkeeper_analytics.page.story import NEEDED, tell

HOUR = 3_600_000


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


def event(maker, at, name, consumer, **fields):
    told = {"destination": "queue://ORDERS", "connection": "ID:c:1", "consumer": consumer}
    return maker.line("event", at, event=name, **told, **fields)


def test_consumers_are_stuck_slow_gone_or_well(report, maker):
    maker.line("event", 0, event="start", broker="b")
    fields = {"connection": "ID:c:1", "clientId": "ann", "address": "10.0.0.7:4711"}
    maker.line("event", 0, event="connectionOpened", **fields)
    for number in (1, 2, 3):
        event(maker, 1, "consumerOpened", f"ID:c:1:1:{number}")
    other = {"destination": "queue://OTHER", "consumer": "ID:c:1:1:4"}
    maker.line("event", 2, event="consumerOpened", **other)
    maker.line("event", 3, event="slowConsumer", held=10, **other)
    event(maker, 4, "consumerClosed", "ID:c:1:1:3", delivered=5)
    maker.add(1, 10).add(2, 1000).add(3, 10, queue("OTHER")).clock(1000).flush()
    maker.remove(1).clock(2000).flush().remove(3, queue("OTHER")).clock(90_000).flush()
    found = report("consumers", maker.directory)
    told = {row["consumer"][-1]: row for row in found}
    assert list(told) == ["1", "2", "4", "3"]
    assert [row["verdict"] for row in found] == ["stuck", "stuck", "slow", "gone"]
    assert (told["1"]["silent_ms"], told["1"]["waiting"]) == (88_000, 1)
    assert (told["1"]["client_id"], told["1"]["address"]) == ("ann", "10.0.0.7:4711")
    assert (told["4"]["slow_events"], told["4"]["held"], told["4"]["silent_ms"]) == (1, 10, 0)
    assert (told["3"]["delivered"], told["3"]["closed_at"]) == (5, moment(4))


def test_activemqs_acknowledgements_name_their_consumers(report, golden):
    found = report("consumers", golden / "amq-5.17.2-crash")
    assert found
    assert all(row["acknowledged"] > 0 and row["opened_at"] is None for row in found)
    bulk = [row["acknowledged"] for row in found if row["destination"] == "GOLD.BULK"]
    assert sum(bulk) == 180
    assert all(row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] for row in found)


def test_the_mean_hour_of_a_weekday_counts_empty_hours(report, maker):
    first = -(START % HOUR)
    for number, at in enumerate((0, 1, HOUR, 169 * HOUR), 1):
        maker.add(number, first + at + HOUR).clock(first + at + HOUR).flush()
    found = report("pattern", maker.directory)
    begin = moment(first + HOUR)
    told = {(row["weekday"], row["hour"]): row for row in found}
    assert len(told) == 168
    busy = told[begin.strftime("%A"), begin.hour]
    assert (busy["enqueued"], busy["hours"]) == (1.0, 2)
    later = moment(first + 2 * HOUR)
    assert told[later.strftime("%A"), later.hour]["enqueued"] == 1.0
    assert sum(row["enqueued"] > 0 for row in found) == 2


def test_a_period_far_from_those_before_is_flagged(report, maker):
    number = 0
    for period in range(12):
        for step in range(100 if period == 9 else 30 + period % 3):
            number += 1
            maker.add(number, 12_000 * period + 100 * step)
        maker.clock(12_000 * period + 11_000).flush()
    (row,) = report("anomalies", maker.directory)
    assert (row["measure"], row["flag"], row["value"]) == ("enqueued", "higher", 100.0)
    assert (row["before"], row["seconds"]) == (31.0, 12)
    assert row["ratio"] == pytest.approx(100 / 31)


def test_brokers_are_compared(report, maker, tmp_path):
    maker.line("event", 0, event="start", broker="north").flush()
    maker.line("event", 0, event="takeover", broker="north").clock(0).flush()
    maker.add(1, 0).add(2, 0).clock(0).flush().remove(1).clock(4000).flush()
    south = JournalMaker(tmp_path / "south")
    south.add(1, 0).flush()
    south.record(RemoveMessage(ORDERS, message_id(1), None, None)).flush()
    north, other = report("brokers", maker.directory, south.directory)
    assert (north["broker"], north["takeovers"], north["waiting"]) == ("north", 1, 1)
    assert (north["sent"], north["acknowledged"], north["p99_ms"]) == (2, 1, 4000.0)
    assert (north["seconds"], north["per_second"]) == (4.0, 0.5)
    assert (other["broker"], other["takeovers"], other["sent"]) == ("south", 0, 1)


def test_brokers_acknowledge_what_the_page_says_without_dead_letters(report, maker):
    properties = {"dlqDeliveryFailureCause": "no stock"}
    for number, grave in ((1, queue("DLQ.ORDERS")), (2, queue("ActiveMQ.DLQ"))):
        maker.add(number, 0)
        maker.add(number, 10, grave, properties=properties, original_destination=ORDERS)
        maker.remove(number).remove(number, grave)
    maker.add(3, 20, queue("ActiveMQ.DLQ")).remove(3, queue("ActiveMQ.DLQ"))
    maker.add(4, 30).add(5, 40).remove(4).clock(40).flush()
    tables = {name: report(name, maker.directory) for name in ("brokers", *NEEDED)}
    (broker,) = tables["brokers"]
    assert (broker["acknowledged"], tell(tables).acknowledged) == (1, 1)
