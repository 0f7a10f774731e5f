"""Messages for several destinations: lists that clients write, queues and topics that forward."""

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.routing import forwarding
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.settings import (
    BrokerSettings,
    LimitSettings,
    MemoryUsage,
    SystemUsage,
)
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.rewrite import decoded

if TYPE_CHECKING:
    from conftest import Bench

LISTED = "A,topic://B,C"


def declared(*composites: CompositeDestination) -> BrokerSettings:
    return BrokerSettings(composite_destinations=composites)


def test_a_list_reaches_every_destination_once(bench: "Bench") -> None:
    client = bench.client()
    subscriber = client.consume("topic://B")
    client.send("A,topic://B,C,A", "hello")
    assert client.texts(subscriber) == ["hello"]
    for name in "AC":
        (delivery,) = client.deliveries(client.consume(name))
        fields = decoded(delivery.message)
        assert fields.destination == queue(name)
        assert fields.original_destination == queue("A,topic://B,C,A")


def test_copies_are_separate_messages(bench: "Bench") -> None:
    client = bench.client()
    client.send("A,C", "hello")
    consumer = client.consume("A")
    (delivery,) = client.deliveries(consumer)
    client.acknowledge(consumer, delivery.message)
    assert (bench.depth("A"), bench.depth("C")) == (0, 1)
    assert bench.restart().depth("C") == 1


@pytest.mark.parametrize("persistent", [True, False])
def test_the_producer_is_answered_once(bench: "Bench", persistent: bool) -> None:
    client = bench.client()
    client.send(LISTED, "hello", persistent=persistent)
    assert len(client.outputs()) == 1


def test_a_bad_part_of_a_list_refuses_the_whole(bench: "Bench") -> None:
    client = bench.client()
    with pytest.raises(InvalidDestinationError, match="wildcard"):
        client.send("A,C.>", "hello")
    assert bench.depth("A") == 0


def test_a_list_in_a_transaction_waits_for_its_outcome(bench: "Bench") -> None:
    client = bench.client()
    transaction = client.begin()
    client.send("A,C", "undone", transaction_id=transaction)
    bench.broker.transactions.rollback(client.connection, transaction, None)
    transaction = client.begin()
    client.send("A,C", "done", transaction_id=transaction)
    assert bench.depth("A") == 0
    bench.broker.transactions.commit(client.connection, transaction, None)
    bench.tick()
    assert client.texts(client.consume("A")) == ["done"]
    assert client.texts(client.consume("C")) == ["done"]


def test_a_message_sent_again_after_a_failover_is_not_forwarded_twice(bench: "Bench") -> None:
    client = bench.client()
    client.connection.fault_tolerant = client.connection.reconnected = True
    message = client.send("A,C", "hello")
    bench.broker.send(client.connection, message, None)
    bench.tick()
    assert (bench.depth("A"), bench.depth("C")) == (1, 1)


def test_copies_that_would_fill_the_memory_are_refused(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "COPIES_BYTES_MAX", 500)
    client = bench.client()
    client.send("A", "x" * 300)
    with pytest.raises(ResourceAllocationError, match="3 copies of"):
        client.send("A,C,D", "x" * 300)


def test_copies_beyond_the_limit_of_the_memory_are_refused(make_bench: "type[Bench]") -> None:
    usage = SystemUsage(MemoryUsage(2_000_000))
    bench = make_bench(settings=BrokerSettings(system_usage=usage))
    client = bench.client()
    refusal = r"^3 copies of 9\d+ bytes are more than 2000000, .* systemUsage\.memoryUsage, "
    with pytest.raises(ResourceAllocationError, match=refusal):
        client.send("A,C,D", "x" * 900_000)
    client.send("A,C", "x" * 900_000)
    assert [bench.depth(name) for name in "ACD"] == [1, 1, 0]


def test_a_declared_queue_only_forwards(make_bench: "type[Bench]") -> None:
    rule = CompositeDestination("ALL", forward_to=(ForwardTo(queue="Q"), ForwardTo(topic="T")))
    bench = make_bench(settings=declared(rule))
    client = bench.client()
    subscriber = client.consume("topic://T")
    client.send("ALL", "a")
    assert client.texts(subscriber) == ["a"]
    (delivery,) = client.deliveries(client.consume("Q"))
    assert decoded(delivery.message).original_destination == queue("ALL")
    assert bench.depth("ALL") == 0
    assert bench.restart().depth("Q") == 1


def test_a_declared_topic_may_have_its_messages_too(make_bench: "type[Bench]") -> None:
    rule = CompositeDestination("ALL", "Topic", (ForwardTo(queue="Q"),), forward_only=False)
    bench = make_bench(settings=declared(rule))
    client = bench.client()
    subscriber = client.consume("topic://ALL")
    client.send("topic://ALL", "a")
    assert client.texts(subscriber) == ["a"]
    assert bench.depth("Q") == 1


