"""What consumers could not process comes again later, if the policy asks the broker for that."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.context import MESSAGE_BYTES
from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.message.primitives import Long
from lockkeeper.message.rewrite import decoded, properties_of

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer

JOBS = "queue://ActiveMQ.Scheduler.Jobs"
DEAD = "ActiveMQ.DLQ"


def with_policy(redelivery: RedeliveryPolicy, **others: object) -> DestinationPolicy:
    """Return a policy of a destination whose broker redelivers."""
    return DestinationPolicy(redelivery=redelivery, **others)  # type: ignore[arg-type]


def refuse(bench: "Bench", client: "Client", consumer: "Consumer") -> int:
    """Give up on the one message that came; return its redelivery counter."""
    (delivery,) = client.deliveries(consumer)
    bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    bench.tick()
    return delivery.redeliveries


def test_a_message_comes_again_until_it_was_tried_often_enough(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench(Q=with_policy(RedeliveryPolicy(maximum_redeliveries=2)))
    client = bench.client()
    consumer = client.consume("Q")
    sent = client.send("Q", "bad", properties={"colour": "red"})
    assert refuse(bench, client, consumer) == 0
    bench.tick(999)
    assert client.deliveries() == []
    bench.tick(1)
    assert refuse(bench, client, consumer) == 1
    bench.tick(1_000)
    (delivery,) = client.deliveries()
    assert delivery.redeliveries == 2
    fields = decoded(delivery.message)
    assert str(fields.message_id) == str(decoded(sent).message_id)
    assert properties_of(fields)["colour"] == "red"
    assert bench.depth(DEAD) == 0
    bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    bench.tick(5_000)
    assert (bench.depth("Q"), bench.depth(JOBS), bench.depth(DEAD)) == (0, 0, 1)
    client.consume(DEAD)
    (dead,) = client.deliveries()
    assert properties_of(decoded(dead.message))["dlqDeliveryFailureCause"] == "broken"
    assert bench.broker.memory.used == MESSAGE_BYTES + len(dead.message.body)


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        (RedeliveryPolicy(initial_redelivery_delay=50, redelivery_delay=200), [50, 200, 200]),
        (
            RedeliveryPolicy(
                initial_redelivery_delay=100,
                use_exponential_back_off=True,
                back_off_multiplier=2,
            ),
            [100, 200, 400, 800],
        ),
        (
            RedeliveryPolicy(
                initial_redelivery_delay=100,
                redelivery_delay=100,
                use_exponential_back_off=True,
                maximum_redelivery_delay=600,
            ),
            [100, 500, 600, 600],
        ),
    ],
)
def test_the_time_between_redeliveries(
    make_bench: "type[Bench]", policy: RedeliveryPolicy, delays: list[int]
) -> None:
    bench = make_bench(Q=with_policy(policy))
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "bad")
    for delay in delays:
        refuse(bench, client, consumer)
        bench.tick(delay - 1)
        assert client.connection.outbox == []
        bench.tick(1)


def test_collision_avoidance_spreads_messages_that_failed_together() -> None:
    policy = RedeliveryPolicy(use_collision_avoidance=True)
    delays = {policy.next_delay(0, b"ID:x:%d" % number) for number in range(100)}
    assert len(delays) > 50
    assert min(delays) >= 850
    assert max(delays) <= 1150


def test_the_count_outlives_the_broker(make_bench: "type[Bench]") -> None:
    policy = with_policy(RedeliveryPolicy(maximum_redeliveries=2))
    bench = make_bench(Q=policy)
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "bad")
    for _ in range(3):
        refuse(bench, client, consumer)
        before, bench = bench, make_bench(bench.store, Q=policy)
        bench.now = before.now
        bench.tick(10_000)
        client = bench.client()
        consumer = client.consume("Q")
    assert (bench.depth("Q"), bench.depth(JOBS), bench.depth(DEAD)) == (0, 0, 1)


def test_without_a_limit_it_comes_for_ever(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=with_policy(RedeliveryPolicy(maximum_redeliveries=-1)))
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "bad")
    for expected in range(20):
        assert refuse(bench, client, consumer) == expected
        bench.tick(1_000)


def test_nothing_is_kept_of_what_was_tried_enough_if_the_policy_says_so(
    make_bench: "type[Bench]",
) -> None:
    policy = RedeliveryPolicy(maximum_redeliveries=0, send_to_dlq_if_max_retries_exceeded=False)
    bench = make_bench(Q=with_policy(policy))
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "bad")
    refuse(bench, client, consumer)
    assert (bench.depth("Q"), bench.depth(JOBS), bench.depth(DEAD)) == (0, 0, 0)
    assert bench.broker.memory.used == 0


def test_a_message_whose_time_runs_out_meanwhile_expires(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=with_policy(RedeliveryPolicy()))
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "short", expiration=bench.now + 500)
    refuse(bench, client, consumer)
    bench.tick(1_000)
    assert client.deliveries() == []
    assert bench.depth(DEAD) == 1


def test_messages_that_the_broker_itself_gives_up_on_come_again_too(
    make_bench: "type[Bench]",
) -> None:
    policy = with_policy(RedeliveryPolicy(), dead_letters=DeadLetterPolicy(maximum_redeliveries=0))
    bench = make_bench(Q=policy)
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "x")
    (delivery,) = client.deliveries()
    bench.broker.subscriptions.unsubscribe(consumer, delivery.message.sequence)
    bench.tick()
    assert (bench.depth("Q"), bench.depth(JOBS), bench.depth(DEAD)) == (0, 1, 0)
    bench.tick(1_000)
    assert bench.depth("Q") == 1


def test_subscriptions_of_topics_are_left_alone(make_bench: "type[Bench]") -> None:
    bench = make_bench(T=with_policy(RedeliveryPolicy()))
    client = bench.client("app")
    consumer = client.consume("topic://T", subscription_name="sub")
    client.send("topic://T", "bad")
    refuse(bench, client, consumer)
    assert (bench.depth(JOBS), bench.depth(DEAD)) == (0, 1)


@pytest.mark.parametrize("said", [10**17, 1 << 60, 1 << 62, (1 << 63) - 1])
def test_a_message_that_asks_for_ages_comes_again_all_the_same(
    make_bench: "type[Bench]", said: int
) -> None:
    bench = make_bench(Q=with_policy(RedeliveryPolicy(use_exponential_back_off=True)))
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "bad", properties={"redeliveryDelay": Long(said)}, redelivery_counter=1)
    refuse(bench, client, consumer)
    assert (bench.depth("Q"), bench.depth(JOBS), bench.depth(DEAD)) == (0, 1, 0)
    assert bench.broker.containment.records == {}
    bench.tick(1 << 40)
    assert len(client.deliveries(consumer)) == 1


@pytest.mark.replaces
def test_a_message_that_cannot_be_scheduled_becomes_a_dead_letter(
    make_bench: "type[Bench]", monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(Q=with_policy(RedeliveryPolicy()))
    client = bench.client()
    consumer = client.consume("Q")
    for text in ("first", "second"):
        client.send("Q", text)
    _, second = client.deliveries(consumer)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(bench.broker.context, "deliver_later", fail)
    bench.broker.poison(consumer, second.message.sequence, 2, "broken", None)
    bench.tick()
    assert (bench.depth("Q"), bench.depth(JOBS), bench.depth(DEAD)) == (0, 0, 2)

    monkeypatch.setattr(Backlog, "quarantine", fail)
    client.send("Q", "third")
    (third,) = client.deliveries(consumer)
    with pytest.raises(ZeroDivisionError):
        bench.broker.poison(consumer, third.message.sequence, 1, "broken", None)
    bench.tick()
    (again,) = client.deliveries(consumer)
    assert (again.message, bench.depth("Q")) == (third.message, 1)
