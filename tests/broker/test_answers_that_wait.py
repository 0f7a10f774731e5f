"""Answers that wait for room, and whose queue is removed meanwhile."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SchedulerSettings, SystemUsage
from lockkeeper.message.destination import Destination, parse_destination, queue
from lockkeeper.message.primitives import Value

if TYPE_CHECKING:
    from conftest import Bench, Client

LIMIT = 8 << 20
SETTINGS = BrokerSettings(
    statistics_queries=True,
    scheduler=SchedulerSettings(enabled=True),
    system_usage=SystemUsage(MemoryUsage(LIMIT)),
)
ANSWERS = queue("ANSWERS")
STATISTICS = queue("ActiveMQ.Statistics.Destination.Q")
LATER: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": 3_600_000}
QUESTIONS: list[tuple[Destination, dict[str, Value]]] = [
    (STATISTICS, {}),
    (MANAGEMENT, {ACTION: "BROWSE"}),
]


@pytest.fixture
def bench(make_bench: "type[Bench]") -> "Bench":
    """Return a broker with a queue to ask of, and a job."""
    bench = make_bench(settings=SETTINGS)
    client = bench.client()
    client.consume("Q")
    client.send("LATER", "x" * 100_000, properties=LATER)
    return bench


def turns(bench: "Bench") -> None:
    """Have requests carried out as far as they go."""
    for _ in range(10):
        bench.broker.tick(bench.now, bench.steady)


def ask_without_room(
    client: "Client", question: tuple[Destination, dict[str, Value]], answers: Destination
) -> Reply:
    """Ask, and have the answer wait for room; returns what tells that it is answered."""
    bench, (asked, properties) = client.bench, question
    reply = Reply(client.connection, 77)
    message = bench.message(client, asked, "", properties=properties, reply_to=answers)
    bench.broker.memory.used += LIMIT
    bench.broker.send(client.connection, message, reply)
    turns(bench)
    assert [each.destination for each in bench.broker.flow.blocked()] == [answers]
    return reply


@pytest.mark.parametrize("question", QUESTIONS, ids=["statistics", "browse"])
def test_it_goes_into_the_queue_that_is_made_anew(
    bench: "Bench", question: tuple[Destination, dict[str, Value]]
) -> None:
    client, memory = bench.client(), bench.broker.memory
    before = memory.used
    client.send(ANSWERS.name, "first")
    reply = ask_without_room(client, question, ANSWERS)
    bench.broker.destinations.remove(ANSWERS, None)
    memory.used -= LIMIT
    turns(bench)
    assert reply in client.outputs()
    consumer = client.consume(ANSWERS.name)
    (answer,) = client.deliveries(consumer)
    client.acknowledge(consumer, answer.message)
    assert memory.used == before


@pytest.mark.parametrize("question", QUESTIONS, ids=["statistics", "browse"])
def test_it_ends_with_its_temporary_queue(
    bench: "Bench", question: tuple[Destination, dict[str, Value]]
) -> None:
    client, memory = bench.client(), bench.broker.memory
    before = memory.used
    for number in range(3):
        answers = parse_destination(f"temp-queue://{client.connection.identifier}:{number}")
        bench.broker.destinations.create_temporary(client.connection, answers)
        reply = ask_without_room(client, question, answers)
        bench.broker.destinations.remove_temporary(client.connection, answers)
        memory.used -= LIMIT
        turns(bench)
        assert client.outputs() == [reply]
        assert memory.used == before
    assert bench.broker.flow.blocked() == []
