"""Queues and durable subscriptions that end, or begin, while a transaction is not yet decided.

What became of it must be the same at once and after a restart, and so must the accounts.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import AckType
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences

if TYPE_CHECKING:
    from conftest import Bench

XA = XATransactionId(1, b"g" * 16, b"b" * 16)
Q, T = queue("Q"), topic("T")


class Settled:
    done = False

    def settle(self) -> None:
        self.done = True


class Case:
    """A broker with a journal, one transaction, and what it is to be asked."""

    def __init__(self, directory: Path, make_bench: "type[Bench]", kind: str) -> None:
        self.directory = directory
        self.make_bench = make_bench
        self.kind = kind
        self.bench = make_bench(KahaDBStore(directory))
        self.producer = self.bench.client()

    def begin(self) -> TransactionId:
        if self.kind == "local":
            return self.producer.begin()
        self.bench.broker.transactions.begin(self.producer.connection, XA)
        return XA

    def promise(self) -> None:
        """Prepare the transaction, if it can be."""
        if self.kind == "prepared":
            self.bench.broker.transactions.prepare(self.producer.connection, XA, Settled())
            self.bench.tick()

    def commit(self, transaction: TransactionId) -> None:
        self.decide(self.bench.broker.transactions.commit, transaction)

    def roll_back(self, transaction: TransactionId) -> None:
        self.decide(self.bench.broker.transactions.rollback, transaction)

    def decide(self, how: Callable[..., None], transaction: TransactionId) -> None:
        receipt = Settled()
        how(self.producer.connection, transaction, receipt)
        self.bench.tick()
        assert receipt.done

    def consume(self, consumer: "Consumer", message: Message, transaction: TransactionId) -> None:
        sequence = message.sequence
        acknowledge = self.bench.broker.transactions.acknowledge
        connection = self.bench.broker.connections[consumer.connection.identifier]
        acknowledge(connection, consumer, transaction, sequence, 1, AckType.STANDARD)

    def begin_commit(self, transaction: TransactionId) -> None:
        """Commit, up to where the disk is waited for."""
        self.bench.broker.transactions.commit(self.producer.connection, transaction, None)
        self.bench.store.flush()

    def remove(self, destination: Destination = Q) -> None:
        self.bench.broker.destinations.remove(destination, None)
        self.bench.tick()

    @property
    def memory(self) -> int:
        return self.bench.broker.memory.used

    def check(self) -> None:
        assert differences(self.directory, self.journal()._file_references) == []

    def journal(self) -> KahaDBStore:
        """Return the store."""
        assert isinstance(self.bench.store, KahaDBStore)
        return self.bench.store

    def depth_after_restart(self) -> int:
        self.check()
        self.bench.store.close()
        bench = self.make_bench(KahaDBStore(self.directory))
        depth = bench.depth("Q")
        bench.store.close()
        return depth


@pytest.fixture(params=["local", "xa", "prepared"])
def case(
    request: pytest.FixtureRequest, tmp_path: Path, make_bench: "type[Bench]"
) -> Iterator[Case]:
    case = Case(tmp_path, make_bench, request.param)
    yield case
    case.bench.store.close()


@pytest.fixture
def local(tmp_path: Path, make_bench: "type[Bench]") -> Iterator[Case]:
    case = Case(tmp_path, make_bench, "local")
    yield case
    case.bench.store.close()


def test_a_commit_makes_a_removed_queue_anew(case: Case) -> None:
    transaction = case.begin()
    case.producer.send("Q", "precious", transaction_id=transaction)
    case.promise()
    case.remove()
    case.commit(transaction)
    client = case.bench.client()
    assert client.texts(client.consume("Q")) == ["precious"]
    assert case.depth_after_restart() == 1


def test_a_rollback_does_not(case: Case) -> None:
    transaction = case.begin()
    case.producer.send("Q", "precious", transaction_id=transaction)
    case.promise()
    case.remove()
    case.roll_back(transaction)
    assert case.bench.broker.registry.find(Q) is None
    assert case.memory == 0
    assert case.depth_after_restart() == 0


def test_what_a_commit_has_stored_goes_with_its_queue(case: Case) -> None:
    transaction = case.begin()
    case.producer.send("Q", "precious", transaction_id=transaction)
    case.promise()
    case.begin_commit(transaction)
    case.remove()
    assert case.memory == 0
    client = case.bench.client()
    assert client.texts(client.consume("Q")) == []
    assert case.depth_after_restart() == 0


@pytest.mark.parametrize("outcome", ["commit", "roll_back"])
def test_a_message_consumed_in_a_transaction_goes_with_its_queue(case: Case, outcome: str) -> None:
    case.producer.send("Q", "old")
    transaction = case.begin()
    consumer = case.producer.consume("Q")
    (delivery,) = case.producer.deliveries(consumer)
    case.consume(consumer, delivery.message, transaction)
    case.promise()
    case.bench.broker.subscriptions.unsubscribe(consumer, -1)
    case.remove()
    case.check()
    assert case.memory == 0
    getattr(case, outcome)(transaction)
    assert case.memory == 0
    assert case.bench.depth("Q") == 0
    assert case.depth_after_restart() == 0


@pytest.mark.parametrize("outcome", ["commit", "roll_back"])
def test_a_message_consumed_in_a_transaction_goes_with_its_subscription(
    case: Case, outcome: str
) -> None:
    reader = case.producer
    reader.connection.client_id = "reader"
    consumer = reader.consume("topic://T", subscription_name="s")
    reader.send("topic://T", "old")
    transaction = case.begin()
    (delivery,) = reader.deliveries(consumer)
    case.consume(consumer, delivery.message, transaction)
    case.promise()
    case.bench.broker.subscriptions.unsubscribe(consumer, -1)
    case.bench.broker.subscriptions.lasting.forget("reader", "s", None)
    case.bench.tick()
    case.check()
    assert case.memory == 0
    getattr(case, outcome)(transaction)
    assert case.memory == 0
    case.check()


def test_a_subscription_that_begins_during_a_commit_comes_after_it(case: Case) -> None:
    one, two = case.bench.client("one"), case.bench.client("two")
    first = one.consume("topic://T", subscription_name="s1")
    transaction = case.begin()
    case.producer.send("topic://T", "precious", transaction_id=transaction)
    case.promise()
    case.begin_commit(transaction)
    request = ConsumeRequest("c2", T, 10, subscription_name="s2", tag="c2")
    second = case.bench.broker.subscriptions.subscribe(two.connection, request, None)
    case.bench.tick()
    (delivery,) = one.deliveries(first)
    assert two.deliveries(second) == []
    one.acknowledge(first, delivery.message)
    case.bench.tick()
    assert case.memory == 0
    case.check()
    case.producer.send("topic://T", "later")
    assert two.texts(second) == ["later"]


def test_a_subscription_that_ends_during_a_commit_needs_nothing_of_it(case: Case) -> None:
    one, two = case.bench.client("one"), case.bench.client("two")
    first = one.consume("topic://T", subscription_name="s1")
    second = two.consume("topic://T", subscription_name="s2")
    case.bench.broker.subscriptions.unsubscribe(second, -1)
    transaction = case.begin()
    case.producer.send("topic://T", "precious", transaction_id=transaction)
    case.promise()
    case.begin_commit(transaction)
    case.bench.broker.subscriptions.lasting.forget("two", "s2", None)
    case.bench.tick()
    (delivery,) = one.deliveries(first)
    one.acknowledge(first, delivery.message)
    case.bench.tick()
    assert case.memory == 0
    assert [file.live for file in case.journal()._file_references.files.values()] == [0]
    case.check()


def test_a_subscription_that_begins_after_a_promise_gets_what_is_committed(
    tmp_path: Path, make_bench: "type[Bench]"
) -> None:
    case = Case(tmp_path, make_bench, "prepared")
    transaction = case.begin()
    case.producer.send("topic://T", "precious", transaction_id=transaction)
    case.promise()
    reader = case.bench.client("reader")
    consumer = reader.consume("topic://T", subscription_name="s")
    case.bench.tick()
    case.commit(transaction)
    assert reader.texts(consumer) == ["precious"]
    case.check()
    case.bench.store.close()
    store = KahaDBStore(tmp_path)
    (entry,) = store.open().subscriptions
    assert len(entry.pending) == 1
    store.close()


def test_a_promise_that_nobody_wants_at_its_commit_keeps_nothing(
    tmp_path: Path, make_bench: "type[Bench]"
) -> None:
    case = Case(tmp_path, make_bench, "prepared")
    transaction = case.begin()
    case.producer.send("topic://T", "precious", transaction_id=transaction)
    case.promise()
    case.commit(transaction)
    assert case.memory == 0
    assert [file.live for file in case.journal()._file_references.files.values()] == [0]
    case.check()
    case.bench.store.close()


def test_a_subscription_that_ends_before_its_messages_were_offered_keeps_nothing(
    local: Case,
) -> None:
    reader = local.bench.client("reader")
    consumer = reader.consume("topic://T", subscription_name="s")
    local.bench.broker.subscriptions.unsubscribe(consumer, -1)
    local.bench.tick()
    local.producer.send("topic://T", "fresh", wait=False)
    local.bench.broker.subscriptions.lasting.forget("reader", "s", None)
    local.bench.tick()
    assert local.memory == 0
    local.check()
