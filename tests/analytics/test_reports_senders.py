"""Reports on what was sent: producers, sizes, groups, duplicates, what nobody can consume."""

import pytest
from journal_maker import ORDERS, JournalMaker, message_id, moment, transaction

from lockkeeper.message.destination import queue, topic

DLQ = queue("DLQ")
OTHER = queue("OTHER")


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


def die(maker, number, at, cause="no stock", **fields):
    """Let message *number* of ORDERS become a dead letter."""
    properties = {"dlqDeliveryFailureCause": cause}
    maker.remove(number)
    return maker.add(number, at, DLQ, properties=properties, original_destination=ORDERS, **fields)


def test_producers_are_told_by_connection_with_who_had_it(report, maker):
    maker.line("event", 0, event="connectionOpened", connection="ID:maker-1:1", clientId="ann")
    maker.line(
        "event",
        1,
        event="connectionOpened",
        connection="ID:maker-1:1",
        clientId="ann",
        user="clerk",
        address="10.0.0.7:4711",
    )
    maker.add(1, 0).add(2, 500).add(3, 4000, tx=transaction(1)).commit(transaction(1))
    maker.add(4, 10, OTHER).add(5, 20, tx=transaction(2)).rollback(transaction(2))
    die(maker, 1, 4100).flush()
    orders, other = report("producers", maker.directory)
    assert (orders["destination"], orders["producer"]) == ("ORDERS", "ID:maker-1:1")
    assert (orders["client_id"], orders["user_name"]) == ("ann", "clerk")
    assert orders["address"] == "10.0.0.7:4711"
    assert (orders["messages"], orders["transacted"], orders["share"]) == (3, 1, 1.0)
    assert (orders["first_at"], orders["last_at"]) == (moment(0), moment(4000))
    assert orders["per_second"] == 0.75
    assert (other["destination"], other["messages"], other["per_second"]) == ("OTHER", 1, 1.0)


def test_sizes_are_counted_in_powers_of_two(report, maker):
    for number, length in enumerate((0, 0, 700), 1):
        maker.add(number, number, correlation_id="x" * length)
    maker.flush()
    small, big = report("sizes", maker.directory)
    assert (small["messages"], big["messages"]) == (2, 1)
    for row in (small, big):
        assert row["below"] == 2 * row["at_least"]
        assert row["at_least"] <= row["bytes"] / row["messages"] < row["below"]
    assert big["bytes"] - small["bytes"] / 2 == pytest.approx(700, abs=8)


def test_a_message_sent_twice_is_a_duplicate_and_one_sent_back_is_not(report, maker):
    maker.add(1, 0).add(1, 10).add(2, 20).remove(2).add(2, 30).add(3, 40).add(3, 50, OTHER)
    maker.add(4, 60).remove(4).add(4, 70, original_destination=DLQ).flush()
    first, second = report("duplicates", maker.directory)
    assert (first["message_id"], first["stored"]) == (message_id(1), 2)
    assert (first["processed_again"], second["processed_again"]) == (0, 1)
    assert (second["message_id"], second["producer"]) == (message_id(2), "ID:maker-1:1")
    assert (second["first_at"], second["last_at"]) == (moment(20), moment(30))


def test_a_message_that_dies_again_after_a_retry_is_the_worst_poison(report, maker):
    maker.add(1, 0).add(2, 1).add(3, 2).clock(2).flush()
    die(maker, 1, 10, redelivery_counter=6).clock(10).flush()
    die(maker, 2, 20, "time is over: message is expired").clock(20).flush()
    properties = {"dlqDeliveryFailureCause": "no stock"}
    maker.remove(1, DLQ).add(1, 30, properties=properties, original_destination=DLQ).flush()
    die(maker, 1, 40, "still no stock", redelivery_counter=7).clock(40).flush()
    die(maker, 3, 50, redelivery_counter=6).clock(50).flush()
    worst, other = report("poison", maker.directory)
    assert (worst["message_id"], worst["origin"]) == (message_id(1), "ORDERS")
    assert (worst["dead_lettered"], worst["retried"], worst["redeliveries"]) == (2, 1, 7)
    assert (worst["cause"], worst["producer"]) == ("still no stock", "ID:maker-1:1")
    assert (worst["first_at"], worst["last_at"]) == (moment(10), moment(40))
    assert (other["message_id"], other["dead_lettered"], other["retried"]) == (message_id(3), 1, 0)


