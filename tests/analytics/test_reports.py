"""The reports: known answers of journals made by hand, and what ActiveMQ served of its own."""

import json

import pytest
from journal_maker import ORDERS, START, JournalMaker, message_id, moment, transaction
from journal_reports import asked

from lockkeeper.journal.records import Prepare, RemoveDestination, Subscription
from lockkeeper.message.destination import queue, topic

DIRECTORIES = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")
DLQ = queue("DLQ")
NEWS = topic("NEWS")


@pytest.fixture
def activemq(report, golden):
    """Tell a report of the four directories that ActiveMQ wrote, as one journal."""
    return lambda name: report(name, *(golden / each for each in DIRECTORIES))


def test_the_backlog_is_what_activemq_served_after_a_replay(activemq, golden):
    backlog = activemq("backlog")
    for name in DIRECTORIES:
        manifest = json.loads((golden / f"{name}.manifest.json").read_text())
        expected = {}
        for place, messages in manifest["recovered_after_index_deletion"].items():
            if place.startswith("sub:"):
                _, client, subscription, destination = place.split(":")[:4]
                expected[destination, f"{client}:{subscription}"] = len(messages)
            elif place != "xa_recover":
                expected[place, None] = len(messages)
        found = [row for row in backlog if row["directory"].endswith(name)]
        waiting = {(row["destination"], row["subscription"]): row["waiting"] for row in found}
        assert waiting == expected, name
        in_doubt = {row["destination"]: row["in_doubt"] for row in found if row["in_doubt"]}
        assert in_doubt == {"GOLD.XA": 1}, name


def test_totals_are_what_the_manifests_say(activemq, golden):
    totals = activemq("totals")
    for name in DIRECTORIES:
        manifest = json.loads((golden / f"{name}.manifest.json").read_text())
        found = {
            row["destination"]: (row["enqueued"], row["acknowledged"])
            for row in totals
            if row["directory"].endswith(name)
        }
        acked, bulk, both = manifest["GOLD.ACKED"], manifest["GOLD.BULK"], manifest["GOLD.TX"]
        everything = len(acked["acked"]) + len(acked["remaining"])
        assert found["GOLD.ACKED"] == (everything, len(acked["acked"]))
        # In the clean directories most of these messages are in files that are gone.
        assert found["GOLD.BULK"] == (bulk["sent"], bulk["consumed"])
        assert found["GOLD.TX"] == (len(both["committed"]), len(both["tx_acked"]))
        # What a selector did not match, nobody has acknowledged.
        topic = manifest["GOLD.TOPIC"]
        assert found["GOLD.TOPIC"] == (len(topic["messages"]), 4 + 1)
        assert found["GOLD.INDIVIDUAL"][1] == len(manifest["GOLD.INDIVIDUAL"]["acked"])


def test_without_a_flight_recorder_reports_say_so(activemq):
    assert activemq("takeovers") == []
    assert all(row["redelivered"] is None for row in activemq("totals"))
    latency = activemq("latency")
    assert {row["source"] for row in latency} == {"records"}
    for row in latency:
        assert row["p50_at_least_ms"] <= row["p50_ms"] <= row["p50_at_most_ms"]


def life(directory):
    """A master that dies after its first statistics, and its successor that stops cleanly.

    ORDERS: 6 came in the first run, of which one was never written; 3 in the second. Of these
    9, 5 were acknowledged (60, 80, 160, 1160 ms; the fifth was never written), 1 is a dead letter
    and 3 wait. What was rolled back, or not committed, never was.
    """
    made = JournalMaker(directory)
    made.line("event", 0, event="start", broker="b", replica="b-0", epoch=1).flush()
    made.add(1, 100).add(2, 120).add(3, 140).clock(140).flush()
    made.remove(1).remove(2).clock(180).flush()
    made.add(4, 200, tx=transaction(1)).add(5, 200, tx=transaction(1)).commit(transaction(1))
    made.clock(200).flush()
    made.add(90, 210, tx=transaction(2)).rollback(transaction(2)).clock(260).flush()
    made.statistics(
        300,
        enqueued=6,
        dequeued=3,
        dispatched=8,
        redelivered=2,
        neverWritten=1,
        depth=3,
        latency=[0, 1, 0, 0, 2],
    ).flush()
    made.remove(3).clock(240 + 60).flush()
    made.roll().add(6, 400).clock(400).flush()
    made.add(91, 450, tx=transaction(3)).clock(450).flush()
    made.line(
        "event",
        1450,
        event="takeover",
        broker="b",
        replica="b-1",
        epoch=2,
        cause="the lock was free",
    ).clock(1450).flush()
    made.add(7, 1500).add(8, 1500).clock(1500).flush()
    made.remove(4, tx=transaction(4)).remove(6, tx=transaction(5)).flush()
    made.commit(transaction(5)).clock(1560).flush()
    properties = {"dlqDeliveryFailureCause": f"no stock for ID:{message_id(7)}"}
    made.remove(7).add(
        7, 1500, DLQ, properties=properties, original_destination=ORDERS, redelivery_counter=6
    )
    made.clock(1600).flush()
    made.statistics(
        1700,
        enqueued=2,
        dequeued=2,
        dispatched=8,
        redelivered=5,
        deadLettered=1,
        depth=3,
        latency=[0, 0, 0, 0, 1],
    )
    made.line("event", 1700, event="stop", broker="b", replica="b-1").flush()


@pytest.fixture
def lived(report, tmp_path):
    """Tell a report of the journal of these two."""
    life(tmp_path / "journal")
    return lambda name: report(name, tmp_path / "journal")


