"""Emptying and removing destinations by hand, whoever uses them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.outputs import ConsumerClosed
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.purging import SLICE_MESSAGES, purge
from lockkeeper.message.destination import Destination, queue, topic

if TYPE_CHECKING:
    from conftest import Bench


@dataclass
class Receipt:
    settled: bool = False

    def settle(self) -> None:
        self.settled = True


def purged(bench: "Bench", destination: Destination) -> list[int]:
    """Purge, and return how many messages each slice ended."""
    receipt = Receipt()
    counts = list(purge(bench.broker, destination, receipt))
    assert not receipt.settled
    bench.tick()
    assert receipt.settled
    return counts


def statistics(bench: "Bench", destination: Destination) -> tuple[int, int]:
    region = bench.broker.registry.find(destination)
    assert region is not None
    return region.statistics.dequeued, region.statistics.dead_lettered


def test_what_waits_is_gone_for_good_and_not_among_the_dead(bench: "Bench") -> None:
    client = bench.client()
    for number in range(SLICE_MESSAGES + 1):
        client.send("Q", str(number), wait=False, persistent=number % 2 == 0)
    bench.tick()
    assert purged(bench, queue("Q")) == [SLICE_MESSAGES, 1]
    assert statistics(bench, queue("Q")) == (SLICE_MESSAGES + 1, 0)
    assert bench.broker.memory.used == 0
    assert bench.restart().depth("Q") == 0


def test_what_a_consumer_holds_stays_its_own(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q", prefetch=2)
    for text in "abcde":
        client.send("Q", text)
    assert sum(purged(bench, queue("Q"))) == 3
    held = client.deliveries(consumer)
    assert len(held) == bench.depth("Q") == 2
    client.acknowledge(consumer, held[-1].message, 2)
    assert bench.depth("Q") == 0


def test_messages_of_groups_and_of_selective_consumers_go_too(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", prefetch=1)
    client.consume("Q", prefetch=1, selector="color = 'red'")
    for number in range(20):
        client.send("Q", str(number), group_id=f"g{number % 3}")
    held = bench.broker.registry.find(queue("Q")).in_flight()  # type: ignore[union-attr]
    assert sum(purged(bench, queue("Q"))) == 20 - held
    client.send("Q", "after")
    assert bench.depth("Q") == held + 1


def test_a_queue_by_priorities(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=DestinationPolicy(prioritized_messages=True))
    client = bench.client()
    for priority in (1, 9, 4):
        client.send("Q", str(priority), priority=priority)
    assert purged(bench, queue("Q")) == [3]
    assert bench.depth("Q") == 0


def test_of_a_topic_what_waits_for_durable_subscriptions_goes(bench: "Bench") -> None:
    client = bench.client("reader")
    client.consume("topic://T", subscription_name="news")
    client.leave()
    bench.client().send("topic://T", "hello")
    assert purged(bench, topic("T")) == [1]
    assert bench.depth("topic://T") == 0


@pytest.mark.parametrize("destination", [queue("NOTHING"), topic("NOTHING")])
def test_what_is_not_there_is_empty(bench: "Bench", destination: Destination) -> None:
    assert purged(bench, destination) == []


def test_a_queue_goes_with_messages_and_consumers(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q", prefetch=1)
    client.send("Q", "a")
    client.send("Q", "b")
    receipt = Receipt()
    bench.broker.destinations.remove_with_users(queue("Q"), receipt)
    bench.tick()
    assert receipt.settled and bench.broker.registry.find(queue("Q")) is None
    assert any(isinstance(each, ConsumerClosed) for each in client.outputs())
    assert bench.restart().depth("Q") == 0
    client.send("Q", "new")
    assert bench.depth("Q") == 1


def test_a_purge_ends_when_its_queue_is_removed(bench: "Bench") -> None:
    client = bench.client()
    for number in range(2 * SLICE_MESSAGES):
        client.send("Q", str(number), wait=False)
    bench.tick()
    slices = purge(bench.broker, queue("Q"), Receipt())
    assert next(slices) == SLICE_MESSAGES
    bench.broker.destinations.remove_with_users(queue("Q"), None)
    bench.tick()
    assert list(slices) == []
    bench.tick()
    assert bench.broker.memory.used == 0


def test_a_topic_goes_with_its_subscriptions(bench: "Bench") -> None:
    client = bench.client("reader")
    client.consume("topic://T", subscription_name="news")
    client.consume("topic://T")
    bench.broker.destinations.remove_with_users(topic("T"), None)
    bench.tick()
    assert bench.broker.registry.find(topic("T")) is None
    assert not bench.broker.subscriptions.durables
    assert not client.connection.consumers
    assert bench.restart().broker.registry.find(topic("T")) is None
