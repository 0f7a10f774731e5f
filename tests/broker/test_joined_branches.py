"""XA branches that several connections work on (TMJOIN): one outcome for all that they did."""

import random
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import TransactionError, TransactionRolledBackError
from lockkeeper.broker.outputs import Reply
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import AckType
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.message.message import Message

XID = XATransactionId(1, b"global", b"branch")
IDENTIFIERS = [XATransactionId(1, b"global", bytes([number])) for number in range(3)]
SEEDS = 12
STEPS = 150


def join(bench: "Bench") -> list["Client"]:
    """Return two clients that have each sent in the branch; the first one began it."""
    clients = [bench.client(), bench.client()]
    for number, client in enumerate(clients):
        bench.broker.transactions.begin(client.connection, XID)
        client.send("Q", f"of {number}", transaction_id=XID)
    return clients


def take_all(bench: "Bench", name: str) -> list[str]:
    """Consume all messages of a queue."""
    client = bench.client()
    texts = client.texts(client.consume(name))
    client.leave()
    return texts


@pytest.mark.parametrize("decider", [0, 1, 2])
@pytest.mark.parametrize("phases", [1, 2])
def test_a_commit_is_of_all_that_was_done_in_the_branch(
    bench: "Bench", phases: int, decider: int
) -> None:
    clients = [*join(bench), bench.client()]
    transactions, connection = bench.broker.transactions, clients[decider].connection
    if phases == 2:
        assert transactions.prepare(clients[0].connection, XID, Reply(connection, 1))
        bench.tick()
    transactions.commit(connection, XID, None)
    bench.tick()
    assert take_all(bench.restart(), "Q") == ["of 0", "of 1"]
    assert transactions.undecided() == []
    for client in clients:
        with pytest.raises(TransactionError, match="has not been started"):
            client.send("Q", "too late", transaction_id=XID)


def test_acknowledgements_of_all_connections_end_together(bench: "Bench") -> None:
    producer = bench.client()
    for text in ("a", "b"):
        producer.send("IN", text)
    clients = [bench.client(), bench.client()]
    consumers = [client.consume("IN", prefetch=1) for client in clients]
    for client, consumer in zip(clients, consumers, strict=True):
        (delivery,) = client.deliveries(consumer)
        bench.broker.transactions.begin(client.connection, XID)
        bench.broker.transactions.acknowledge(
            client.connection, consumer, XID, delivery.message.sequence, 1, AckType.STANDARD
        )
    bench.broker.transactions.commit(clients[0].connection, XID, None)
    bench.tick()
    assert take_all(bench.restart(), "IN") == []


def test_a_branch_ends_with_the_connection_that_began_it(bench: "Bench") -> None:
    first, second = join(bench)
    first.leave()
    with pytest.raises(TransactionError, match="has not been started"):
        bench.broker.transactions.commit(second.connection, XID, None)
    assert bench.broker.memory.used == 0
    assert take_all(bench.restart(), "Q") == []


def test_what_a_connection_did_that_joined_outlives_it(bench: "Bench") -> None:
    first, second = join(bench)
    second.leave()
    bench.broker.transactions.commit(first.connection, XID, None)
    bench.tick()
    assert take_all(bench.restart(), "Q") == ["of 0", "of 1"]


def test_what_was_refused_to_one_is_committed_for_none(bench: "Bench") -> None:
    first, second = join(bench)
    transactions = bench.broker.transactions
    transactions.fail(second.connection, XID, TransactionError("no room"))
    with pytest.raises(TransactionRolledBackError, match="no room"):
        transactions.prepare(first.connection, XID, Reply(first.connection, 1))
    assert take_all(bench.restart(), "Q") == []