def test_totals_join_statistics_and_the_records_behind_them(lived):
    found = {row["destination"]: row for row in lived("totals")}
    orders = found["ORDERS"]
    # Statistics: 6 and 2 came, 3 and 1 were acknowledged; behind the crash's last: 1 and 1.
    assert (orders["enqueued"], orders["acknowledged"]) == (9, 5)
    assert (orders["dead_lettered"], orders["redelivered"], orders["never_written"]) == (1, 7, 1)


def test_a_message_without_a_time_came_once(report, tmp_path):
    made = JournalMaker(tmp_path / "journal")
    made.add(1, -START).add(2, 5).clock(10).flush().remove(1).remove(2).clock(20).flush()
    (totals,) = report("totals", made.directory)
    assert (totals["enqueued"], totals["acknowledged"]) == (2, 2)
    (broker,) = report("brokers", made.directory)
    assert (broker["sent"], broker["acknowledged"]) == (2, 2)


def test_the_backlog_counts_what_was_committed_and_not_taken(lived):
    found = {row["destination"]: row for row in lived("backlog")}
    assert found["ORDERS"]["waiting"] == 3
    assert found["ORDERS"]["oldest_at"] == moment(200)
    assert (found["DLQ"]["waiting"], found["DLQ"]["dead_letters"]) == (1, 1)


def test_latency_comes_exactly_from_clock_lines(lived):
    rows = {row["source"]: row for row in lived("latency")}
    records = rows["records"]
    assert records["acknowledged"] == 4
    assert (records["p50_ms"], records["max_ms"]) == (80.0, 1160.0)
    assert records["p50_at_least_ms"] == records["p50_at_most_ms"] == 80.0
    histogram = rows["statistics"]
    assert (histogram["acknowledged"], histogram["max_ms"]) == (4, 15.0)
    assert 7 < histogram["p50_ms"] < 15


def test_rates_add_up_to_the_totals(lived):
    rates = [row for row in lived("rates") if row["destination"] == "ORDERS"]
    assert {row["seconds"] for row in rates} == {1}
    assert [row["time"] for row in rates] == [moment(0), moment(1000)]
    assert sum(row["enqueued"] for row in rates) == pytest.approx(9)
    # Five acknowledged and one dead letter have left.
    assert sum(row["dequeued"] for row in rates) == pytest.approx(6)
    assert sum(row["dead_lettered"] for row in rates) == 1
    assert sum(row["redelivered"] for row in rates) == pytest.approx(7)


def test_dead_letters_are_counted_by_cause(lived):
    (row,) = lived("dead_letters")
    assert (row["origin"], row["dead_letter_queue"], row["messages"]) == ("ORDERS", "DLQ", 1)
    assert (row["cause"], row["redeliveries"]) == ("no stock for ID:…", 6)
    assert row["example"] == message_id(7)


def test_redeliveries_come_from_statistics_and_marks(lived):
    (row,) = lived("redeliveries")
    assert (row["destination"], row["redelivered"], row["dispatched"]) == ("ORDERS", 7, 16)
    assert (row["marked"], row["highest"]) == (1, 6)


def test_a_redelivered_copy_of_a_virtual_topic_counts_in_its_queue(report, tmp_path):
    made, copies = JournalMaker(tmp_path / "journal"), queue("Consumer.A.VirtualTopic.X")
    origin = topic("VirtualTopic.X")
    made.add(1, 0, copies, original_destination=origin, redelivery_counter=3).clock(1).flush()
    (row,) = report("redeliveries", made.directory)
    assert (row["destination_kind"], row["destination"]) == ("queue", copies.name)
    assert (row["marked"], row["highest"]) == (1, 3)
    (some,) = asked("FROM redeliveries_report", made.directory, destination="Consumer.>")
    assert some["destination"] == copies.name


def test_a_takeover_tells_how_long_the_journal_was_silent(lived):
    start, takeover, stop = lived("takeovers")
    assert (start["event"], start["after_crash"], start["silent_ms"]) == ("start", False, None)
    assert (takeover["event"], takeover["replica"]) == ("takeover", "b-1")
    assert (takeover["after_crash"], takeover["silent_ms"]) == (True, 1000)
    assert takeover["cause"] == "the lock was free"
    assert (stop["event"], stop["silent_ms"]) == ("stop", None)


def test_the_inventory_counts_every_record(lived):
    found = {row["kind"]: row["records"] for row in lived("inventory")}
    assert found["add"] == 11
    assert found["remove"] == 6
    assert (found["commit"], found["rollback"]) == (2, 1)


def test_topics_wait_for_each_subscription_and_purged_queues_for_nobody(report, tmp_path):
    made = JournalMaker(tmp_path / "journal")
    made.record(Subscription(NEWS, "c:early", False, b"\0"))
    made.add(1, 0, NEWS).add(2, 1, NEWS)
    made.record(Subscription(NEWS, "c:late", False, b"\0"))
    made.add(3, 2, NEWS).remove(1, NEWS, subscription="c:early")
    made.record(Subscription(NEWS, "c:gone", False, b"\0")).record(Subscription(NEWS, "c:gone"))
    made.add(4, 3, queue("OLD")).record(RemoveDestination(queue("OLD"))).add(5, 4, queue("OLD"))
    made.add(6, 5).remove(6, tx=transaction(9)).record(Prepare(transaction(9))).flush()
    found = {
        (row["destination"], row["subscription"]): (row["waiting"], row["in_doubt"])
        for row in report("backlog", made.directory)
    }
    assert found == {
        ("NEWS", "c:early"): (2, 0),
        ("NEWS", "c:late"): (1, 0),
        ("OLD", None): (1, 0),
        ("ORDERS", None): (0, 1),
    }
