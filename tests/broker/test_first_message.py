"""The message that comes next: known of a long queue without that all of it is put in order."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.diagnostics.queues import why_queue
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.sub_queues import SubQueues
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.bodies import MessageType, decode_body
from lockkeeper.message.destination import queue
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded
from lockkeeper.server.declarations import Declarations

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.broker.regions.queue import Queue
    from lockkeeper.store.base import Reference

SETTINGS = BrokerSettings(statistics_queries=True, scheduler=SchedulerSettings(enabled=True))
JOBS = "ActiveMQ.Scheduler.Jobs"
FIRST = "ActiveMQ.Statistics.Destination.Include.First.Message.Timestamp"
HOUR = 3_600_000
COUNT = 60


class Counted(int):
    """A time that counts how often such times are compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) < int(other)


def first_timestamp(client: "Client", name: str) -> Value:
    """Return what statistics tell of when the first message of a queue came."""
    answers = client.consume("ANSWERS")
    asked = f"ActiveMQ.Statistics.Destination.{name}"
    client.send(asked, "", properties={FIRST: True}, reply_to=queue("ANSWERS"))
    (answer,) = client.deliveries(answers)
    body = decode_body(MessageType.MAP, decoded(answer.message).content)
    assert isinstance(body, dict)
    return body.get("firstMessageTimestamp")


def schedule(client: "Client", delays: list[int]) -> None:
    for delay in delays:
        properties: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": delay}
        came = client.bench.now + delay
        client.send("Q", "x", wait=False, properties=properties, broker_in_time=came)
    client.bench.tick()


def in_front(waiting: "Queue") -> "Reference | None":
    return next(iter(waiting.waiting()), None)


def test_of_jobs_it_is_the_one_that_is_due_next(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=SETTINGS)
    client, begun = bench.client(), bench.now
    delays = [HOUR + number * 37 % COUNT for number in range(COUNT)]
    schedule(client, [delay for delay in delays if delay != HOUR])
    schedule(client, [HOUR])
    jobs = bench.queue(JOBS)
    assert jobs.first() is in_front(jobs)
    assert first_timestamp(client, JOBS) == begun + HOUR
    assert [each.code for each in why_queue(jobs)] == ["scheduled"]
    while (first := jobs.first()) is not None:
        assert first is in_front(jobs)
        assert isinstance(jobs, JobQueue)
        jobs.cancel(first)
    assert jobs.depth() == 0


def test_jobs_are_not_sorted_for_that(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=SETTINGS)
    client = bench.client()
    schedule(client, [HOUR])
    jobs = bench.queue(JOBS)
    assert isinstance(jobs, JobQueue)
    ((job, reference),) = jobs.jobs()
    _, timer = jobs._jobs.pop(reference)
    dues = [job.due + number for number in range(COUNT)]
    random.Random(1).shuffle(dues)
    for due in dues:
        copy = type(reference)(reference.message, reference.size)
        jobs._jobs[copy] = (job._replace(due=Counted(due)), timer)
    Counted.compared = 0
    first = jobs.first()
    assert Counted.compared < COUNT
    assert first is not None
    assert jobs._jobs[first][0].due == job.due


Groups = Callable[[random.Random], dict[str, Any]]
KINDS: dict[str, Groups] = {
    "selectors": lambda chance: {"properties": {"n": chance.randrange(4)}},
    "groups": lambda chance: {"group_id": f"g{chance.randrange(9)}", "group_sequence": 2},
    "priorities": lambda chance: {
        "priority": chance.randrange(10),
        "properties": {"n": chance.randrange(4)},
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_of_a_queue_with_sub_queues_it_is_the_first_of_all(
    make_bench: "type[Bench]", kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    policy = DestinationPolicy(prioritized_messages=kind == "priorities")
    bench = make_bench(settings=SETTINGS, Q=policy)
    client = bench.client()
    consumer = client.consume("Q", prefetch=1, selector="n = 1" if kind != "groups" else None)
    for number in range(COUNT):
        wait = chance.random() < 0.3
        client.send("Q", f"{number}", wait=wait, **KINDS[kind](chance))
        found = bench.queue("Q")
        assert found.first() is in_front(found)
    bench.tick()
    assert bench.queue("Q").sub_queues is not None
    for _ in range(COUNT):
        for delivery in client.deliveries(consumer):
            client.acknowledge(consumer, delivery.message)
        found = bench.queue("Q")
        assert found.first() is in_front(found)


def test_a_queue_with_sub_queues_is_not_sorted_for_that(
    make_bench: "type[Bench]", monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(settings=SETTINGS)
    client, begun = bench.client(), bench.now
    client.consume("Q", selector="n = 1")
    for number in range(COUNT):
        client.send("Q", f"{number}", properties={"n": 2}, broker_in_time=begun + number)

    def refuse(_: SubQueues) -> "list[Reference]":
        raise AssertionError("everything is sorted")

    monkeypatch.setattr(SubQueues, "in_order", refuse)
    assert first_timestamp(client, "Q") == begun
    assert [each.code for each in why_queue(bench.queue("Q"))] == ["selector"]
    bench.tick(HOUR)
    view = Declarations().view(bench.broker, queue("Q"))
    assert view is not None
    assert view["oldestMessageAge"] == bench.now - begun


def test_of_a_topic_there_is_none(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=SETTINGS)
    client = bench.client()
    client.consume("topic://T")
    client.send("topic://T", "x")
    assert bench.topic("T").first() is None


def test_of_an_empty_queue_there_is_none(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=SETTINGS)
    client = bench.client()
    client.consume("Q")
    client.consume("SORTED", selector="n = 1")
    assert [bench.queue(name).first() for name in ("Q", "SORTED", JOBS)] == [None] * 3
