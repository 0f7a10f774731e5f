"""What fits into no file of the journal fails its sender, and nobody and nothing else."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.errors import ResourceAllocationError, TransactionRolledBackError
from lockkeeper.broker.outputs import Reply
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

XID = XATransactionId(1, b"global", b"branch")
LARGE, SMALL = "x" * 900, "small"


@pytest.fixture
def bench(tmp_path: Path, make_bench: "type[Bench]", monkeypatch: pytest.MonkeyPatch) -> "Bench":
    """A broker whose files hold 2000 bytes of what must share a batch."""
    monkeypatch.setattr("lockkeeper.store.kahadb.appender.ATOMIC_BATCH_BYTES_MAX", 2000)
    return make_bench(KahaDBStore(tmp_path))


def restarted(bench: "Bench", make_bench: "type[Bench]", tmp_path: Path) -> "Bench":
    bench.store.close()
    return make_bench(KahaDBStore(tmp_path))


def fill(client: "Client", identifier: TransactionId) -> None:
    """Send, within a transaction, more than a batch holds."""
    for _ in range(3):
        client.send("queue://Q", LARGE, transaction_id=identifier)


def test_a_commit_that_is_too_large_is_rolled_back_and_told(
    bench: "Bench", make_bench: "type[Bench]", tmp_path: Path
) -> None:
    client = bench.client()
    consumer = client.consume("queue://IN")
    consumed = client.send("queue://IN", SMALL)
    assert client.texts(consumer) == [SMALL]
    identifier = client.begin()
    fill(client, identifier)
    used = bench.broker.memory.used
    with pytest.raises(TransactionRolledBackError, match="do not fit into a data file"):
        bench.broker.transactions.commit(client.connection, identifier, Reply(client.connection, 1))
    bench.tick()
    assert bench.broker.memory.used < used
    assert bench.depth("Q") == 0
    # The same id, the same connection, the same consumer go on.
    again = client.begin()
    client.send("queue://Q", SMALL, transaction_id=again)
    bench.broker.transactions.commit(client.connection, again, None)
    client.acknowledge(consumer, consumed)
    bench.tick()
    assert (bench.depth("Q"), bench.depth("IN")) == (1, 0)
    bench = restarted(bench, make_bench, tmp_path)
    assert (bench.depth("Q"), bench.depth("IN")) == (1, 0)


def test_a_prepare_that_is_too_large_is_rolled_back_and_not_in_doubt(
    bench: "Bench", make_bench: "type[Bench]", tmp_path: Path
) -> None:
    client = bench.client()
    transactions = bench.broker.transactions
    transactions.begin(client.connection, XID)
    fill(client, XID)
    with pytest.raises(TransactionRolledBackError, match="do not fit into a data file"):
        transactions.prepare(client.connection, XID, Reply(client.connection, 1))
    bench.tick()
    assert transactions.in_doubt() == ()
    transactions.begin(client.connection, XID)
    client.send("queue://Q", SMALL, transaction_id=XID)
    assert transactions.prepare(client.connection, XID, Reply(client.connection, 2))
    bench.tick()
    bench = restarted(bench, make_bench, tmp_path)
    assert bench.broker.transactions.in_doubt() == (XID,)
    client = bench.client()
    bench.broker.transactions.commit(client.connection, XID, None)
    bench.tick()
    assert bench.depth("Q") == 1


def test_copies_that_are_too_large_together_are_refused_whole(
    bench: "Bench", make_bench: "type[Bench]", tmp_path: Path
) -> None:
    client = bench.client()
    with pytest.raises(ResourceAllocationError, match="do not fit into a data file"):
        client.send("queue://A,B,C", LARGE)
    client.send("queue://A,B,C", SMALL)
    assert [bench.depth(name) for name in "ABC"] == [1, 1, 1]
    bench = restarted(bench, make_bench, tmp_path)
    assert [bench.depth(name) for name in "ABC"] == [1, 1, 1]
