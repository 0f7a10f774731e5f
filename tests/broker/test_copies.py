"""Copies of one message that meet again are messages of their own, whatever happens to each."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.diagnostics.queues import why_message
from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy, DeadLetterStrategy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.rewrite import decoded
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

DEAD_LETTERS = "ActiveMQ.DLQ"
COLLECTORS = ("Consumer.A.VirtualTopic.NEWS", "Consumer.B.VirtualTopic.NEWS")


def fail(bench: "Bench", client: "Client", consumer: Any) -> str:
    """Give up the message that a consumer was sent; returns its JMSMessageID."""
    (delivery,) = client.deliveries(consumer)
    bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
    return str(decoded(delivery.message).message_id)


def two_dead_letters(bench: "Bench") -> set[str]:
    """Let both copies of one message die; returns their JMSMessageIDs."""
    clients = [bench.client() for _ in COLLECTORS]
    consumers = [client.consume(name) for client, name in zip(clients, COLLECTORS, strict=True)]
    clients[0].send("topic://VirtualTopic.NEWS", "news")
    failed = {fail(bench, *pair) for pair in zip(clients, consumers, strict=True)}
    bench.tick()
    for client in clients:
        client.leave()
    return failed


def restarted(make_bench: "type[Bench]", bench: "Bench", path: Path, **policies: Any) -> "Bench":
    bench.tick()
    bench.store.close()
    return make_bench(KahaDBStore(path), **policies)


@pytest.mark.parametrize("consumed", [0, 1, 2])
def test_dead_letters_of_one_message_outlive_a_restart_each_for_itself(
    make_bench: "type[Bench]", tmp_path: Path, consumed: int
) -> None:
    bench = make_bench(KahaDBStore(tmp_path))
    failed = two_dead_letters(bench)
    client = bench.client()
    consumer = client.consume(DEAD_LETTERS, prefetch=max(consumed, 1))
    letters = [delivery.message for delivery in client.deliveries(consumer)]
    for letter in letters[:consumed]:
        client.acknowledge(consumer, letter)
    client.leave()
    bench = restarted(make_bench, bench, tmp_path)
    assert bench.depth(DEAD_LETTERS) == 2 - consumed
    client = bench.client()
    left = [each.message for each in client.deliveries(client.consume(DEAD_LETTERS))]
    assert len(failed) == 1
    assert {str(decoded(letter).message_id) for letter in left} <= failed
    origins = {str(decoded(letter).original_destination) for letter in left}
    assert len(origins) == 2 - consumed
    bench.store.close()


def test_ids_of_copies_are_never_used_again(make_bench: "type[Bench]", tmp_path: Path) -> None:
    bench = make_bench(KahaDBStore(tmp_path))
    for expected in (2, 4, 6):
        two_dead_letters(bench)
        bench = restarted(make_bench, bench, tmp_path)
        assert bench.depth(DEAD_LETTERS) == expected
    client = bench.client()
    letters = [each.message for each in client.deliveries(client.consume(DEAD_LETTERS))]
    assert len({letter.key for letter in letters}) == 6
    bench.store.close()


def test_messages_that_fail_in_two_queues_come_again_in_both(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    redelivered = DestinationPolicy(
        redelivery=RedeliveryPolicy(maximum_redeliveries=5, initial_redelivery_delay=1000)
    )
    names: dict[str, Any] = {name.replace(".", "_"): redelivered for name in (*COLLECTORS, "OTHER")}
    bench = make_bench(KahaDBStore(tmp_path), **names)
    other = bench.client()
    innocent = other.consume("OTHER")
    two_dead_letters_to_be = [bench.client() for _ in COLLECTORS]
    consumers = [
        client.consume(name)
        for client, name in zip(two_dead_letters_to_be, COLLECTORS, strict=True)
    ]
    other.send("topic://VirtualTopic.NEWS", "news")
    other.send("OTHER", "innocent")
    fail(bench, other, innocent)
    for client, consumer in zip(two_dead_letters_to_be, consumers, strict=True):
        fail(bench, client, consumer)
        client.leave()
    bench = restarted(make_bench, bench, tmp_path, **names)
    assert bench.depth("ActiveMQ.Scheduler.Jobs") == 3
    bench.tick(1000)
    client = bench.client()
    for name, text in (*((name, "news") for name in COLLECTORS), ("OTHER", "innocent")):
        assert client.texts(client.consume(name)) == [text]
    bench.store.close()


def test_a_job_is_cancelled_by_its_own_id(make_bench: "type[Bench]") -> None:
    redelivered = DestinationPolicy(redelivery=RedeliveryPolicy(initial_redelivery_delay=1000))
    policies: dict[str, Any] = {name.replace(".", "_"): redelivered for name in COLLECTORS}
    bench = make_bench(**policies)
    two_dead_letters(bench)
    queue = bench.queue("ActiveMQ.Scheduler.Jobs")
    assert isinstance(queue, JobQueue)
    (first, reference), (second, _) = ((job.identifier, each) for job, each in queue.jobs())
    assert queue.named(first) == [reference]
    queue.cancel(reference)
    assert [job.identifier for job, _ in queue.jobs()] == [second] != [first]


def test_jobs_that_share_an_id_are_both_carried_out(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    client = bench.client()
    later = {"AMQ_SCHEDULED_DELAY": 1000}
    message = client.send("Q", "twice", properties=later)
    bench.broker.send(client.connection, message, None)
    bench.tick(1000)
    assert bench.depth("Q") == 2
    assert bench.depth("ActiveMQ.Scheduler.Jobs") == 0


def test_each_durable_subscription_with_a_dead_letter_queue_may_bury_its_copy(
    make_bench: "type[Bench]",
) -> None:
    rules = DeadLetterPolicy(DeadLetterStrategy.INDIVIDUAL, destination_per_durable_subscriber=True)
    bench = make_bench(T=DestinationPolicy(dead_letters=rules))
    pairs = []
    for name in "ab":
        client = bench.client(name)
        pairs.append((client, client.consume("topic://T", subscription_name="s")))
    bench.client().send("topic://T", "news")
    for client, consumer in pairs:
        fail(bench, client, consumer)
    bench.tick()
    assert [bench.depth(f"ActiveMQ.DLQ.Topic.T.{name}:s") for name in "ab"] == [1, 1]


def test_a_consumer_that_wants_nothing_of_its_own_gets_none_of_its_dead_letters(
    bench: "Bench",
) -> None:
    sender = bench.client()
    consumer = sender.consume("Q")
    sender.send("Q", "mine")
    fail(bench, sender, consumer)
    bench.tick()
    own = sender.consume(DEAD_LETTERS, no_local=True)
    assert sender.texts(own) == []
    other = bench.client()
    assert other.texts(other.consume(DEAD_LETTERS, no_local=True)) == ["mine"]


def test_why_finds_a_copy_by_the_id_that_is_shown(bench: "Bench") -> None:
    (shown,) = two_dead_letters(bench)
    queue = bench.queue(DEAD_LETTERS)
    assert why_message(bench.broker, queue, shown)[0].code == "waiting"
