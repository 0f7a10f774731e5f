"""A prepared transaction is nobody else's, and is prepared once however often it is told."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import TransactionError, TransactionRolledBackError
from lockkeeper.broker.outputs import Reply
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Bench, Client

XID = XATransactionId(1, b"global", b"branch")
DUPLICATE_ID = -8


@pytest.fixture
def start(make_bench: "type[Bench]", tmp_path: "Path") -> "Callable[[], Bench]":
    """Return what starts a broker over the journal, the one before has to be stopped."""
    return lambda: make_bench(KahaDBStore(tmp_path))


def prepare(bench: "Bench", client: "Client", number: int) -> Reply:
    reply = Reply(client.connection, number)
    assert bench.broker.transactions.prepare(client.connection, XID, reply)
    bench.tick()
    return reply


def test_what_is_prepared_cannot_be_begun_or_ended_by_somebody_else(
    start: "Callable[[], Bench]",
) -> None:
    bench = start()
    transactions = bench.broker.transactions
    first, other, cut_off = (bench.client() for _ in range(3))
    transactions.begin(first.connection, XID)
    first.send("Q", "in a transaction", transaction_id=XID)
    prepare(bench, first, 1)
    with pytest.raises(TransactionError, match="is prepared already") as refused:
        transactions.begin(other.connection, XID)
    assert refused.value.xa_code == DUPLICATE_ID
    with pytest.raises(TransactionError, match="has not been started"):
        transactions.prepare(other.connection, XID, Reply(other.connection, 2))
    # What a client tells again is not to be ended in one phase.
    cut_off.connection.reconnected = True
    transactions.begin(cut_off.connection, XID)
    cut_off.send("Q", "told again", transaction_id=XID)
    with pytest.raises(TransactionRolledBackError, match="is prepared already"):
        transactions.commit(cut_off.connection, XID, Reply(cut_off.connection, 3))
    bench.store.close()
    again = start()
    assert again.broker.transactions.in_doubt() == (XID,)
    assert again.depth("Q") == 0
    again.broker.transactions.commit(again.client().connection, XID, None)
    again.tick()
    assert again.depth("Q") == 1
    again.store.close()


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_committed", [False, True])
def test_what_a_client_tells_again_that_was_cut_off_is_prepared_once(
    start: "Callable[[], Bench]", is_restarted: bool, is_committed: bool
) -> None:
    bench = start()
    client = bench.client()
    bench.broker.transactions.begin(client.connection, XID)
    sent = client.send("Q", "once", transaction_id=XID)
    prepare(bench, client, 1)
    client.leave()
    if is_restarted:
        bench.store.close()
        bench = start()
    used = bench.broker.memory.used

    client = bench.client()
    client.connection.reconnected = client.connection.fault_tolerant = True
    transactions = bench.broker.transactions
    transactions.begin(client.connection, XID)
    bench.broker.send(client.connection, sent, None)
    reply = prepare(bench, client, 2)
    assert reply in client.outputs()
    assert bench.broker.memory.used == used
    if is_committed:
        transactions.commit(client.connection, XID, None)
        bench.tick()
        consumer = client.consume("Q")
        (delivery,) = client.deliveries(consumer)
        client.acknowledge(consumer, delivery.message)
    else:
        transactions.rollback(client.connection, XID, None)
        bench.tick()
    assert bench.broker.memory.used == 0
    assert isinstance(bench.store, KahaDBStore)
    assert sum(usage.live for usage in bench.store._file_references.files.values()) == 0
    bench.store.close()
    again = start()
    assert again.broker.transactions.in_doubt() == ()
    assert again.depth("Q") == 0
    again.store.close()


def test_what_was_committed_is_not_prepared_again(start: "Callable[[], Bench]") -> None:
    bench = start()
    client = bench.client()
    client.connection.fault_tolerant = True
    transactions = bench.broker.transactions
    transactions.begin(client.connection, XID)
    sent = client.send("Q", "once", transaction_id=XID)
    prepare(bench, client, 1)
    transactions.commit(client.connection, XID, None)
    bench.tick()
    # The answer was lost: the client tells all of it again.
    client.connection.reconnected = True
    transactions.begin(client.connection, XID)
    bench.broker.send(client.connection, sent, None)
    assert not transactions.prepare(client.connection, XID, Reply(client.connection, 2))
    with pytest.raises(TransactionError, match="has not been started"):
        transactions.commit(client.connection, XID, None)
    assert bench.depth("Q") == 1
    bench.store.close()
