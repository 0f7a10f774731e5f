"""Requests about jobs: which jobs they are about, and what they cost others while they last."""

from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.primitives import Value

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer

SETTINGS = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
HOUR = 3_600_000
MINUTE = 60_000
COUNT = 300


@pytest.fixture
def bench(make_bench: "type[Bench]") -> "Bench":
    """Return a broker that heeds schedules."""
    return make_bench(settings=SETTINGS)


def scheduled(**properties: Value) -> dict[str, Value]:
    """Return the properties of a schedule: delay=5 for AMQ_SCHEDULED_DELAY."""
    return {f"AMQ_SCHEDULED_{name.upper()}": value for name, value in properties.items()}


def schedule(client: "Client", *texts: str, **fields: Any) -> None:
    """Send jobs that come in an hour, without a turn."""
    for text in texts:
        client.send("Q", text, wait=False, properties=scheduled(delay=HOUR), **fields)


def ask(client: "Client", action: str, reply_to: str = "ANSWERS", **properties: Value) -> Reply:
    """Ask for something without a turn; returns what it is answered with when it is done."""
    message = client.bench.message(
        client,
        MANAGEMENT,
        "",
        properties={ACTION: action, **properties},
        reply_to=parse_destination(reply_to),
    )
    reply = Reply(client.connection, 77)
    client.bench.broker.send(client.connection, message, reply)
    return reply


def turns_until(client: "Client", reply: Reply) -> int:
    """Return how many turns it takes until a request is answered."""
    bench, turns = client.bench, 0
    while reply not in client.connection.outbox:
        assert turns < 10 * COUNT
        bench.broker.tick(bench.now, bench.steady)
        turns += 1
    return turns


def waiting_jobs(bench: "Bench", consumer: "Consumer", client: "Client") -> list[str]:
    """Return the texts of all jobs, as somebody is told who asks."""
    ask(client, "BROWSE", str(consumer.destination))
    bench.tick(1)
    return client.texts(consumer)


@pytest.mark.parametrize(
    ("again", "pause"),
    [
        (scheduled(delay=5, period=10 * MINUTE, repeat=9), 10),
        (scheduled(cron="* * * * *"), MINUTE),
        (scheduled(cron="* * * * *", delay=MINUTE, period=MINUTE, repeat=9), MINUTE),
    ],
    ids=["repeated", "cron", "begun by cron"],
)
def test_all_jobs_are_those_that_there_are_when_somebody_asks_to_remove_them(
    bench: "Bench", again: dict[str, Value], pause: int
) -> None:
    client, other = bench.client(), bench.client()
    schedule(client, *["old"] * COUNT)
    client.send("Q", "again", wait=False, properties=again)
    bench.tick()
    ask(client, "BROWSE")
    reply = ask(client, "REMOVEALL")
    # Even what claims to be older is not; what comes again is what it was.
    schedule(other, "new", "newer")
    forged: dict[str, Value] = {**scheduled(delay=HOUR), "lockkeeperNumber": 0}
    other.send("Q", "newest", wait=False, properties=forged)
    bench.now += pause
    bench.steady += pause
    bench.tick()
    turns_until(client, reply)
    assert waiting_jobs(bench, other.consume("LEFT"), other) == ["new", "newer", "newest"]
    bench.tick(30 * MINUTE)
    assert bench.depth(str(JOBS)) == 3


def test_who_browses_is_told_of_the_jobs_that_there_were(bench: "Bench") -> None:
    client, other = bench.client(), bench.client()
    consumer = client.consume("TOLD", prefetch=2 * COUNT)
    schedule(client, *["old"] * COUNT)
    client.send("Q", "again", wait=False, properties=scheduled(period=5, repeat=9))
    bench.tick()
    ask(client, "BROWSE")
    reply = ask(client, "BROWSE", "TOLD")
    schedule(other, "new")
    bench.now += 5
    bench.steady += 5
    bench.tick()
    turns_until(client, reply)
    assert sorted(client.texts(consumer)) == ["again", *["old"] * COUNT]


def test_jobs_are_browsed_whatever_transaction_they_came_in(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("TOLD")
    transaction = client.begin()
    schedule(client, "sent in one", transaction_id=transaction)
    bench.broker.transactions.commit(client.connection, transaction, None)
    client.send("Q", "repeated", wait=False, properties=scheduled(delay=5, period=MINUTE, repeat=9))
    bench.tick(5)
    client.outputs()
    reply = ask(client, "BROWSE", "TOLD")
    turns_until(client, reply)
    bench.tick()
    assert client.texts(consumer) == ["repeated", "sent in one"]
