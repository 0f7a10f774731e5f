"""Queues: order, turns, windows, acknowledgements, redelivery."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import AcknowledgeError
from lockkeeper.message.openwire import AckType
from lockkeeper.message.rewrite import decoded

if TYPE_CHECKING:
    from conftest import Bench


def test_messages_arrive_in_order(bench: "Bench") -> None:
    client = bench.client()
    for number in range(5):
        client.send("Q", f"m{number}")
    consumer = client.consume("Q")
    assert client.texts(consumer) == ["m0", "m1", "m2", "m3", "m4"]


def test_two_consumers_take_turns(bench: "Bench") -> None:
    sender, one, two = bench.client(), bench.client(), bench.client()
    one.consume("Q")
    two.consume("Q")
    for number in range(10):
        sender.send("Q", f"m{number}", wait=False)
    bench.tick()
    assert len(one.texts()) == len(two.texts()) == 5


def test_the_window_holds_back_what_is_not_acknowledged(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=2)
    for number in range(4):
        client.send("Q", f"m{number}")
    first, second = client.deliveries(consumer)
    client.acknowledge(consumer, first.message)
    assert client.texts(consumer) == ["m2"]
    client.acknowledge(consumer, second.message, kind=AckType.INDIVIDUAL)
    assert client.texts(consumer) == ["m3"]


def test_delivered_widens_the_window_until_the_acknowledgement(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=2)
    for number in range(6):
        client.send("Q", f"m{number}")
    held = client.deliveries(consumer)
    client.acknowledge(consumer, held[-1].message, count=2, kind=AckType.DELIVERED)
    held += client.deliveries(consumer)
    assert len(held) == 4
    client.acknowledge(consumer, held[-1].message, count=4)
    assert client.texts(consumer) == ["m4", "m5"]
    assert consumer.extension == 0


def test_a_range_acknowledges_exactly_its_messages(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q")
    for number in range(5):
        client.send("Q", f"m{number}")
    held = client.deliveries(consumer)
    client.acknowledge(consumer, held[3].message, count=2)
    client.leave()
    other = bench.client()
    assert other.texts(other.consume("Q")) == ["m0", "m1", "m4"]


def test_an_acknowledgement_of_what_was_not_dispatched_changes_nothing(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q")
    message = client.send("Q", "m")
    with pytest.raises(AcknowledgeError):
        client.acknowledge(consumer, message, count=2)
    with pytest.raises(AcknowledgeError):
        bench.broker.acknowledge(consumer, AckType.STANDARD, 12345, 1, None)
    assert bench.depth("Q") == 1


def test_a_lost_consumer_gives_back_in_order_ahead_of_newer_messages(bench: "Bench") -> None:
    lost, other = bench.client(), bench.client()
    lost.consume("Q", prefetch=3)
    for number in range(5):
        other.send("Q", f"m{number}")
    lost.leave()
    deliveries = other.deliveries(other.consume("Q"))
    ids = [decoded(each.message).message_id for each in deliveries]
    assert [each and each.producer_sequence for each in ids] == [1, 2, 3, 4, 5]
    assert [d.redeliveries for d in deliveries] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("last_delivered", "expected"),
    [(-1, [0, 0, 0]), (-2, [1, 1, 1]), ("second", [1, 1, 0]), (999, [0, 0, 0])],
)
def test_redeliveries_count_what_the_application_has_seen(
    bench: "Bench", last_delivered: "int | str", expected: list[int]
) -> None:
    client = bench.client()
    consumer = client.consume("Q")
    for number in range(3):
        client.send("Q", f"m{number}")
    held = client.deliveries(consumer)
    seen = held[1].message.sequence if last_delivered == "second" else int(last_delivered)
    bench.broker.subscriptions.unsubscribe(consumer, seen)
    assert [d.redeliveries for d in client.deliveries(client.consume("Q"))] == expected


def test_a_pull_brings_one_message_and_an_empty_queue_ends_it(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=0)
    client.send("Q", "a")
    client.send("Q", "b")
    assert client.texts() == []
    bench.broker.pull(consumer, -1)
    assert client.texts() == ["a"]
    bench.broker.pull(consumer, 0)
    assert client.texts() == ["b"]
    bench.broker.pull(consumer, -1)
    assert client.ends() == 1


def test_a_pull_waits_as_long_as_it_says(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=0)
    bench.broker.pull(consumer, 500)
    bench.tick(later=499)
    assert client.ends() == 0
    bench.tick(later=1)
    assert client.ends() == 1
    client.send("Q", "late")
    assert client.texts() == []


def test_a_pull_without_a_limit_is_served_when_a_message_comes(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=0)
    bench.broker.pull(consumer, 0)
    bench.tick(later=60_000)
    client.send("Q", "a")
    assert client.texts(consumer) == ["a"]


def test_a_peer_that_does_not_keep_up_is_left_out(bench: "Bench") -> None:
    slow, quick = bench.client(), bench.client()
    slow.consume("Q")
    quick.consume("Q")
    slow.connection.congested = True
    for number in range(4):
        quick.send("Q", f"m{number}")
    assert len(quick.texts()) == 4
    assert slow.texts() == []


def test_expired_messages_are_not_delivered(bench: "Bench") -> None:
    client = bench.client()
    client.send("Q", "stale", expiration=bench.now + 100)
    client.send("Q", "fresh")
    bench.tick(later=200)
    assert client.texts(client.consume("Q")) == ["fresh"]
    assert client.texts(client.consume("ActiveMQ.DLQ")) == ["stale"]


def test_a_wildcard_consumer_gets_queues_that_come_later(bench: "Bench") -> None:
    client = bench.client()
    client.send("ORDERS.EU", "old")
    consumer = client.consume("ORDERS.*")
    client.send("ORDERS.US", "new")
    client.send("ORDERS.US.CA", "too deep")
    assert client.texts(consumer) == ["old", "new"]


def test_a_composite_send_reaches_every_part(bench: "Bench") -> None:
    client = bench.client()
    client.send("A,topic://B,C", "all")
    bench.tick()
    assert client.texts(client.consume("A")) == ["all"]
    assert client.texts(client.consume("C")) == ["all"]


def test_a_browser_sees_everything_and_changes_nothing(bench: "Bench") -> None:
    client = bench.client()
    holder = client.consume("Q", prefetch=1)
    for number in range(3):
        client.send("Q", f"m{number}")
    client.outputs()
    browser = client.consume("Q", prefetch=2, browser=True)
    first = client.deliveries(browser)
    bench.broker.acknowledge(browser, AckType.STANDARD, first[-1].message.sequence, 2, None)
    bench.tick()
    outputs = client.outputs()
    assert len(first) + len(outputs) == 3 + 1
    assert bench.depth("Q") == 3
    assert len(holder.dispatched) == 1


def test_what_a_store_holds_survives_the_broker(bench: "Bench") -> None:
    client = bench.client()
    for number in range(3):
        client.send("Q", f"m{number}")
    client.send("Q", "volatile", persistent=False)
    after = bench.restart()
    late = after.client()
    assert late.texts(late.consume("Q")) == ["m0", "m1", "m2"]


def test_the_time_of_an_answered_pull_does_not_end_a_later_one(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=0)
    bench.broker.pull(consumer, 500)
    client.send("Q", "one")
    assert client.texts(consumer) == ["one"]
    bench.tick(400)
    bench.broker.pull(consumer, 500)
    bench.tick(200)
    assert client.ends() == 0
    bench.tick(301)
    assert client.ends() == 1


def test_many_answered_pulls_leave_nothing_behind(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=0)
    for _ in range(3000):
        bench.broker.pull(consumer, 1_000_000)
        client.send("Q", "one")
    assert bench.broker.next_deadline() is not None
    assert len(bench.broker.context.timers) <= 2002


@pytest.mark.parametrize("selector", [None, "JMSPriority = 4"])
def test_what_several_consumers_give_back_is_in_the_order_of_its_delivery(
    bench: "Bench", selector: str | None
) -> None:
    gone, client = bench.client(), bench.client()
    for _ in range(2):
        gone.consume("Q", prefetch=3, selector=selector)
    for number in range(8):
        client.send("Q", f"m{number}", wait=False)
    bench.tick()
    gone.leave()
    assert client.texts(client.consume("Q")) == [f"m{number}" for number in range(8)]


@pytest.mark.parametrize("closes", [False, True])
def test_a_rollback_puts_single_acknowledgements_back_in_order(
    bench: "Bench", closes: bool
) -> None:
    client, other = bench.client(), bench.client()
    consumer = client.consume("Q")
    for number in range(3):
        client.send("Q", f"m{number}")
    told = client.deliveries(consumer)
    transaction = client.begin()
    bench.broker.transactions.acknowledge(
        client.connection, consumer, transaction, told[1].message.sequence, 1, AckType.INDIVIDUAL
    )
    if closes:
        bench.broker.subscriptions.unsubscribe(consumer, -2)
    bench.broker.transactions.rollback(client.connection, transaction, None)
    client.leave()
    again = other.deliveries(other.consume("Q"))
    assert [each.message.key[-1:] for each in again] == [b"1", b"2", b"3"]
    assert [each.redeliveries for each in again] == [1, 1, 1]


@pytest.mark.parametrize("kind", [AckType.POISON, AckType.EXPIRED])
def test_a_refused_message_gives_back_what_it_added_to_the_window(
    bench: "Bench", kind: AckType
) -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=1)
    client.send("Q", "refused", wait=False)
    bench.tick()
    last = client.deliveries(consumer)[-1].message.sequence
    bench.broker.acknowledge(consumer, AckType.DELIVERED, last, 1, None)
    if kind is AckType.POISON:
        bench.broker.poison(consumer, last, 1, "refused", None)
    else:
        bench.broker.acknowledge(consumer, kind, last, 1, None)
    assert consumer.credit() == 1


def test_what_a_client_opens_after_the_end_of_its_connection_goes_with_its_socket(
    bench: "Bench",
) -> None:
    strange, other = bench.client(), bench.client()
    strange.leave()
    late = strange.consume("Q")
    other.send("Q", "m")
    assert len(strange.deliveries(late)) == 1
    strange.leave()
    assert strange.connection.consumers == {}
    assert other.texts(other.consume("Q")) == ["m"]


def test_messages_of_several_queues_are_acknowledged_together(bench: "Bench") -> None:
    client = bench.client()
    for number in range(3):
        client.send("A.ONE", f"one{number}")
        client.send("A.TWO", f"two{number}")
    consumer = client.consume("A.*")
    *_, last = client.deliveries(consumer)
    client.acknowledge(consumer, last.message, count=6)
    assert [bench.depth("A.ONE"), bench.depth("A.TWO")] == [0, 0]
    after = bench.restart()
    assert [after.depth("A.ONE"), after.depth("A.TWO")] == [0, 0]


@pytest.mark.parametrize("is_transacted", [False, True])
def test_queues_take_turns_in_the_small_window_of_a_wildcard(
    bench: "Bench", is_transacted: bool
) -> None:
    client = bench.client()
    for name in ("A.ONE", "A.TWO", "A.THREE"):
        for number in range(4):
            client.send(name, str(number))
    consumer, seen = client.consume("A.*", prefetch=2), list[str]()
    transaction = client.begin()
    while found := client.deliveries(consumer):
        seen += [delivery.message.destination.name for delivery in found]
        if is_transacted:
            last = found[-1].message.sequence
            bench.broker.transactions.acknowledge(
                client.connection, consumer, transaction, last, len(found), AckType.STANDARD
            )
            bench.tick()
        else:
            client.acknowledge(consumer, found[-1].message, count=len(found))
    assert Counter(seen) == {"A.ONE": 4, "A.TWO": 4, "A.THREE": 4}
    assert {*seen[:6]} == {"A.ONE", "A.TWO", "A.THREE"}
