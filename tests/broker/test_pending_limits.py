"""Slow consumers of topics lose messages, if the policy says so, and nobody else does."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.policies.message_eviction import (
    MessageEvictionPolicy,
    MessageEvictionStrategy,
)
from lockkeeper.broker.policies.pending_message_limit import (
    PendingMessageLimitPolicy,
    PendingMessageLimitStrategy,
)
from lockkeeper.broker.policies.policy import DestinationPolicy

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer

TOPIC = "topic://T"
LOWEST = MessageEvictionPolicy(MessageEvictionStrategy.OLDEST_MESSAGE_WITH_LOWEST_PRIORITY)
BY_SYMBOL = MessageEvictionPolicy(MessageEvictionStrategy.UNIQUE_PROPERTY_MESSAGE, "symbol")


def constant(limit: int, **policies: Any) -> DestinationPolicy:
    strategy = PendingMessageLimitStrategy.CONSTANT
    return DestinationPolicy(
        pending_message_limit=PendingMessageLimitPolicy(strategy, limit), **policies
    )


def drain(client: "Client", consumer: "Consumer") -> list[str]:
    """Return everything the consumer gets when it acknowledges one after the other."""
    texts = []
    while deliveries := client.deliveries(consumer):
        for delivery in deliveries:
            texts.append(bytes(delivery.message.body).split(b"<")[1].split(b">")[0].decode())
            client.acknowledge(consumer, delivery.message)
    return texts


def discarded(bench: "Bench") -> int:
    (region,) = (one for one in bench.broker.registry if one.destination.name == "T")
    return region.statistics.discarded


def test_without_a_policy_everything_waits(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=1, pending_limit=2)
    for number in range(10):
        client.send(TOPIC, f"<{number}>", persistent=False)
    assert drain(client, consumer) == [str(number) for number in range(10)]


@pytest.mark.parametrize("at_once", [True, False])
def test_the_window_is_filled_and_the_newest_are_kept(
    make_bench: "type[Bench]", at_once: bool
) -> None:
    bench = make_bench(T=constant(2))
    client, quick = bench.client(), bench.client()
    consumer = client.consume(TOPIC, prefetch=3)
    quick.consume(TOPIC)
    for number in range(10):
        quick.send(TOPIC, f"<{number}>", wait=not at_once, persistent=False)
    bench.tick()
    assert len(quick.texts()) == 10
    assert discarded(bench) == 5
    assert drain(client, consumer) == ["0", "1", "2", "8", "9"]


def test_a_limit_of_none_keeps_only_the_window(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(0))
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=2)
    for number in range(5):
        client.send(TOPIC, f"<{number}>")
    assert drain(client, consumer) == ["0", "1"]
    assert discarded(bench) == 3


def test_a_consumer_may_ask_for_less_than_the_policy_allows(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(3))
    one, other = bench.client(), bench.client()
    modest = one.consume(TOPIC, prefetch=1, pending_limit=1)
    greedy = other.consume(TOPIC, prefetch=1, pending_limit=100)
    for number in range(9):
        one.send(TOPIC, f"<{number}>", persistent=False)
    assert drain(one, modest) == ["0", "8"]
    assert drain(other, greedy) == ["0", "6", "7", "8"]


def test_a_rate_is_a_multiple_of_the_window(make_bench: "type[Bench]") -> None:
    rate = PendingMessageLimitPolicy(PendingMessageLimitStrategy.PREFETCH_RATE, multiplier=1.5)
    bench = make_bench(T=DestinationPolicy(pending_message_limit=rate))
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=2)
    for number in range(9):
        client.send(TOPIC, f"<{number}>", persistent=False)
    assert drain(client, consumer) == ["0", "1", "6", "7", "8"]


def test_the_lowest_priority_goes_first(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(3, message_eviction=LOWEST))
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=1)
    for number, priority in enumerate([4, 9, 1, 5, 1, 5, 0]):
        client.send(TOPIC, f"<{number}>", persistent=False, priority=priority)
    assert drain(client, consumer) == ["0", "1", "3", "5"]


def test_of_each_value_the_newest_stays(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(4, message_eviction=BY_SYMBOL))
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=1)
    for number, symbol in enumerate(["A", "A", "B", "A", "C", "B"]):
        client.send(TOPIC, f"<{number}>", persistent=False, properties={"symbol": symbol})
    assert drain(client, consumer) == ["0", "3", "4", "5"]


def test_of_different_values_the_oldest_goes(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(2, message_eviction=BY_SYMBOL))
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=1)
    for number in range(5):
        client.send(TOPIC, f"<{number}>", persistent=False, properties={"symbol": number})
    assert drain(client, consumer) == ["0", "3", "4"]


def test_expired_messages_make_room_first(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(2))
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=1)
    client.send(TOPIC, "<0>")
    client.send(TOPIC, "<1>")
    client.send(TOPIC, "<2>", expiration=bench.now + 5)
    bench.tick(10)
    client.send(TOPIC, "<3>")
    assert discarded(bench) == 0
    assert drain(client, consumer) == ["0", "1", "3"]


def test_a_durable_subscription_loses_nothing(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(1))
    client = bench.client("app")
    consumer = client.consume(TOPIC, prefetch=1, subscription_name="sub")
    for number in range(6):
        client.send(TOPIC, f"<{number}>")
    assert drain(client, consumer) == [str(number) for number in range(6)]


def test_what_is_discarded_weighs_nothing(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(2))
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=1)
    for number in range(50):
        client.send(TOPIC, f"<{number}>")
    drain(client, consumer)
    assert bench.broker.memory.used == 0


def test_the_oldest_goes_although_the_highest_come_first(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=constant(3, prioritized_messages=True))
    client = bench.client()
    consumer = client.consume(TOPIC, prefetch=1)
    for number, priority in enumerate([4, 9, 1, 5, 1, 6]):
        client.send(TOPIC, f"<{number}>", persistent=False, priority=priority)
    assert drain(client, consumer) == ["0", "5", "3", "4"]