def test_selectors_choose_what_is_forwarded(make_bench: "type[Bench]") -> None:
    low, high = ForwardTo(queue="LOW", selector="n < 2"), ForwardTo(queue="HIGH", selector="n > 3")
    bench = make_bench(settings=declared(CompositeDestination("ALL", forward_to=(low, high))))
    client = bench.client()
    for number in range(6):
        client.send("ALL", f"m{number}", properties={"n": number})
    assert client.texts(client.consume("LOW")) == ["m0", "m1"]
    assert client.texts(client.consume("HIGH")) == ["m4", "m5"]
    assert bench.depth("ALL") == 0


def test_what_nobody_wants_waits_for_no_room(make_bench: "type[Bench]") -> None:
    rule = CompositeDestination("MANY", forward_to=(ForwardTo(queue="LOW", selector="n < 2"),))
    bench = make_bench(settings=declared(rule), LOW=DestinationPolicy(memory_limit=1))
    client = bench.client()
    for text in ("first", "second"):
        client.send("MANY", text, properties={"n": 1}, persistent=False)
    assert (len(client.outputs()), len(bench.broker.flow.lines)) == (1, 1)
    client.send("MANY", "for nobody", properties={"n": 2}, persistent=False)
    assert len(client.outputs()) == 1
    consumer = client.consume("LOW", prefetch=1)
    for text in ("first", "second"):
        (delivery,) = client.deliveries(consumer)
        assert decoded(delivery.message).content == len(text).to_bytes(4, "big") + text.encode()
        client.acknowledge(consumer, delivery.message)
    assert bench.broker.flow.lines == {}


def test_what_nobody_wants_may_stay(make_bench: "type[Bench]") -> None:
    low = ForwardTo(queue="LOW", selector="n < 2")
    rule = CompositeDestination("ALL", forward_to=(low,), send_when_not_matched=True)
    client = make_bench(settings=declared(rule)).client()
    for number in range(4):
        client.send("ALL", f"m{number}", properties={"n": number})
    assert client.texts(client.consume("LOW")) == ["m0", "m1"]
    assert client.texts(client.consume("ALL")) == ["m2", "m3"]


def test_a_wildcard_forwards_from_all_it_stands_for(make_bench: "type[Bench]") -> None:
    rule = CompositeDestination("ORDERS.>", forward_to=(ForwardTo(queue="ORDERS.ALL"),))
    bench = make_bench(settings=declared(rule))
    client = bench.client()
    for name in ("ORDERS.EU", "ORDERS.US", "ORDERS.ALL"):
        client.send(name, name)
    assert client.texts(client.consume("ORDERS.ALL")) == ["ORDERS.EU", "ORDERS.US", "ORDERS.ALL"]
    assert bench.depth("ORDERS.EU") == 0


def test_a_circle_is_refused_and_named(make_bench: "type[Bench]") -> None:
    circle = (
        CompositeDestination("A", forward_to=(ForwardTo(queue="B"),)),
        CompositeDestination("B", forward_to=(ForwardTo(queue="A"),)),
    )
    client = make_bench(settings=declared(*circle)).client()
    with pytest.raises(InvalidDestinationError, match="queue://A to queue://B to queue://A"):
        client.send("A", "round")


def test_a_queue_without_rules_gets_the_very_message_that_was_sent(bench: "Bench") -> None:
    client = bench.client()
    sent = client.send("A", "hello")
    (delivery,) = client.deliveries(client.consume("A"))
    assert delivery.message is sent


def test_a_list_may_not_make_more_destinations_than_there_may_be(
    make_bench: "type[Bench]",
) -> None:
    client = make_bench(settings=BrokerSettings(limits=LimitSettings(destinations=2))).client()
    with pytest.raises(ResourceAllocationError, match=r"limits\.destinations"):
        client.send("A,B,C", "hello")


@pytest.mark.parametrize(("lists", "length"), [(1_000, 0), (200, 50_000)])
def test_lists_that_clients_write_do_not_stay_in_memory(
    bench: "Bench", lists: int, length: int
) -> None:
    client = bench.client()
    subscriber = client.consume("topic://B")
    tracemalloc.start()
    try:
        for number in range(lists):
            # Spaces are no part of a name: all of them list the same topics.
            listed = f"A,{' ' * (length + number // 100)}B,{' ' * (number % 100)}C"
            client.send(f"topic://{listed}", f"{number}", persistent=False)
            (delivery,) = client.deliveries(subscriber)
            fields = decoded(delivery.message)
            assert (fields.destination, fields.original_destination) == (topic("B"), topic(listed))
            client.acknowledge(subscriber, delivery.message)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 16 << 20
