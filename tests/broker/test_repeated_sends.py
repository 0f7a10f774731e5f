"""Sends that a client repeats after a failover: what is stored is answered without any room."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SchedulerSettings, SystemUsage
from lockkeeper.message.destination import parse_destination, queue
from lockkeeper.message.primitives import Value
from lockkeeper.store.base import StoreFullError
from lockkeeper.store.memory import MemoryStore

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.message.message import Message

LIMIT = 1 << 20


class Small(MemoryStore):
    """A store that is full when a test says so."""

    is_full = False

    def check_full(self) -> None:
        if self.is_full:
            raise StoreFullError("no room")


@pytest.fixture
def store() -> Small:
    return Small()


@pytest.fixture
def bench(make_bench: "type[Bench]", store: Small) -> "Bench":
    """Return a broker that refuses what has no room."""
    usage = SystemUsage(MemoryUsage(LIMIT), send_fail_if_no_space=True)
    return make_bench(store, settings=BrokerSettings(system_usage=usage))


def cut_off(client: "Client") -> "Client":
    """Return the client as it is after a failover."""
    client.leave()
    again = client.bench.client()
    again.connection.fault_tolerant = again.connection.reconnected = True
    return again


def is_answered(client: "Client", message: "Message") -> bool:
    """Send a message again; tells whether it is answered as one that was taken."""
    reply = Reply(client.connection, 7)
    client.bench.broker.send(client.connection, message, reply)
    client.bench.tick()
    return client.outputs() == [reply]


@pytest.mark.parametrize("lack", ["store", "memory"])
@pytest.mark.parametrize("is_local", [False, True])
def test_what_is_stored_needs_no_room(
    bench: "Bench", store: Small, lack: str, is_local: bool
) -> None:
    client = bench.client()
    client.connection.fault_tolerant = True
    identifier = client.begin() if is_local else None
    sent = client.send("Q", "x", transaction_id=identifier)
    if identifier is not None:
        bench.broker.transactions.commit(client.connection, identifier, None)
        bench.tick()
    again = cut_off(client)
    if identifier is not None:
        bench.broker.transactions.begin(again.connection, identifier)
    if lack == "store":
        store.is_full = True
    else:
        bench.broker.memory.used += 1 << 30
    assert is_answered(again, sent)
    assert bench.depth("Q") == 1
    assert bench.broker.flow.blocked() == []


def test_copies_that_are_stored_need_no_room(bench: "Bench") -> None:
    client = bench.client()
    client.connection.fault_tolerant = True
    collect(bench, "A")
    sent = client.send("topic://VirtualTopic.T", "x" * 400_000)
    # With the topic's own one they would be three, which are too large together.
    collect(bench, "B")
    again = cut_off(client)
    assert is_answered(again, sent)
    found = [bench.depth(f"Consumer.{name}.VirtualTopic.T") for name in "AB"]
    assert found == [1, 0]


def collect(bench: "Bench", name: str) -> None:
    """Have a queue collect what is sent to the virtual topic."""
    bench.broker.declare(parse_destination(f"queue://Consumer.{name}.VirtualTopic.T"))


@pytest.mark.parametrize("is_temporary", [False, True])
def test_a_request_that_was_answered_is_confirmed(
    make_bench: "type[Bench]", is_temporary: bool
) -> None:
    """A temporary queue goes with its connection, and the answers in it."""
    bench = make_bench(settings=BrokerSettings(statistics_queries=True))
    client = bench.client()
    client.connection.fault_tolerant = True
    kind = "temp-queue" if is_temporary else "queue"
    answers = parse_destination(f"{kind}://ANSWERS")
    if is_temporary:
        bench.broker.destinations.create_temporary(client.connection, answers)
    asked = queue("ActiveMQ.Statistics.Broker")
    question = bench.message(client, asked, "", reply_to=answers)
    assert is_answered(client, question)
    again = cut_off(client)
    if is_temporary:
        bench.broker.destinations.create_temporary(again.connection, answers)
    assert is_answered(again, question)
    assert bench.depth(str(answers)) == 1


def test_a_removal_that_is_repeated_leaves_what_was_scheduled_since(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    client, other = bench.client(), bench.client()
    client.connection.fault_tolerant = True
    later: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": 3_600_000}
    other.send("LATER", "old", properties=later)
    removal = bench.message(client, MANAGEMENT, "", properties={ACTION: "REMOVEALL"})
    assert is_answered(client, removal)
    assert bench.depth(str(JOBS)) == 0
    other.send("LATER", "new", properties=later)
    assert is_answered(cut_off(client), removal)
    assert bench.depth(str(JOBS)) == 1
