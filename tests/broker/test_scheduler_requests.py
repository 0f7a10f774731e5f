"""Requests about jobs: which jobs they are about, and what they cost others while they last."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.primitives import Value

if TYPE_CHECKING:
    from conftest import Bench, Client

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


def schedule(client: "Client", *texts: str, **properties: Value) -> None:
    """Send jobs that come in an hour, without a turn."""
    for text in texts:
        later = {**scheduled(delay=HOUR), **properties}
        client.send("Q", text, wait=False, properties=later)


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


def test_jobs_are_browsed_whatever_transaction_they_came_in(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("TOLD")
    transaction = client.begin()
    schedule_it = {"wait": False, "transaction_id": transaction}
    client.send("Q", "sent in one", properties=scheduled(delay=HOUR), **schedule_it)
    bench.broker.transactions.commit(client.connection, transaction, None)
    client.send("Q", "repeated", wait=False, properties=scheduled(delay=5, period=MINUTE, repeat=9))
    bench.tick(5)
    client.outputs()
    reply = ask(client, "BROWSE", "TOLD")
    turns_until(client, reply)
    bench.tick()
    assert client.texts(consumer) == ["repeated", "sent in one"]
