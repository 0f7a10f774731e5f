"""A delivery that failed counts where it failed, and for no other subscription of the topic."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.subscriptions.durable import DurableSubscription
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.openwire import AckType

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer

TOPIC = "topic://T"


def come(bench: "Bench", name: str) -> "tuple[Client, Consumer]":
    """Return the durable subscriber *name*, who has connected again."""
    client = bench.client(name)
    return client, client.consume(TOPIC, subscription_name="s")


def subscribe(bench: "Bench", *names: str) -> None:
    for name in names:
        come(bench, name)[0].leave()


def counts(client: "Client", consumer: "Consumer") -> list[int]:
    return [delivery.redeliveries for delivery in client.deliveries(consumer)]


def durable(bench: "Bench", name: str) -> DurableSubscription:
    region = bench.broker.registry.find(parse_destination(TOPIC))
    assert isinstance(region, Topic)
    return next(
        each
        for each in region.durables
        if each.subscription is not None and each.subscription.client_id == name
    )


def test_another_subscriber_gets_a_message_as_if_for_the_first_time(bench: "Bench") -> None:
    subscribe(bench, "anna", "bert")
    bench.client().send(TOPIC, "m")
    for failures in range(8):
        client, consumer = come(bench, "anna")
        assert counts(client, consumer) == [failures]
        client.leave()
    assert counts(*come(bench, "bert")) == [0]


def test_a_consumer_without_name_leaves_no_mark(bench: "Bench") -> None:
    subscribe(bench, "anna")
    passing = bench.client()
    consumer = passing.consume(TOPIC)
    other = bench.client()
    slow = other.consume(TOPIC, prefetch=1)
    for text in ("first", "second"):
        bench.client().send(TOPIC, text)
    assert counts(passing, consumer) == [0, 0]
    passing.leave()
    (first,) = other.deliveries(slow)
    other.acknowledge(slow, first.message)
    assert counts(other, slow) == [0]
    assert counts(*come(bench, "anna")) == [0, 0]


def test_only_what_the_application_has_seen_counts(bench: "Bench") -> None:
    subscribe(bench, "anna")
    sender = bench.client()
    for text in ("first", "second", "third"):
        sender.send(TOPIC, text)
    client, consumer = come(bench, "anna")
    held = client.deliveries(consumer)
    bench.broker.subscriptions.unsubscribe(consumer, held[1].message.sequence)
    client.leave()
    assert counts(*come(bench, "anna")) == [1, 1, 0]


def test_a_limit_holds_for_who_reached_it(make_bench: "type[Bench]") -> None:
    policy = DestinationPolicy(dead_letters=DeadLetterPolicy(maximum_redeliveries=1))
    bench = make_bench(T=policy)
    subscribe(bench, "anna", "bert")
    bench.client().send(TOPIC, "m")
    for _ in range(2):
        client, consumer = come(bench, "anna")
        assert len(client.deliveries(consumer)) == 1
        client.leave()
    assert bench.depth("ActiveMQ.DLQ") == 1
    assert counts(*come(bench, "anna")) == []
    assert counts(*come(bench, "bert")) == [0]


def test_a_rollback_after_its_consumer_went_counts_there(bench: "Bench") -> None:
    subscribe(bench, "anna", "bert")
    bench.client().send(TOPIC, "m")
    client, consumer = come(bench, "anna")
    transaction = client.begin()
    (held,) = client.deliveries(consumer)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, transaction, held.message.sequence, 1, AckType.STANDARD
    )
    client.leave()
    bench.tick()
    assert counts(*come(bench, "anna")) == [1]
    assert counts(*come(bench, "bert")) == [0]


@pytest.mark.parametrize("is_purged", [False, True])
def test_what_has_ended_is_counted_no_more(bench: "Bench", is_purged: bool) -> None:
    subscribe(bench, "anna")
    sender = bench.client()
    for number in range(5):
        sender.send(TOPIC, str(number))
    client, consumer = come(bench, "anna")
    client.leave()
    subscription = durable(bench, "anna")
    assert sorted(subscription.failures.values()) == [1] * 5
    if is_purged:
        assert subscription.drop(10) == 5
    else:
        client, consumer = come(bench, "anna")
        for delivery in client.deliveries(consumer):
            client.acknowledge(consumer, delivery.message)
    assert subscription.failures == {}
