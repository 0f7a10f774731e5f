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
    from collections.abc import Callable
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
    consumer = client.consume(name)
    texts = client.texts(consumer)
    if texts:
        last = [*consumer.dispatched.values()][-1]
        client.acknowledge(consumer, last.loaded, len(texts))
    client.leave()
    return texts


@pytest.mark.parametrize("decider", [0, 1])
@pytest.mark.parametrize("phases", [1, 2])
def test_a_commit_is_of_all_that_was_done_in_the_branch(
    bench: "Bench", phases: int, decider: int
) -> None:
    clients = [*join(bench), bench.client()]
    transactions, connection = bench.broker.transactions, clients[decider].connection
    if phases == 2:
        assert transactions.prepare(clients[0].connection, XID, Reply(connection, 1))
        bench.tick()
    transactions.commit(connection, XID, None, is_one_phase=phases == 1)
    bench.tick()
    assert take_all(bench.restart(), "Q") == ["of 0", "of 1"]
    assert transactions.undecided() == []
    for client in clients:
        with pytest.raises(TransactionError, match="has not been started"):
            client.send("Q", "too late", transaction_id=XID)


def test_who_has_not_joined_has_no_part_in_a_branch(bench: "Bench") -> None:
    join(bench)
    stranger, transactions = bench.client(), bench.broker.transactions
    for end in (transactions.commit, transactions.rollback):
        with pytest.raises(TransactionError, match="has not been started"):
            end(stranger.connection, XID, None)
    transactions.fail(stranger.connection, XID, TransactionError("no room"))
    with pytest.raises(TransactionError, match="has not been started"):
        stranger.send("Q", "of a stranger", transaction_id=XID)
    (branch,) = transactions.undecided()
    assert branch.failure is None


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


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_branch_ends_with_the_connection_that_began_it(bench: "Bench", comes_back: bool) -> None:
    first, second = join(bench)
    first.leave()
    assert bench.broker.memory.used == 0
    transactions, decider = bench.broker.transactions, second
    if comes_back:
        decider = cut_off(bench, first)
        transactions.begin(decider.connection, XID)
        decider.send("Q", "of 0", transaction_id=XID)
    # What the second one did is gone: nobody commits the rest of it.
    with pytest.raises(TransactionRolledBackError, match="that began it has ended"):
        transactions.commit(decider.connection, XID, None)
    assert transactions.undecided() == []
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


def cut_off(bench: "Bench", client: "Client") -> "Client":
    """Return the client with a new connection, after it has lost its own."""
    client.connection.fault_tolerant = True
    name = client.connection.identifier
    client.leave()
    again = type(client)(bench, name, name)
    again.connection.fault_tolerant = again.connection.reconnected = True
    return again


def tell_again(bench: "Bench", client: "Client", message: "Message") -> "Client":
    """Cut a client off that sent one message in the branch; it tells all of it again."""
    again = cut_off(bench, client)
    bench.broker.transactions.begin(again.connection, XID)
    bench.broker.send(again.connection, message, Reply(again.connection, 7))
    bench.tick()
    return again


def join_with_messages(bench: "Bench") -> tuple["Client", "Client", "Message"]:
    """Return two clients that work on the branch, and what the second one has sent."""
    first, second = bench.client(), bench.client()
    for client in (first, second):
        bench.broker.transactions.begin(client.connection, XID)
    first.send("Q", "of 0", transaction_id=XID)
    return first, second, second.send("Q", "of 1", transaction_id=XID)


def test_what_is_told_again_is_in_the_branch_once(bench: "Bench") -> None:
    first, second, message = join_with_messages(bench)
    again = tell_again(bench, second, message)
    again.send("Q", "more of 1", transaction_id=XID)
    bench.broker.transactions.commit(first.connection, XID, None)
    bench.tick()
    assert take_all(bench.restart(), "Q") == ["of 0", "of 1", "more of 1"]


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("decider", [0, 1])
def test_an_outcome_of_a_prepared_branch_ends_what_was_told_again(
    bench: "Bench", decider: int, is_committed: bool, is_restarted: bool
) -> None:
    first, second, message = join_with_messages(bench)
    first.connection.fault_tolerant = True
    bench.broker.transactions.prepare(first.connection, XID, Reply(first.connection, 1))
    bench.tick()
    if is_restarted:
        second.leave()
        bench = bench.restart()
        first = bench.client()
    again = tell_again(bench, second, message)
    transactions = bench.broker.transactions
    connection = (first, again)[decider].connection
    if is_committed:
        transactions.commit(connection, XID, None, is_one_phase=False)
    else:
        transactions.rollback(connection, XID, None)
    bench.tick()
    assert transactions.in_doubt() == ()
    assert transactions.undecided() == []
    # The answer was lost.
    with pytest.raises(TransactionError, match="has not been started"):
        transactions.commit(connection, XID, None, is_one_phase=False)
    assert take_all(bench, "Q") == (["of 0", "of 1"] if is_committed else [])
    assert bench.broker.memory.used == 0


def test_what_is_told_again_after_the_commit_comes_no_more(bench: "Bench") -> None:
    first, second, message = join_with_messages(bench)
    bench.broker.transactions.commit(first.connection, XID, None)
    bench.tick()
    again = tell_again(bench, second, message)
    bench.broker.transactions.commit(again.connection, XID, None)
    bench.tick()
    assert take_all(bench.restart(), "Q") == ["of 0", "of 1"]


