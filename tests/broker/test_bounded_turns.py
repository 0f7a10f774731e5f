"""What is only looked at, or only ends, is bounded in a turn like what is sent.

Each case has more of it waiting than one turn may deal with. A single `Broker.tick` is a turn.
"""

from time import process_time
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.context import END_BYTES, LOOK_BYTES, SHARE_BYTES_MAX, TICK_BYTES_MAX
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy
from lockkeeper.broker.policies.expiry import ExpiryPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions import expiry, patterns
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.job_queue import JOB_BYTES, JobQueue
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.scheduling.searching import LOOKED_AT_ONCE
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.broker.subscriptions.browser import Browse
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.destination import Destination, parse_destination, path_matches, queue
from lockkeeper.message.openwire import AckType
from lockkeeper.store.kahadb.store import KahaDBStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.store.base import Reference

COUNT = 1_000
LOOKS_MAX = SHARE_BYTES_MAX // LOOK_BYTES
JOBS_MAX = TICK_BYTES_MAX // JOB_BYTES
ENDS_MAX = SHARE_BYTES_MAX // END_BYTES
# Nobody looks for what has expired: whoever is to get it finds out.
NEVER_LOOKED_FOR = DestinationPolicy(
    expiry=ExpiryPolicy(expire_messages_period=0),
    dead_letters=DeadLetterPolicy(process_expired=False),
)


def fill(client: "Client", name: str, count: int = COUNT, **fields: Any) -> None:
    """Send messages numbered from 0 on, in their text and their property `n`."""
    for number in range(count):
        client.send(name, str(number), wait=False, properties={"n": number}, **fields)
    client.bench.tick()


def subscribe(client: "Client", name: str, selector: str | None, **options: Any) -> "Consumer":
    """Begin a consumer, without a turn."""
    prefetch = options.pop("prefetch", 10)
    request = ConsumeRequest(
        "late", parse_destination(name), prefetch, selector=selector, tag="late", **options
    )
    return client.bench.broker.subscriptions.subscribe(client.connection, request, None)


def turn(bench: "Bench") -> None:
    bench.broker.tick(bench.now, bench.steady)


def q_of(bench: "Bench") -> "Queue":
    found = bench.broker.registry.find(queue("Q"))
    assert found is not None
    return found  # type: ignore[return-value]


def test_a_selective_consumer_looks_at_a_part_of_a_backlog_in_a_turn(bench: "Bench") -> None:
    client = bench.client()
    fill(client, "Q")
    consumer = subscribe(client, "Q", f"n = {COUNT - 1}")
    turn(bench)
    sorted_ones = COUNT - len(q_of(bench).ready)
    assert 0 < sorted_ones <= LOOKS_MAX
    bench.tick()
    assert client.texts(consumer) == [str(COUNT - 1)]


class CountingStore:
    """A journal that counts what is read back, in bytes."""

    def __init__(self, store: KahaDBStore) -> None:
        self.store, self.read_back = store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def load(self, references: "Sequence[Reference]", sequence: int) -> None:
        self.store.load(references, sequence)
        self.read_back += sum(reference.size for reference in references)


