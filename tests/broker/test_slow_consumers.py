"""Consumers that do not keep up are told from those that do, and ended where policy says so."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.outputs import ConsumerClosed, Disconnect
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.slow_consumers import SlowConsumerPolicy, SlowConsumerStrategy
from lockkeeper.message.openwire import AckType

if TYPE_CHECKING:
    from conftest import Bench, Client


PERIOD = 1_000


def policy(strategy: SlowConsumerStrategy, **fields: Any) -> DestinationPolicy:
    limits = {"check_period": PERIOD, "max_slow_duration": 3 * PERIOD} | fields
    return DestinationPolicy(slow_consumers=SlowConsumerPolicy(strategy, **limits))


def slow(**fields: Any) -> DestinationPolicy:
    return policy(SlowConsumerStrategy.ABORT_SLOW, **fields)


def slow_ack(**fields: Any) -> DestinationPolicy:
    limits = {"max_time_since_last_ack": 2 * PERIOD, "max_slow_duration": PERIOD}
    return policy(SlowConsumerStrategy.ABORT_SLOW_ACK, **(limits | fields))


def checks(bench: "Bench", count: int) -> None:
    for _ in range(count):
        bench.tick(PERIOD)


def closed(client: "Client") -> list[object]:
    """Return the tags of consumers that the client was told to close."""
    return [told.tag for told in client.outputs() if isinstance(told, ConsumerClosed)]


@pytest.mark.parametrize("name", ["T", "topic://T"])
def test_a_full_window_that_does_not_move_is_closed(make_bench: "type[Bench]", name: str) -> None:
    bench = make_bench(T=slow())
    client = bench.client()
    consumer = client.consume(name, prefetch=2)
    for number in range(4):
        client.send(name, f"m{number}")
    assert consumer.is_slow()
    # The first check sees the window for the first time; three more find it as it was.
    checks(bench, 3)
    assert closed(client) == []
    checks(bench, 1)
    assert closed(client) == [consumer.tag]
    assert not consumer.closed, "the client has a second to close it itself"
    checks(bench, 1)
    assert consumer.closed


def test_a_consumer_that_goes_on_is_left_alone(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=slow())
    client = bench.client()
    consumer = client.consume("T", prefetch=1)
    for number in range(10):
        client.send("T", f"m{number}")
    for _ in range(8):
        (delivery,) = client.deliveries(consumer)
        client.acknowledge(consumer, delivery.message)
        checks(bench, 2)
    assert consumer.is_slow()
    assert not any(isinstance(told, ConsumerClosed) for told in client.outputs())


def test_a_consumer_with_nothing_more_to_do_is_not_slow(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=slow())
    client = bench.client()
    consumer = client.consume("T", prefetch=1)
    client.send("T", "the only one")
    assert not consumer.is_slow()
    checks(bench, 10)
    assert closed(client) == []


def test_a_number_of_checks_may_be_the_limit(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=slow(max_slow_count=2, max_slow_duration=-1))
    client = bench.client()
    consumer = client.consume("T", prefetch=1)
    client.send("T", "one")
    client.send("T", "two")
    checks(bench, 2)
    assert closed(client) == []
    checks(bench, 1)
    assert closed(client) == [consumer.tag]


def test_what_a_slow_consumer_held_goes_to_another(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=slow())
    client, other = bench.client(), bench.client()
    client.consume("T", prefetch=1)
    client.send("T", "one")
    client.send("T", "two")
    checks(bench, 5)
    assert other.texts(other.consume("T")) == ["one", "two"]


def test_its_connection_may_go_with_it(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=slow(abort_connection=True))
    client = bench.client()
    client.consume("T", prefetch=1)
    client.send("T", "one")
    client.send("T", "two")
    checks(bench, 4)
    (end,) = (told for told in client.outputs() if isinstance(told, Disconnect))
    assert "too slow" in str(end.error)
    assert client.connection.is_ended
    assert client.connection.identifier not in bench.broker.connections
    assert bench.broker.next_deadline() is None, "nobody is left to look at"


def test_without_an_acknowledgement_for_long_a_consumer_is_closed(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench(T=slow_ack())
    client = bench.client()
    consumer = client.consume("T", prefetch=100)
    for number in range(3):
        client.send("T", f"m{number}")
    first, *_ = client.deliveries(consumer)
    checks(bench, 2)
    client.acknowledge(consumer, first.message)
    checks(bench, 3)
    assert closed(client) == [], "the acknowledgement counts from the check that saw it"
    checks(bench, 1)
    assert closed(client) == [consumer.tag]


def test_a_delivered_acknowledgement_is_one(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=slow_ack())
    client = bench.client()
    consumer = client.consume("T", prefetch=100)
    for number in range(9):
        client.send("T", f"m{number}")
    for delivery in client.deliveries(consumer):
        client.acknowledge(consumer, delivery.message, kind=AckType.DELIVERED)
        checks(bench, 1)
    assert closed(client) == []


@pytest.mark.parametrize("spared", [True, False])
def test_an_idle_consumer_is_spared_unless_it_is_not(
    make_bench: "type[Bench]", spared: bool
) -> None:
    bench = make_bench(T=slow_ack(ignore_idle_consumers=spared))
    client = bench.client()
    consumer = client.consume("T")
    checks(bench, 10)
    assert consumer.closed is not spared


def test_a_durable_subscription_outlives_its_slow_consumer(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=slow())
    client = bench.client("app")
    consumer = client.consume("topic://T", prefetch=1, subscription_name="sub")
    client.send("topic://T", "one")
    client.send("topic://T", "two")
    checks(bench, 5)
    assert consumer.closed
    client.outputs()
    again = client.consume("topic://T", subscription_name="sub")
    assert client.texts(again) == ["one", "two"]


def test_nobody_is_watched_without_a_policy(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("T", prefetch=1)
    client.send("T", "one")
    client.send("T", "two")
    assert consumer.is_slow()
    assert bench.broker.next_deadline() is None
    assert bench.broker.context.slow_consumers.find(consumer) is None
