"""What a topic keeps for consumers to come, and who gets it."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.subscription_recovery import (
    RecoveryStrategy,
    SubscriptionRecoveryPolicy,
)

if TYPE_CHECKING:
    from conftest import Bench

TOPIC = "topic://T"
TWO = SubscriptionRecoveryPolicy(RecoveryStrategy.FIXED_COUNT, maximum_count=2)
LAST = SubscriptionRecoveryPolicy(RecoveryStrategy.LAST_IMAGE)
KILOBYTES = SubscriptionRecoveryPolicy(RecoveryStrategy.FIXED_SIZED, maximum_size=3000)
TEN_SECONDS = SubscriptionRecoveryPolicy(RecoveryStrategy.TIMED, recover_duration=10_000)


def keeping(make_bench: "type[Bench]", recovery: SubscriptionRecoveryPolicy) -> "Bench":
    return make_bench(T=DestinationPolicy(subscription_recovery=recovery))


@pytest.mark.parametrize(
    ("recovery", "expected"),
    [
        (SubscriptionRecoveryPolicy(), []),
        (LAST, ["m3"]),
        (TWO, ["m2", "m3"]),
        (TEN_SECONDS, ["m0", "m1", "m2", "m3"]),
    ],
    ids=["nothing", "last image", "fixed count", "timed"],
)
def test_a_retroactive_consumer_gets_what_the_policy_keeps(
    make_bench: "type[Bench]", recovery: SubscriptionRecoveryPolicy, expected: list[str]
) -> None:
    bench = keeping(make_bench, recovery)
    client = bench.client()
    for number in range(4):
        client.send(TOPIC, f"m{number}", persistent=number % 2 == 0)
    late = bench.client()
    consumer = late.consume(TOPIC, retroactive=True)
    client.send(TOPIC, "new")
    assert late.texts(consumer) == [*expected, "new"]


def test_other_consumers_begin_with_the_next_message(make_bench: "type[Bench]") -> None:
    bench = keeping(make_bench, TWO)
    client = bench.client()
    client.send(TOPIC, "old")
    assert client.texts(client.consume(TOPIC)) == []


def test_every_consumer_is_retroactive_where_the_policy_says_so(make_bench: "type[Bench]") -> None:
    policy = DestinationPolicy(subscription_recovery=LAST, always_retroactive=True)
    bench = make_bench(T=policy)
    client = bench.client("app")
    client.send(TOPIC, "old")
    assert client.texts(client.consume(TOPIC)) == ["old"]
    # ActiveMQ's exception: a durable subscriber must ask for it.
    assert client.texts(client.consume(TOPIC, subscription_name="sub")) == []


def test_a_fixed_size_is_a_sum_of_bodies(make_bench: "type[Bench]") -> None:
    bench = keeping(make_bench, KILOBYTES)
    client = bench.client()
    for letter in "abcd":
        client.send(TOPIC, letter * 1200)
    assert [text[0] for text in client.texts(client.consume(TOPIC, retroactive=True))] == ["c", "d"]


def test_time_ends_what_is_kept_although_nothing_new_comes(make_bench: "type[Bench]") -> None:
    bench = keeping(make_bench, TEN_SECONDS)
    client = bench.client()
    client.send(TOPIC, "first")
    bench.tick(6_000)
    client.send(TOPIC, "second")
    bench.tick(6_000)
    assert client.texts(client.consume(TOPIC, retroactive=True)) == ["second"]
    bench.tick(20_000)
    assert bench.broker.memory.used > 0, "the consumer has not acknowledged"
    client.leave()
    assert bench.broker.memory.used == 0
    assert bench.broker.next_deadline() is None


def test_selectors_and_expiry_hold_for_old_messages_too(make_bench: "type[Bench]") -> None:
    bench = keeping(make_bench, TEN_SECONDS)
    client = bench.client()
    client.send(TOPIC, "other", properties={"colour": "blue"})
    client.send(TOPIC, "short-lived", properties={"colour": "red"}, expiration=bench.now + 10)
    client.send(TOPIC, "wanted", properties={"colour": "red"})
    bench.tick(50)
    consumer = client.consume(TOPIC, retroactive=True, selector="colour = 'red'")
    assert client.texts(consumer) == ["wanted"]


def test_what_is_kept_counts_as_memory_and_gives_way_when_that_is_short(
    make_bench: "type[Bench]",
) -> None:
    many = SubscriptionRecoveryPolicy(RecoveryStrategy.FIXED_COUNT, maximum_count=1000)
    bench = make_bench(memory_limit=40_000, T=DestinationPolicy(subscription_recovery=many))
    client = bench.client()
    for number in range(100):
        client.send(TOPIC, f"{number:03}" + "x" * 1000, persistent=False)
        assert bench.broker.memory.used <= 40_000
    texts = client.texts(client.consume(TOPIC, retroactive=True))
    assert texts[-1].startswith("099") and 5 < len(texts) < 20


def test_a_retroactive_durable_subscriber_gets_it_while_nothing_was_collected(
    make_bench: "type[Bench]",
) -> None:
    bench = keeping(make_bench, TWO)
    sender = bench.client()
    sender.send(TOPIC, "old")
    client = bench.client("app")
    durable = client.consume(TOPIC, subscription_name="sub", retroactive=True)
    (delivery,) = client.deliveries(durable)
    client.acknowledge(durable, delivery.message)
    client.leave()
    sender.send(TOPIC, "offline")
    back = bench.client("app")
    again = back.consume(TOPIC, subscription_name="sub", retroactive=True)
    assert back.texts(again) == ["offline"]


def test_all_memory_is_free_when_the_topic_goes(make_bench: "type[Bench]") -> None:
    bench = keeping(make_bench, TEN_SECONDS)
    client = bench.client()
    message = client.send(TOPIC, "m")
    assert bench.broker.memory.used > 0
    bench.broker.destinations.remove(message.destination, None)
    assert bench.broker.memory.used == 0
    assert bench.broker.next_deadline() is None