def test_large_messages_are_read_back_to_be_looked_at_a_few_in_a_turn(
    make_bench: "type[Bench]", tmp_path: "Path"
) -> None:
    store = CountingStore(KahaDBStore(tmp_path))
    bench = make_bench(store, memory_limit=SHARE_BYTES_MAX)
    client = bench.client()
    body = "x" * (SHARE_BYTES_MAX // 4)
    for number in range(40):
        client.send("Q", body, properties={"n": number})
    consumer = subscribe(client, "Q", "n = 39")
    turns = []
    while not consumer.dispatched:
        store.read_back = 0
        turn(bench)
        turns.append(store.read_back)
    assert sum(turns) >= 30 * len(body)
    assert max(turns) <= 3 * SHARE_BYTES_MAX
    store.close()


def test_who_does_not_wait_is_not_told_too_early_that_there_is_nothing(bench: "Bench") -> None:
    client = bench.client()
    fill(client, "Q")
    client.outputs()
    consumer = subscribe(client, "Q", f"n = {COUNT - 1}", prefetch=0)
    bench.broker.pull(consumer, -1)
    assert COUNT - len(q_of(bench).ready) <= LOOKS_MAX
    assert client.outputs() == []
    bench.tick()
    assert client.texts(consumer) == [str(COUNT - 1)]
    bench.broker.pull(consumer, -1)
    assert client.ends() == 1


def test_who_does_not_wait_is_told_after_a_second_of_looking(bench: "Bench") -> None:
    client = bench.client()
    fill(client, "Q")
    consumer = subscribe(client, "Q", "n < 0", prefetch=0)
    bench.broker.pull(consumer, -1)
    turn(bench)
    assert client.ends() == 0
    bench.steady += 1_000
    turn(bench)
    assert client.ends() == 1
    bench.tick()
    assert client.ends() == 0


def test_many_pulls_in_a_turn_look_no_further_than_a_few(bench: "Bench") -> None:
    client = bench.client()
    fill(client, "Q", 4 * COUNT)
    consumer = subscribe(client, "Q", "n < 0", prefetch=0)
    for _ in range(100):
        bench.broker.pull(consumer, 0)
    assert 4 * COUNT - len(q_of(bench).ready) <= 9 * LOOKS_MAX


def test_a_browser_looks_at_a_part_of_a_backlog_in_a_turn(bench: "Bench") -> None:
    client = bench.client()
    fill(client, "Q")
    browser = subscribe(client, "Q", f"n = {COUNT - 1}", browser=True)
    turn(bench)
    (browse,) = browser.backlogs
    assert isinstance(browse, Browse)
    assert 0 < COUNT - browse.depth() <= LOOKS_MAX
    bench.tick()
    assert client.texts(browser) == [str(COUNT - 1)]


@pytest.mark.parametrize("selector", [None, "n >= 0"], ids=["all", "selective"])
def test_what_has_expired_ends_over_several_turns(
    make_bench: "type[Bench]", selector: str | None
) -> None:
    bench = make_bench(Q=NEVER_LOOKED_FOR)
    client = bench.client()
    fill(client, "Q", expiration=bench.now + 10)
    client.send("Q", "lasting", properties={"n": COUNT})
    bench.now += 1_000
    consumer = subscribe(client, "Q", selector)
    statistics = q_of(bench).statistics
    turn(bench)
    assert 0 < statistics.expired <= ENDS_MAX + 1
    bench.tick()
    assert statistics.expired == COUNT
    assert client.texts(consumer) == ["lasting"]


def test_what_has_expired_for_a_durable_subscription_ends_over_several_turns(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench(T=NEVER_LOOKED_FOR)
    client = bench.client("c")
    first = client.consume("topic://T", subscription_name="s")
    bench.broker.subscriptions.unsubscribe(first, 0)
    fill(client, "topic://T", expiration=bench.now + 10)
    client.send("topic://T", "lasting")
    bench.now += 1_000
    consumer = subscribe(client, "topic://T", None, subscription_name="s")
    statistics = bench.topic("T").statistics
    turn(bench)
    assert 0 < statistics.expired <= ENDS_MAX + 1
    bench.tick()
    assert statistics.expired == COUNT
    assert client.texts(consumer) == ["lasting"]


MANY = 300


@pytest.mark.replaces
def test_a_wildcard_consumer_does_not_search_its_queues_for_each_message(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bench.client()
    for number in range(2 * MANY):
        client.send(f"MANY.{number % MANY}", str(number), wait=False)
    consumer = client.consume("MANY.>")
    assert len(consumer.dispatched) == 2 * MANY
    compared = 0
    equal = Destination.__eq__

    def counting(one: Destination, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(one, other)

    monkeypatch.setattr(Destination, "__eq__", counting)
    first, *_, last = client.deliveries(consumer)
    transaction = client.begin()
    broker = bench.broker
    broker.transactions.acknowledge(
        client.connection, consumer, transaction, first.message.sequence, 1, 2
    )
    broker.transactions.acknowledge(
        client.connection, consumer, transaction, last.message.sequence, MANY, 2
    )
    assert sum(q.in_flight() for q in broker.registry if q.destination.is_queue) == MANY - 1
    client.leave()
    assert compared < 20 * MANY
    assert bench.depth("MANY.1") == 2


@pytest.mark.replaces
def test_many_acknowledgements_of_a_turn_ask_many_queues_once(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bench.client()
    for number in range(MANY):
        client.send(f"MANY.{number}", str(number), wait=False)
    consumer = client.consume("MANY.>")
    asked = 0
    activate = Queue.activate

    def counting(queue: Queue) -> None:
        nonlocal asked
        asked += 1
        activate(queue)

    monkeypatch.setattr(Queue, "activate", counting)
    for delivery in client.deliveries(consumer):
        bench.broker.acknowledge(consumer, 2, delivery.message.sequence, 1, None)
    assert asked < 4 * MANY
    bench.tick()
    assert bench.depth("MANY.1") == 0


@pytest.mark.replaces
def test_a_new_queue_is_not_compared_with_every_wildcard(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bench.client()
    for number in range(MANY):
        client.consume(f"SHOP.{number}.>")
    compared = 0
    matches = path_matches

    def counting(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
        nonlocal compared
        compared += 1
        return matches(pattern, path)

    monkeypatch.setattr(patterns, "path_matches", counting)
    client.send("SHOP.7.ORDERS", "one")
    assert bench.broker.registry.is_watched(queue("SHOP.8"))
    assert not bench.broker.registry.is_watched(queue("SHOP.X"))
    assert compared < 10
    assert client.texts() == ["one"]


@pytest.mark.replaces
def test_a_look_for_what_has_expired_takes_several_turns(
    make_bench: "type[Bench]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "LOOKED_AT_ONCE", 100, raising=False)
    bench = make_bench(Q=DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=1_000)))
    client = bench.client()
    fill(client, "Q", expiration=bench.now + 100_000)
    client.send("Q", "shorter", expiration=bench.now + 1_500)
    looked = 0
    expiration_of = expiry._expiration_of

    def counting(reference: "Reference") -> int:
        nonlocal looked
        looked += 1
        return expiration_of(reference)

    monkeypatch.setattr(expiry, "_expiration_of", counting)
    bench.now += 3_000
    bench.steady += 3_000
    turn(bench)
    assert 0 < looked <= 200
    # What comes during the look is found in its own time; what goes is not looked for.
    client.bench.broker.send(
        client.connection,
        bench.message(client, queue("Q"), "later", expiration=bench.now + 2_000),
        None,
    )
    consumer = subscribe(client, "Q", None, prefetch=COUNT - 10)
    for _ in range(2 + COUNT // 100):
        turn(bench)
    assert q_of(bench).statistics.expired == 1
    assert len(consumer.dispatched) == COUNT - 10
    bench.tick(5_000)
    bench.tick()
    assert q_of(bench).statistics.expired == 2
    bench.tick(100_000)
    for _ in range(10):
        bench.tick()
    assert q_of(bench).statistics.expired == 12


def test_jobs_that_are_due_at_once_are_delivered_over_several_turns(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    client = bench.client()
    for number in range(4 * JOBS_MAX):
        client.send("Q", str(number), wait=False, properties={"AMQ_SCHEDULED_DELAY": 1_000})
    bench.tick()
    # A delay goes by one clock, what is read back by the other.
    for each in (bench, make_bench(bench.store, settings=bench.broker.settings)):
        jobs = each.broker.registry.find(JOBS)
        assert jobs is not None
        each.now += 2_000
        each.steady += 2_000
        for _ in range(3):
            before = jobs.depth()
            turn(each)
            assert 0 < before - jobs.depth() <= JOBS_MAX


def ask_for_jobs(client: "Client", action: str, reply: Reply) -> None:
    """Ask for all jobs, without a turn."""
    message = client.bench.message(
        client, MANAGEMENT, "", properties={ACTION: action}, reply_to=queue("ANSWERS")
    )
    client.bench.broker.send(client.connection, message, reply)


def test_jobs_are_browsed_over_several_turns(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    client, count = bench.client(), 4 * JOBS_MAX
    for number in range(count):
        later = {"AMQ_SCHEDULED_DELAY": 1_000 + number}
        client.send("Q", str(number), wait=False, properties=later)
    bench.tick()
    consumer = client.consume("ANSWERS", prefetch=2 * count)
    client.outputs()
    reply = Reply(client.connection, 77)
    ask_for_jobs(client, "BROWSE", reply)
    # One that ends meanwhile is not told of.
    jobs = bench.broker.registry.find(JOBS)
    assert isinstance(jobs, JobQueue)
    jobs.cancel(jobs.jobs()[-1][1])
    told, turns = 0, 0
    while reply not in client.connection.outbox:
        turn(bench)
        turns += 1
        assert 0 < len(consumer.dispatched) - told <= 2 * JOBS_MAX
        told = len(consumer.dispatched)
    assert turns >= 3
    assert client.texts(consumer) == [str(number) for number in range(count - 1)]


def test_jobs_that_are_gone_are_passed_over_several_turns(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    client, count = bench.client(), 9 * LOOKED_AT_ONCE
    for number in range(count):
        client.send("Q", "", wait=False, properties={"AMQ_SCHEDULED_DELAY": 1_000 + number})
    bench.tick()
    client.outputs()
    reply = Reply(client.connection, 77)
    ask_for_jobs(client, "BROWSE", reply)
    while not bench.depth("ANSWERS"):
        turn(bench)
    assert bench.depth("ANSWERS") <= 2 * JOBS_MAX
    jobs = bench.broker.registry.find(JOBS)
    assert isinstance(jobs, JobQueue)
    for _, reference in jobs.jobs():
        jobs.cancel(reference)
    turn(bench)
    assert reply not in client.connection.outbox
    turn(bench)
    assert reply in client.connection.outbox


def test_jobs_are_removed_over_several_turns(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    client, at_once = bench.client(), TICK_BYTES_MAX // END_BYTES
    for number in range(3 * at_once):
        client.send("Q", str(number), wait=False, properties={"AMQ_SCHEDULED_DELAY": 1_000})
    bench.tick()
    client.outputs()
    reply = Reply(client.connection, 77)
    ask_for_jobs(client, "REMOVEALL", reply)
    jobs = bench.broker.registry.find(JOBS)
    assert jobs is not None
    assert jobs.depth() >= at_once
    while reply not in client.connection.outbox:
        before = jobs.depth()
        turn(bench)
        assert before - jobs.depth() <= at_once + 1
        bench.broker.settle(bench.store.flush())
    assert jobs.depth() == 0


def time_of_commit(bench: "Bench", count: int) -> float:
    """Return the processor time of a commit that consumes from two queues in turn."""
    client = bench.client()
    consumers = [client.consume(name, prefetch=count) for name in "AB"]
    for _ in range(count // 2):
        for name in "AB":
            client.send(name, "", wait=False)
    bench.tick()
    client.outputs()
    held = zip(*(list(consumer.dispatched) for consumer in consumers), strict=True)
    identifier, transactions = client.begin(), bench.broker.transactions
    for pair in held:
        for consumer, last in zip(consumers, pair, strict=True):
            transactions.acknowledge(
                client.connection, consumer, identifier, last, 1, AckType.STANDARD
            )
    began = process_time()
    transactions.commit(client.connection, identifier, None)
    bench.tick()
    spent = process_time() - began
    assert [bench.depth(name) for name in "AB"] == [0, 0]
    client.leave()
    return spent


def test_a_commit_that_consumes_from_two_queues_in_turn_costs_no_more_for_each_message(
    bench: "Bench",
) -> None:
    few, many = (min(time_of_commit(bench, count) for _ in range(3)) for count in (5_000, 20_000))
    assert many < 7 * few