def test_a_message_that_dies_in_several_queues_is_poison_in_each(report, maker):
    places = (queue("Consumer.A.VirtualTopic.X"), queue("Consumer.B.VirtualTopic.X"))
    for number in (1, 2, 3):
        for place in places:
            maker.add(number, 0, place, original_destination=topic("VirtualTopic.X"))
    maker.clock(0).flush()
    for number in (1, 2, 3):
        for letter, place in zip("AB", places, strict=True):
            properties = {"dlqDeliveryFailureCause": f"{letter} cannot"}
            maker.add(number, 10, DLQ, properties=properties, original_destination=place)
            maker.remove(number, place)
    maker.clock(10).flush()
    # One is sent back and dies again, another is moved on.
    maker.add(1, 20, places[1], properties=properties, original_destination=DLQ).remove(1, DLQ)
    maker.add(2, 20, OTHER, properties=properties, original_destination=DLQ).remove(2, DLQ)
    maker.clock(20).flush()
    maker.add(1, 30, DLQ, properties=properties, original_destination=places[1])
    maker.remove(1, places[1]).clock(30).flush()
    found = report("poison", maker.directory)
    assert [
        (row["origin"], row["message_id"], row["dead_lettered"], row["retried"], row["cause"])
        for row in found
    ] == [
        (places[1].name, message_id(1), 2, 1, "B cannot"),
        *((places[0].name, message_id(number), 1, 0, "A cannot") for number in (1, 2, 3)),
        *((places[1].name, message_id(number), 1, 0, "B cannot") for number in (2, 3)),
    ]


@pytest.mark.parametrize(
    ("grave", "cause"),
    [(DLQ, "other cannot"), (DLQ, "orders cannot"), (queue("DLQ.OTHER"), "other cannot")],
)
def test_a_letter_that_was_moved_on_and_dies_there_is_poison_there_too(report, maker, grave, cause):
    steps = [(ORDERS, DLQ, "orders cannot"), (DLQ, OTHER, "orders cannot"), (OTHER, grave, cause)]
    maker.add(1, 0).clock(0).flush()
    for number, (source, target, why) in enumerate(steps, 1):
        properties = {"dlqDeliveryFailureCause": why}
        maker.add(1, 10 * number, target, properties=properties, original_destination=source)
        maker.remove(1, source).clock(10 * number).flush()
    found = report("poison", maker.directory)
    assert sorted(
        (row["origin"], row["dead_letter_queue"], row["dead_lettered"], row["cause"])
        for row in found
    ) == [("ORDERS", "DLQ", 1, "orders cannot"), ("OTHER", grave.name, 1, cause)]


def test_a_group_with_most_of_the_messages_is_hot(report, maker):
    for number in range(1, 161):
        maker.add(number, number, group_id="big" if number <= 120 else f"g{number % 4}")
    maker.clock(200).flush()
    for number in range(1, 11):
        maker.remove(number)
    maker.clock(500).flush()
    found = report("skew", maker.directory)
    assert [(row["what"], row["value"], row["messages"]) for row in found] == [
        ("group", "big", 120),
        *(("group", f"g{number}", 10) for number in range(4)),
    ]
    big = found[0]
    assert (big["share"], big["of"], big["hot"]) == (0.75, 5, True)
    assert (big["p50_ms"], big["p99_ms"]) == (494.0, 499.0)
    assert not any(row["hot"] for row in found[1:])
