"""Transactions: all or nothing, in memory and in the store."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import TransactionError
from lockkeeper.broker.outputs import Reply
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import AckType

if TYPE_CHECKING:
    from conftest import Bench, Client

XID = XATransactionId(1, b"global", b"branch")


def test_sent_messages_appear_at_the_commit(bench: "Bench") -> None:
    client, other = bench.client(), bench.client()
    consumer = other.consume("Q")
    transaction = client.begin()
    client.send("Q", "a", transaction_id=transaction)
    client.send("Q", "b", transaction_id=transaction)
    assert other.texts(consumer) == []
    bench.broker.transactions.commit(client.connection, transaction, None)
    bench.tick()
    assert other.texts(consumer) == ["a", "b"]


def test_a_rollback_leaves_no_trace(bench: "Bench") -> None:
    client = bench.client()
    transaction = client.begin()
    client.send("Q", "never", transaction_id=transaction)
    bench.broker.transactions.rollback(client.connection, transaction, None)
    bench.tick()
    assert bench.depth("Q") == 0
    assert bench.broker.memory.used == 0
    assert bench.restart().depth("Q") == 0


def test_a_lost_connection_rolls_back(bench: "Bench") -> None:
    client = bench.client()
    transaction = client.begin()
    client.send("Q", "never", transaction_id=transaction)
    client.leave()
    assert bench.depth("Q") == 0


def test_acknowledged_messages_are_gone_at_the_commit_only(bench: "Bench") -> None:
    client = bench.client()
    for number in range(3):
        client.send("Q", f"m{number}")
    consumer = client.consume("Q", prefetch=2)
    transaction = client.begin()
    held = client.deliveries(consumer)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, transaction, held[-1].message.sequence, 2, AckType.STANDARD
    )
    bench.tick()
    assert client.texts(consumer) == ["m2"]
    assert bench.restart().depth("Q") == 3
    bench.broker.transactions.commit(client.connection, transaction, None)
    bench.tick()
    assert bench.restart().depth("Q") == 1


def test_a_rollback_keeps_the_messages_with_their_consumer(bench: "Bench") -> None:
    client = bench.client()
    for number in range(3):
        client.send("Q", f"m{number}")
    consumer = client.consume("Q")
    transaction = client.begin()
    held = client.deliveries(consumer)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, transaction, held[1].message.sequence, 2, AckType.STANDARD
    )
    bench.broker.transactions.rollback(client.connection, transaction, None)
    assert list(consumer.dispatched) == [delivery.message.sequence for delivery in held]
    again = client.begin(2)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, again, held[2].message.sequence, 3, AckType.STANDARD
    )
    bench.broker.transactions.commit(client.connection, again, None)
    bench.tick()
    assert bench.depth("Q") == 0


def test_a_rollback_after_the_consumer_left_gives_back(bench: "Bench") -> None:
    client = bench.client()
    client.send("Q", "m")
    consumer = client.consume("Q")
    transaction = client.begin()
    (held,) = client.deliveries(consumer)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, transaction, held.message.sequence, 1, AckType.STANDARD
    )
    bench.broker.subscriptions.unsubscribe(consumer, -1)
    bench.broker.transactions.rollback(client.connection, transaction, None)
    assert client.texts(client.consume("Q")) == ["m"]


def test_an_unknown_transaction_is_an_error(bench: "Bench") -> None:
    client = bench.client()
    with pytest.raises(TransactionError):
        bench.broker.transactions.commit(client.connection, XID, None)
    with pytest.raises(TransactionError):
        bench.broker.transactions.heuristics.forget(XID)


def test_a_prepared_transaction_waits_for_its_outcome_across_restarts(bench: "Bench") -> None:
    client = bench.client()
    client.send("IN", "work")
    consumer = client.consume("IN")
    (held,) = client.deliveries(consumer)
    bench.broker.transactions.begin(client.connection, XID)
    client.send("OUT", "done", transaction_id=XID)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, XID, held.message.sequence, 1, AckType.STANDARD
    )
    receipt = Reply(client.connection, 7)
    assert bench.broker.transactions.prepare(client.connection, XID, receipt)
    bench.tick()
    after = bench.restart()
    assert after.broker.transactions.in_doubt() == (XID,)
    assert after.depth("IN") == after.depth("OUT") == 0
    outcome = after.client()
    after.broker.transactions.commit(outcome.connection, XID, None)
    after.tick()
    assert outcome.texts(outcome.consume("OUT")) == ["done"]
    assert after.restart().depth("IN") == 0


def test_a_prepared_transaction_can_be_rolled_back(bench: "Bench") -> None:
    client = bench.client()
    client.send("IN", "work")
    consumer = client.consume("IN")
    (held,) = client.deliveries(consumer)
    bench.broker.transactions.begin(client.connection, XID)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, XID, held.message.sequence, 1, AckType.STANDARD
    )
    bench.broker.transactions.prepare(client.connection, XID, Reply(client.connection, 1))
    client.leave()
    other = bench.client()
    bench.broker.transactions.rollback(other.connection, XID, None)
    bench.tick()
    assert other.texts(other.consume("IN")) == ["work"]


def test_an_empty_transaction_is_read_only(bench: "Bench") -> None:
    client = bench.client()
    bench.broker.transactions.begin(client.connection, XID)
    receipt = Reply(client.connection, 1)
    assert not bench.broker.transactions.prepare(client.connection, XID, receipt)
    assert bench.broker.transactions.in_doubt() == ()


def test_what_expired_at_the_client_ends_whatever_becomes_of_the_transaction(
    bench: "Bench",
) -> None:
    client = bench.client()
    client.send("Q", "short", expiration=bench.now + 10)
    consumer = client.consume("Q")
    (held,) = client.deliveries(consumer)
    bench.tick(20)
    transaction = client.begin()
    bench.broker.transactions.acknowledge(
        client.connection, consumer, transaction, held.message.sequence, 1, AckType.EXPIRED
    )
    bench.broker.transactions.rollback(client.connection, transaction, None)
    bench.tick()
    assert (bench.depth("Q"), bench.depth("ActiveMQ.DLQ")) == (0, 1)


def prepared(bench: "Bench") -> "Client":
    """Return a client with a prepared transaction: one message sent, one consumed."""
    client = bench.client()
    client.send("IN", "in")
    consumer = client.consume("IN")
    (delivery,) = client.deliveries()
    transactions = bench.broker.transactions
    transactions.begin(client.connection, XID)
    client.send("OUT", "out", transaction_id=XID)
    bench.broker.transactions.acknowledge(
        client.connection, consumer, XID, delivery.message.sequence, 1, AckType.STANDARD
    )
    transactions.prepare(client.connection, XID, Reply(client.connection, 0))
    client.leave()
    return bench.client()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("commit", "depths", "code"), [(True, (0, 1), 7), (False, (1, 0), 6)])
def test_a_person_may_decide_a_prepared_transaction(
    bench: "Bench", restarts: bool, commit: bool, depths: tuple[int, int], code: int
) -> None:
    client = prepared(bench)
    if restarts:
        bench = bench.restart()
        client = bench.client()
    transactions = bench.broker.transactions
    transactions.force(XID, commit, Reply(client.connection, 0))
    bench.tick()
    assert (bench.depth("IN"), bench.depth("OUT")) == depths
    # The manager learns of it, and says so when it has.
    assert transactions.in_doubt() == (XID,)
    for decide in (transactions.commit, transactions.rollback):
        with pytest.raises(TransactionError, match="by hand") as raised:
            decide(client.connection, XID, None)
        assert raised.value.xa_code == code
    transactions.heuristics.forget(XID)
    assert transactions.in_doubt() == ()
    with pytest.raises(TransactionError):
        transactions.heuristics.forget(XID)
    after = bench.restart()
    assert (after.depth("IN"), after.depth("OUT")) == depths
    assert after.broker.transactions.in_doubt() == ()


def test_only_prepared_transactions_are_decided_by_hand(bench: "Bench") -> None:
    client = bench.client()
    bench.broker.transactions.begin(client.connection, XID)
    with pytest.raises(TransactionError, match="is not prepared"):
        bench.broker.transactions.force(XID, True, Reply(client.connection, 0))