class Journey:
    """Clients that do anything in branches, and what must be there once all is decided."""

    def __init__(self, bench: "Bench", seed: int) -> None:
        self.bench = bench
        self.chance = random.Random(seed)
        self.sent = 0
        self.expected: list[str] = []
        self.consumed: set[str] = set()
        self.open: dict[XATransactionId, Client] = {}
        self.prepared: set[XATransactionId] = set()
        self.produced: dict[XATransactionId, list[str]] = {}
        self.taken: dict[XATransactionId, list[str]] = {}
        self.clients: dict[Client, Consumer] = {}
        self.held: dict[Client, list[Message]] = {}

    def step(self) -> None:
        while len(self.clients) < 3:
            self._arrive()
        client = self.chance.choice([*self.clients])
        identifier = self.chance.choice(IDENTIFIERS)
        step = self.chance.choices(
            [self._work, self._consume, self._prepare, self._end, self._leave], [8, 8, 2, 3, 1]
        )
        step[0](client, identifier)
        self.bench.tick()
        for each, consumer in self.clients.items():
            self.held[each] += [found.message for found in each.deliveries(consumer)]

    def finish(self) -> None:
        for client in self.clients:
            client.leave()
        last = self.bench.client()
        for identifier in [*self.prepared]:
            self._decide(last, identifier)
        self.bench.tick()

    def _arrive(self) -> None:
        client = self.bench.client()
        consumer = client.consume("IN", prefetch=2)
        self.clients[client] = consumer
        self.held[client] = [found.message for found in client.deliveries(consumer)]

    def _begin(self, client: "Client", identifier: XATransactionId) -> bool:
        if identifier in self.prepared:
            return False
        self.bench.broker.transactions.begin(client.connection, identifier)
        if self.open.setdefault(identifier, client) is client:
            self.produced.setdefault(identifier, [])
            self.taken.setdefault(identifier, [])
        return True

    def _work(self, client: "Client", identifier: XATransactionId) -> None:
        if self._begin(client, identifier):
            self.sent += 1
            text = f"out {self.sent}"
            client.send("OUT", text, transaction_id=identifier)
            self.produced[identifier].append(text)

    def _consume(self, client: "Client", identifier: XATransactionId) -> None:
        if self.held[client] and self._begin(client, identifier):
            message = self.held[client].pop(0)
            self.bench.broker.transactions.acknowledge(
                client.connection,
                self.clients[client],
                identifier,
                message.sequence,
                1,
                AckType.INDIVIDUAL,
            )
            self.taken[identifier].append(message.identifier.hex())

    def _prepare(self, client: "Client", identifier: XATransactionId) -> None:
        if identifier in self.open:
            transactions = self.bench.broker.transactions
            if transactions.prepare(client.connection, identifier, Reply(client.connection, 1)):
                self.prepared.add(identifier)
            del self.open[identifier]

    def _end(self, client: "Client", identifier: XATransactionId) -> None:
        if identifier in self.open or identifier in self.prepared:
            self._decide(client, identifier)

    def _decide(self, client: "Client", identifier: XATransactionId) -> None:
        produced, taken = self.produced.pop(identifier), self.taken.pop(identifier)
        self.open.pop(identifier, None)
        self.prepared.discard(identifier)
        if self.chance.random() < 0.6:
            self.bench.broker.transactions.commit(client.connection, identifier, None)
            self.expected += produced
            self.consumed.update(taken)
        else:
            self.bench.broker.transactions.rollback(client.connection, identifier, None)

    def _leave(self, client: "Client", _: XATransactionId) -> None:
        del self.clients[client], self.held[client]
        client.leave()
        for identifier in [key for key, owner in self.open.items() if owner is client]:
            del self.open[identifier], self.produced[identifier], self.taken[identifier]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_branches_in_any_order_lose_and_double_nothing(
    make_bench: "type[Bench]", tmp_path: "Path", seed: int
) -> None:
    bench = make_bench(KahaDBStore(tmp_path))
    producer = bench.client()
    keys = [producer.send("IN", f"in {number}").identifier.hex() for number in range(100)]
    journey = Journey(bench, seed)
    for _ in range(STEPS):
        journey.step()
    journey.finish()
    bench.store.close()
    again = make_bench(KahaDBStore(tmp_path))
    assert isinstance(again.store, KahaDBStore)
    assert differences(tmp_path, again.store._file_references) == []
    reader = again.client()
    left = [each.message.identifier.hex() for each in reader.deliveries(reader.consume("IN"))]
    assert sorted(left) == sorted(set(keys) - journey.consumed)
    assert sorted(reader.texts(reader.consume("OUT"))) == sorted(journey.expected)
    assert again.broker.transactions.undecided() == []
    again.store.close()
