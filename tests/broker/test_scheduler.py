"""Messages that come later, or again and again, as ActiveMQ's scheduler has them."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import (
    BrokerError,
    InvalidDestinationError,
    ResourceAllocationError,
)
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.settings import (
    BrokerSettings,
    MemoryUsage,
    SchedulerSettings,
    SystemUsage,
)
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

SETTINGS = BrokerSettings(scheduler=SchedulerSettings(enabled=True, time_zone="Europe/Berlin"))
MINUTE = 60_000
JOBS = "queue://ActiveMQ.Scheduler.Jobs"
MANAGEMENT = "topic://ActiveMQ.Scheduler.Management"


@pytest.fixture
def bench(make_bench: "type[Bench]") -> "Bench":
    """Return a broker that heeds schedules."""
    return make_bench(settings=SETTINGS)


def scheduled(**properties: Value) -> dict[str, Value]:
    """Return the properties of a schedule: delay=5 for AMQ_SCHEDULED_DELAY."""
    return {f"AMQ_SCHEDULED_{name.upper()}": value for name, value in properties.items()}


def after(bench: "Bench", client: "Client", *pauses: int) -> list[int]:
    """Return how many messages come after each pause of so many ms."""
    counts = []
    for pause in pauses:
        bench.tick(pause)
        counts.append(len(client.deliveries()))
    return counts


def test_a_delayed_message_comes_when_its_time_has_come(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    sent = client.send("Q", "later", properties=scheduled(delay=5_000))
    assert after(bench, client, 0, 4_999) == [0, 0]
    bench.tick(1)
    (delivery,) = client.deliveries()
    fields = decoded(delivery.message)
    assert str(fields.message_id) == str(decoded(sent).message_id)
    assert fields.destination == parse_destination("Q")
    assert fields.timestamp == bench.now
    assert properties_of(fields) == {"scheduledJobId": str(fields.message_id)}
    assert bench.depth(JOBS) == 0


@pytest.mark.parametrize(
    ("properties", "pauses", "counts"),
    [
        (scheduled(period=100, repeat=2), [99, 1, 100, 100, 500], [0, 1, 1, 1, 0]),
        (scheduled(delay=50, period=100, repeat=1), [50, 99, 1, 500], [1, 0, 1, 0]),
        (scheduled(delay=50, period=100, repeat=-1), [50, 100, 100, 100], [1, 1, 1, 1]),
        (scheduled(delay=50, period=100), [50, 500], [1, 0]),
        (scheduled(delay="50"), [49, 1], [0, 1]),
    ],
)
def test_a_message_comes_again_as_often_as_it_asks(
    bench: "Bench", properties: dict[str, Value], pauses: list[int], counts: list[int]
) -> None:
    client = bench.client()
    client.consume("Q")
    client.send("Q", "again", properties=properties)
    assert after(bench, client, *pauses) == counts


def test_every_repetition_is_a_message_of_its_own(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    client.send("Q", "again", properties=scheduled(period=100, repeat=3))
    identifiers = set()
    for _ in range(4):
        bench.tick(100)
        (delivery,) = client.deliveries()
        identifiers.add(decoded(delivery.message).message_id)
    assert len(identifiers) == 4


def test_a_cron_expression_is_in_the_time_zone_of_the_broker(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    client.send("Q", "lunch", properties=scheduled(cron="30 12 * * *"))
    # 14 November 2023, 22:13:20 UTC; at half past twelve in Berlin it is 11:30 UTC.
    due = int(datetime(2023, 11, 15, 11, 30, tzinfo=UTC).timestamp() * 1000)
    assert after(bench, client, due - bench.now - 1, 1) == [0, 1]
    assert after(bench, client, 24 * 60 * MINUTE - 1, 1) == [0, 1]


def test_a_cron_expression_begins_a_schedule_each_time(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    client.send(
        "Q", "x", properties=scheduled(cron="* * * * *", delay=1_000, period=1_000, repeat=1)
    )
    to_the_minute = MINUTE - bench.now % MINUTE
    assert after(bench, client, to_the_minute, 1_000, 1_000, 57_999) == [0, 1, 1, 0]
    assert after(bench, client, 1, 1_000, 1_000, 1_000) == [0, 1, 1, 0]


def test_jobs_outlive_the_broker(bench: "Bench", make_bench: "type[Bench]") -> None:
    client = bench.client()
    client.send("Q", "once", properties=scheduled(delay=10_000))
    client.send("Q", "again", properties=scheduled(delay=20_000, period=1_000, repeat=5))
    second = make_bench(bench.store, settings=SETTINGS)
    client = second.client()
    client.consume("Q")
    assert after(second, client, 10_000, 10_000, 1_000) == [1, 1, 1]
    third = make_bench(bench.store, settings=SETTINGS)
    third.tick(21_000)
    client = third.client()
    client.consume("Q")
    # What was delivered and not acknowledged, and what is left of the repetitions.
    assert after(third, client, 0, *[1_000] * 5) == [3, 1, 1, 1, 1, 0]


def test_bodies_of_jobs_stay_in_the_store_until_their_time_has_come(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    count, size = 60, 100_000
    store = KahaDBStore(tmp_path)
    client = make_bench(store, settings=SETTINGS).client()
    texts = [f"{number:03}" + "x" * size for number in range(count)]
    for number, text in enumerate(texts):
        client.send("Q", text, properties=scheduled(delay=10_000 * (1 + number)))
    store.close()
    store = KahaDBStore(tmp_path)
    again = make_bench(store, settings=SETTINGS)
    jobs = again.queue(JOBS)
    assert [each.message for each in jobs.waiting()] == [None] * count
    assert again.broker.memory.used == 0
    client = again.client()
    # Who browses them has no job brought back into memory, and sees all of it.
    answers = client.consume("ANSWERS")
    browse: dict[str, Value] = {"AMQ_SCHEDULER_ACTION": "BROWSE"}
    client.send(MANAGEMENT, "", properties=browse, reply_to=parse_destination("ANSWERS"))
    assert client.texts(answers) == texts
    assert [each.message for each in jobs.waiting()] == [None] * count
    client.consume("Q")
    found: list[str] = []
    for _ in range(count):
        again.tick(10_000)
        found += client.texts()
    assert found == texts
    assert jobs.depth() == 0
    store.close()


def test_a_job_that_fell_due_while_the_broker_was_away_is_delivered_at_once(
    bench: "Bench", make_bench: "type[Bench]"
) -> None:
    bench.client().send("Q", "late", properties=scheduled(delay=10))
    later = make_bench(bench.store, settings=SETTINGS)
    later.tick(60_000)
    client = later.client()
    client.consume("Q")
    assert client.texts() == ["late"]


def test_a_job_begins_with_its_transaction(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    for number, end in enumerate(("rollback", "commit")):
        transaction = client.begin(number)
        client.send("Q", end, properties=scheduled(delay=10), transaction_id=transaction)
        getattr(bench.broker.transactions, end)(client.connection, transaction, None)
    bench.tick(10)
    assert client.texts() == ["commit"]


@pytest.mark.parametrize("persistent", [True, False])
def test_what_is_delivered_is_as_persistent_as_what_was_sent(
    bench: "Bench", make_bench: "type[Bench]", persistent: bool
) -> None:
    client = bench.client()
    client.send("Q", "kept", properties=scheduled(delay=10), persistent=persistent)
    # The job itself is always kept.
    second = make_bench(bench.store, settings=SETTINGS)
    second.tick(10)
    assert second.depth("Q") == 1
    assert make_bench(bench.store, settings=SETTINGS).depth("Q") == int(persistent)


def test_the_time_to_live_begins_with_the_delivery(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    client.send("Q", "fresh", properties=scheduled(delay=60_000), expiration=bench.now + 1_000)
    bench.tick(60_000)
    (delivery,) = client.deliveries()
    assert decoded(delivery.message).expiration == bench.now + 1_000


@pytest.mark.parametrize(("sent", "delivered"), [(-1, 0), (-(2**63), 0), (2**63 - 1, 2**63 - 1)])
def test_what_lives_for_ever_may_come_later(bench: "Bench", sent: int, delivered: int) -> None:
    client = bench.client()
    client.consume("Q")
    client.send("Q", "old", properties=scheduled(delay=10), timestamp=7, expiration=sent)
    bench.tick(10)
    (delivery,) = client.deliveries()
    assert decoded(delivery.message).expiration == delivered


def test_a_topic_gets_scheduled_messages_too(bench: "Bench") -> None:
    client = bench.client()
    client.consume("topic://T")
    client.send("topic://T", "news", properties=scheduled(delay=10))
    assert after(bench, client, 9, 1) == [0, 1]


def test_jobs_are_browsed_through_the_management_topic(bench: "Bench") -> None:
    client = bench.client()
    client.consume("ANSWERS")
    reply_to = parse_destination("ANSWERS")
    first = client.send("Q", "first", properties=scheduled(delay=1_000, period=5, repeat=3))
    client.send("Q", "second", properties=scheduled(delay=9_000))
    browse: dict[str, Value] = {"AMQ_SCHEDULER_ACTION": "BROWSE"}
    client.send(MANAGEMENT, "", properties=browse, reply_to=reply_to)
    found = client.deliveries()
    assert len(found) == 2
    told = properties_of(decoded(found[0].message))
    assert told["scheduledJobId"] == str(decoded(first).message_id)
    assert told["AMQ_SCHEDULED_PERIOD"] == 5
    times: dict[str, Value] = {
        "ACTION_START_TIME": str(bench.now + 5_000),
        "ACTION_END_TIME": str(bench.now + 10_000),
    }
    client.send(MANAGEMENT, "", properties={**browse, **times}, reply_to=reply_to)
    assert client.texts() == ["second"]


def test_jobs_are_removed_through_the_management_topic(
    bench: "Bench", make_bench: "type[Bench]"
) -> None:
    client = bench.client()
    one = client.send("Q", "one", properties=scheduled(delay=10))
    for delay in (20, 30):
        client.send("Q", "more", properties=scheduled(delay=delay))
    identifier = str(decoded(one).message_id)
    remove: dict[str, Value] = {"AMQ_SCHEDULER_ACTION": "REMOVE", "scheduledJobId": identifier}
    client.send(MANAGEMENT, "", properties=remove)
    assert bench.depth(JOBS) == 2
    client.send(MANAGEMENT, "", properties=remove)
    client.send(MANAGEMENT, "", properties={"AMQ_SCHEDULER_ACTION": "REMOVEALL"})
    assert bench.depth(JOBS) == 0
    client.consume("Q")
    assert after(bench, client, 1_000) == [0]
    assert make_bench(bench.store, settings=SETTINGS).depth(JOBS) == 0


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        (scheduled(delay=-1), "AMQ_SCHEDULED_DELAY"),
        (scheduled(delay="soon"), "AMQ_SCHEDULED_DELAY"),
        (scheduled(delay=5, repeat=-2), "AMQ_SCHEDULED_REPEAT"),
        (scheduled(period=1.5), "AMQ_SCHEDULED_PERIOD"),
        (scheduled(cron="every day"), "AMQ_SCHEDULED_CRON"),
        (scheduled(cron="0 0 31 2 *"), "AMQ_SCHEDULED_CRON"),
        (scheduled(cron=f"{'9' * 5000} * * * *"), "AMQ_SCHEDULED_CRON"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(
    bench: "Bench", properties: dict[str, Value], named: str
) -> None:
    with pytest.raises(BrokerError, match=named):
        bench.client().send("Q", "never", properties=properties)
    assert bench.depth("Q") == bench.depth(JOBS) == 0


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({}, "AMQ_SCHEDULER_ACTION"),
        ({"AMQ_SCHEDULER_ACTION": "BROWSE"}, "JMSReplyTo"),
        (
            {
                "AMQ_SCHEDULER_ACTION": "REMOVEALL",
                "ACTION_START_TIME": "now",
                "ACTION_END_TIME": "1",
            },
            "ACTION_START_TIME",
        ),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    bench: "Bench", properties: dict[str, Value], named: str
) -> None:
    with pytest.raises(BrokerError, match=named):
        bench.client().send(MANAGEMENT, "", properties=properties)


def test_nobody_else_sends_to_the_queue_of_jobs_or_consumes_it(bench: "Bench") -> None:
    client = bench.client()
    for name in (JOBS, f"Q,{JOBS}"):
        with pytest.raises(InvalidDestinationError):
            client.send(name, "mine")
    with pytest.raises(InvalidDestinationError):
        client.consume(JOBS)


@pytest.mark.parametrize("redelivers", [False, True])
def test_where_no_schedule_is_heeded_nobody_sends_to_the_queue_of_jobs(
    make_bench: "type[Bench]", redelivers: bool
) -> None:
    policy = DestinationPolicy(redelivery=RedeliveryPolicy() if redelivers else None)
    bench = make_bench(Q=policy)
    client = bench.client()
    forged = scheduled(delay=1) | {"lockkeeperDestination": "queue://SECRET"}
    for name in (JOBS, f"Q,{JOBS}"):
        with pytest.raises(InvalidDestinationError, match="nobody may send there"):
            client.send(name, "mine", properties=forged)
    bench.tick(10)
    assert [bench.depth(name) for name in (JOBS, "Q", "queue://SECRET")] == [0, 0, 0]


def test_what_is_in_the_queue_of_jobs_and_is_none_ends_in_the_dead_letter_queue(
    bench: "Bench", make_bench: "type[Bench]"
) -> None:
    without = make_bench(bench.store)
    client, jobs = without.client(), parse_destination(JOBS)
    for properties in (None, scheduled(delay="x")):
        message = without.message(client, jobs, "nonsense", properties)
        # As an ActiveMQ may have left it there.
        without.broker.registry.ensure(without.broker.context, jobs).accept(message, None)
    without.tick()
    second = make_bench(bench.store, settings=SETTINGS)
    second.tick()
    assert second.depth(JOBS) == 0
    assert second.depth("ActiveMQ.DLQ") == 2


def test_a_job_whose_destination_is_gone_ends_in_the_dead_letter_queue(bench: "Bench") -> None:
    owner = bench.client()
    temporary = parse_destination("temp-queue://ID:1:1")
    bench.broker.destinations.create_temporary(owner.connection, temporary)
    client = bench.client()
    client.send(str(temporary), "too late", properties=scheduled(delay=10))
    owner.leave()
    bench.tick(10)
    assert bench.depth("ActiveMQ.DLQ") == 1


def test_a_job_that_is_due_waits_for_room(make_bench: "type[Bench]") -> None:
    limit = SystemUsage(memory_usage=MemoryUsage(limit=10_000))
    bench = make_bench(settings=replace(SETTINGS, system_usage=limit))
    client = bench.client()
    client.send("Q", "later", properties=scheduled(delay=10), persistent=False)
    used = bench.broker.memory.used
    # More than any transaction may use: as if others held it all.
    bench.broker.memory.used += 100 << 20
    bench.tick(10)
    assert (bench.depth("Q"), bench.depth(JOBS), bench.depth("ActiveMQ.DLQ")) == (0, 1, 0)
    bench.broker.memory.used -= 100 << 20
    bench.tick(999)
    assert bench.depth("Q") == 0
    bench.tick(1)
    assert (bench.depth("Q"), bench.depth(JOBS)) == (1, 0)
    assert bench.broker.memory.used <= used


def test_without_the_scheduler_such_messages_come_at_once(make_bench: "type[Bench]") -> None:
    bench = make_bench()
    client = bench.client()
    client.consume("Q")
    client.send("Q", "now", properties=scheduled(delay=5_000))
    assert client.texts() == ["now"]


def test_no_more_messages_are_scheduled_than_may_wait(make_bench: "type[Bench]") -> None:
    settings = replace(SETTINGS.scheduler, max_scheduled_messages=2)
    bench = make_bench(settings=replace(SETTINGS, scheduler=settings))
    client = bench.client()
    client.consume("Q")
    client.send("Q", "once", properties=scheduled(delay=1_000))
    client.send("Q", "again", properties=scheduled(period=1_000, repeat=2))
    refusal = r"^2 scheduled messages wait already \(scheduler\.maxScheduledMessages\)$"
    for _ in range(2):
        with pytest.raises(ResourceAllocationError, match=refusal):
            client.send("Q", "one more", properties=scheduled(delay=1_000))
    client.send("Q", "at once")
    assert after(bench, client, 0, 1_000) == [1, 2]
    client.send("Q", "one more", properties=scheduled(delay=5_000))
    assert after(bench, client, 1_000, 4_000) == [1, 2]