class Branch:
    """What a branch should hold: texts that were sent, keys of messages that were consumed."""

    def __init__(self) -> None:
        self.members: list[Client] = []
        self.told: dict[Client, list[tuple[str, Message]]] = {}
        self.sent: list[str] = []
        self.taken: list[str] = []
        self.is_failed = self.is_prepared = False


class Journey:
    """Clients that do anything in branches, and what must be there once all is decided."""

    def __init__(self, bench: "Bench", seed: int) -> None:
        self.bench = bench
        self.transactions = bench.broker.transactions
        self.chance = random.Random(seed)
        self.sent = 0
        self.expected: list[str] = []
        self.consumed: set[str] = set()
        self.branches: dict[XATransactionId, Branch] = {}
        self.clients: dict[Client, Consumer] = {}
        self.held: dict[Client, list[Message]] = {}

    def step(self) -> None:
        while len(self.clients) < 3:
            self._arrive(self.bench.client())
        client = self.chance.choice([*self.clients])
        identifier = self.chance.choice(IDENTIFIERS)
        steps: list[Callable[[Client, XATransactionId], None]] = [
            self._send,
            self._consume,
            self._prepare,
            self._end,
            self._leave,
            self._cut_off,
        ]
        (step,) = self.chance.choices(steps, [8, 8, 2, 3, 1, 1])
        step(client, identifier)
        self.bench.tick()
        for each, consumer in self.clients.items():
            self.held[each] += [found.message for found in each.deliveries(consumer)]

    def finish(self) -> None:
        for client in [*self.clients]:
            self._leave(client)
        last = self.bench.client()
        for identifier in [*self.branches]:
            self._decide(last, identifier)
        self.bench.tick()

    def _arrive(self, client: "Client") -> None:
        self.clients[client] = consumer = client.consume("IN", prefetch=2)
        self.held[client] = [found.message for found in client.deliveries(consumer)]

    def _join(self, client: "Client", identifier: XATransactionId) -> Branch | None:
        """Have a client begin or join a branch, unless it is prepared."""
        branch = self.branches.setdefault(identifier, Branch())
        if branch.is_prepared:
            return None
        self.transactions.begin(client.connection, identifier)
        if client not in branch.members:
            branch.members.append(client)
        return branch

    def _send(self, client: "Client", identifier: XATransactionId) -> None:
        if (branch := self._join(client, identifier)) is not None:
            self.sent += 1
            text = f"out {self.sent}"
            message = client.send("OUT", text, transaction_id=identifier)
            branch.sent.append(text)
            branch.told.setdefault(client, []).append((text, message))

    def _consume(self, client: "Client", identifier: XATransactionId) -> None:
        if self.held[client] and (branch := self._join(client, identifier)) is not None:
            message = self.held[client].pop(0)
            at, kind = message.sequence, AckType.INDIVIDUAL
            consumer = self.clients[client]
            self.transactions.acknowledge(client.connection, consumer, identifier, at, 1, kind)
            branch.taken.append(message.identifier.hex())

    def _prepare(self, client: "Client", identifier: XATransactionId) -> None:
        branch = self.branches.get(identifier)
        if branch is None or branch.is_prepared or client not in branch.members:
            return
        reply = Reply(client.connection, 1)
        if branch.is_failed:
            with pytest.raises(TransactionRolledBackError):
                self.transactions.prepare(client.connection, identifier, reply)
        elif self.transactions.prepare(client.connection, identifier, reply):
            branch.is_prepared, branch.members = True, []
            return
        del self.branches[identifier]

    def _end(self, client: "Client", identifier: XATransactionId) -> None:
        branch = self.branches.get(identifier)
        if branch is not None and (branch.is_prepared or client in branch.members):
            self._decide(client, identifier)

    def _decide(self, client: "Client", identifier: XATransactionId) -> None:
        branch = self.branches.pop(identifier)
        if self.chance.random() < 0.4:
            self.transactions.rollback(client.connection, identifier, None)
        elif branch.is_failed:
            with pytest.raises(TransactionRolledBackError):
                self.transactions.commit(client.connection, identifier, None)
        else:
            two_phase = branch.is_prepared
            self.transactions.commit(client.connection, identifier, None, not two_phase)
            self.expected += branch.sent
            self.consumed.update(branch.taken)

    def _leave(self, client: "Client", _: XATransactionId | None = None) -> None:
        del self.clients[client], self.held[client]
        client.leave()
        for identifier, branch in [*self.branches.items()]:
            if client in branch.members:
                branch.is_failed |= branch.members[0] is client
                branch.members.remove(client)
                if branch.is_failed and not branch.members:
                    del self.branches[identifier]

    def _cut_off(self, client: "Client", _: XATransactionId) -> None:
        """Cut a client off, which tells again what it sent in branches without an outcome."""
        told = [
            (identifier, branch, branch.told.pop(client))
            for identifier, branch in self.branches.items()
            if client in branch.told
        ]
        self._leave(client)
        again = cut_off(self.bench, client)
        self._arrive(again)
        for identifier, branch, messages in told:
            self.transactions.begin(again.connection, identifier)
            if not branch.is_prepared:
                branch = self.branches.setdefault(identifier, Branch())
                branch.members.append(again)
                if not branch.sent:
                    branch.sent = [text for text, _ in messages]
            branch.told[again] = messages
            for _text, message in messages:
                self.bench.broker.send(again.connection, message, Reply(again.connection, 1))


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
    assert bench.depth("OUT") == len(journey.expected)
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
