"""Other policies for destinations that are there already."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.adopting import adopt_own_policy, adopt_policies
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.policies.advisories import AdvisoryPolicy
from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy
from lockkeeper.broker.policies.expiry import ExpiryPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.policies.prefetch import PrefetchPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.policies.subscription_recovery import (
    RecoveryStrategy,
    SubscriptionRecoveryPolicy,
)
from lockkeeper.message.destination import queue

if TYPE_CHECKING:
    from conftest import Bench

REDELIVERING = DestinationPolicy(redelivery=RedeliveryPolicy())
KEEPING = DestinationPolicy(
    subscription_recovery=SubscriptionRecoveryPolicy(RecoveryStrategy.LAST_IMAGE)
)


def adopt(bench: "Bench", **policies: DestinationPolicy) -> None:
    entries = [PolicyEntry(pattern, None, policy) for pattern, policy in policies.items()]
    adopt_policies(bench.broker, PolicyMap(entries))
    bench.tick()


def test_what_waits_expires_by_the_new_period(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=0)))
    client = bench.client()
    client.send("Q", "tea", expiration=bench.now + 100)
    bench.tick(10_000)
    assert bench.depth("Q") == 1
    adopt(bench, Q=DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=1_000)))
    bench.tick(1_000)
    assert bench.depth("Q") == 0
    adopt(bench, Q=DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=0)))
    client.send("Q", "tea", expiration=bench.now + 100)
    bench.tick(100_000)
    assert bench.depth("Q") == 1


def test_dead_letters_go_to_the_new_place(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "bad")
    adopt(bench, Q=DestinationPolicy(dead_letters=DeadLetterPolicy(queue="ELSEWHERE")))
    (delivery,) = client.deliveries(consumer)
    bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    bench.tick()
    assert (bench.depth("ELSEWHERE"), bench.depth("ActiveMQ.DLQ")) == (1, 0)


def test_a_limit_of_memory_holds_at_once(bench: "Bench") -> None:
    client = bench.client()
    client.send("Q", "one", persistent=False)
    adopt(bench, Q=DestinationPolicy(memory_limit=1))
    client.send("Q", "two", persistent=False)
    assert bench.depth("Q") == 1
    adopt(bench)
    assert bench.depth("Q") == 2


def test_the_next_consumer_gets_the_new_window(bench: "Bench") -> None:
    client = bench.client()
    assert client.consume("Q").prefetch == 1000
    adopt(bench, Q=DestinationPolicy(prefetch=PrefetchPolicy(queue=7)))
    assert client.consume("Q").prefetch == 7


def test_a_queue_begins_and_ends_to_tell_of_its_messages(bench: "Bench") -> None:
    listener = bench.client().consume("topic://ActiveMQ.Advisory.MessageDelivered.Queue.Q")
    client = bench.client()
    client.send("Q", "one")
    adopt(bench, Q=DestinationPolicy(advisories=AdvisoryPolicy(advisory_for_delivery=True)))
    client.send("Q", "two")
    assert len(listener.dispatched) == 1
    adopt(bench)
    client.send("Q", "three")
    assert len(listener.dispatched) == 1
    assert bench.depth("Q") == 3


def test_a_topic_begins_and_ends_to_keep_messages(bench: "Bench") -> None:
    client = bench.client()
    client.consume("topic://T")
    adopt(bench, T=KEEPING)
    client.send("topic://T", "kept")
    late = client.consume("topic://T", retroactive=True)
    assert client.texts(late) == ["kept"]
    adopt(bench)
    used = bench.broker.memory.used
    later = client.consume("topic://T", retroactive=True)
    assert client.texts(later) == []
    assert bench.broker.memory.used == used


def test_whether_priorities_count_stays_as_it_began(bench: "Bench") -> None:
    client = bench.client()
    client.send("Q", "low", priority=1)
    adopt(bench, Q=DestinationPolicy(prioritized_messages=True))
    client.send("Q", "high", priority=9)
    assert client.texts(client.consume("Q")) == ["low", "high"]


def test_redelivery_begins_where_no_policy_asked_for_it_before(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("Q")
    adopt(bench, Q=REDELIVERING)
    client.send("Q", "bad")
    (delivery,) = client.deliveries(consumer)
    bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    bench.tick(1_000)
    (again,) = client.deliveries(consumer)
    assert again.redeliveries == 1


def test_redelivery_needs_a_restart_while_jobs_of_before_wait(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=REDELIVERING)
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "bad")
    (delivery,) = client.deliveries(consumer)
    bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    bench.tick()
    without = make_bench(bench.store)
    with pytest.raises(BrokerError, match="redelivery needs a restart"):
        adopt(without, Q=REDELIVERING)
    assert without.broker.policies.find(queue("Q")) == DestinationPolicy()


def test_a_policy_of_its_own_survives_other_entries(bench: "Bench") -> None:
    mine, others = DestinationPolicy(memory_limit=1 << 20), DestinationPolicy(memory_limit=2 << 20)
    bench.broker.declare(queue("Q"))
    region = bench.broker.registry.find(queue("Q"))
    assert region is not None
    adopt_own_policy(bench.broker, queue("Q"), mine)
    adopt(bench, Q=others)
    assert region.policy == mine
    adopt_own_policy(bench.broker, queue("Q"), None)
    assert region.policy == others
    adopt_own_policy(bench.broker, queue("LATER"), mine)
    bench.broker.declare(queue("LATER"))
    later = bench.broker.registry.find(queue("LATER"))
    assert later is not None
    assert later.policy == mine
