"""What a client repeats after a failover is stored exactly once, and never thrown away."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.core import Broker
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import StoreFullError
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.memory import MemoryStore

if TYPE_CHECKING:
    from conftest import Bench, Client


class Filling(MemoryStore):
    """A store that is full when told to be."""

    full = False

    def check_full(self) -> None:
        if self.full:
            raise StoreFullError("no room")


def come_back(bench: "Bench", client: "Client") -> None:
    """Break a failover client's connection and let it come back."""
    name = client.connection.identifier
    bench.broker.disconnect(client.connection)
    again = bench.broker.open_connection("tcp://again")
    again.fault_tolerant = again.reconnected = True
    bench.broker.connect(again, name, name)
    client.connection = again


def repeat(bench: "Bench", client: "Client", message: Message) -> list[str]:
    """Send a message again; returns the answers."""
    bench.broker.send(client.connection, message, Reply(client.connection, 7))
    bench.tick()
    return [type(output).__name__ for output in client.outputs()]


def test_a_send_that_waited_for_room_is_taken_when_it_is_repeated(
    make_bench: "type[Bench]",
) -> None:
    store = Filling()
    bench = make_bench(store)
    client = bench.client()
    client.connection.fault_tolerant = True
    stored = client.send("Q", "before")
    store.full = True
    waiting = client.send("Q", "waits")
    later = client.send("topic://T", "stored nowhere, so it needs no room")
    client.outputs()
    come_back(bench, client)
    store.full = False
    for message in (waiting, waiting, stored, later):
        assert repeat(bench, client, message) == ["Reply"]
    assert client.texts(client.consume("Q")) == ["before", "waits"]


def test_what_a_transaction_lost_is_taken_when_it_is_repeated(bench: "Bench") -> None:
    client = bench.client()
    client.connection.fault_tolerant = True
    transaction = client.begin()
    lost = client.send("Q", "in a transaction", transaction_id=transaction)
    client.send("Q", "outside")
    client.outputs()
    come_back(bench, client)
    client.begin()
    assert repeat(bench, client, lost) == ["Reply"]
    bench.broker.transactions.commit(client.connection, transaction, None)
    bench.tick()
    assert client.texts(client.consume("Q")) == ["outside", "in a transaction"]


@pytest.mark.replaces
def test_a_send_that_failed_half_way_is_taken_when_it_is_repeated(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bench.client()
    client.connection.fault_tolerant = True
    client.send("Q", "first")
    message = bench.message(client, parse_destination("Q"), "second")
    client.outputs()

    def fails(queue: Queue, message: Message, receipt: object) -> None:
        raise ValueError("a defect")

    with monkeypatch.context() as defect:
        defect.setattr(Queue, "accept", fails)
        with pytest.raises(Exception, match="a defect"):
            bench.broker.send(client.connection, message, None)
    come_back(bench, client)
    assert repeat(bench, client, message) == ["Reply"]
    assert client.texts(client.consume("Q")) == ["first", "second"]


@pytest.mark.parametrize("restarts", [False, True])
def test_gaps_outlive_a_restart(make_bench: "type[Bench]", tmp_path: Path, restarts: bool) -> None:
    store = KahaDBStore(tmp_path)
    bench = make_bench(store)
    client = bench.client()
    client.connection.fault_tolerant = True
    first = client.send("Q", "1")
    second = bench.message(client, first.destination, "2")
    third = client.send("Q", "3")
    client.outputs()
    if restarts:
        store.close()
        bench = make_bench(KahaDBStore(tmp_path))
        client.bench = bench
        client.connection = bench.broker.open_connection("tcp://new")
        bench.broker.connect(client.connection, "ID:client-1-1:1", "c")
    come_back(bench, client)
    for message in (third, first, second, second):
        assert repeat(bench, client, message) == ["Reply"]
    assert client.texts(client.consume("Q")) == ["1", "3", "2"]


def test_producers_are_known_by_their_latest_message_however_many_come_between(
    make_bench: "type[Bench]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockkeeper.store.producers.PRODUCERS_MAX", 20)
    store = KahaDBStore(tmp_path)
    bench = make_bench(store)
    lasting = bench.client()
    lasting.send("Q", "lasting")
    for _ in range(30):
        bench.client().send("Q", "template")
    last = lasting.send("Q", "last of all")
    store.close()
    bench = make_bench(KahaDBStore(tmp_path))
    broker: Broker = bench.broker
    assert broker.audit.is_duplicate(last)
    broker.store.close()
