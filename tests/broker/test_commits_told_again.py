"""Commits that a client tells again after a failover, while the first one waits for the disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.outputs import Prepared, Reply
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.ids import LocalTransactionId, TransactionId, XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import ConnectionId, TransactionInfo, TransactionOperation
from lockkeeper.protocols.openwire.commands import Commands
from lockkeeper.protocols.openwire.phases import Progress
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

NAME = "ID:client-cut-off-1:1"
LOCAL = LocalTransactionId(NAME, 1)
XID = XATransactionId(1, b"global", b"branch")
PARTS = (ForwardTo(queue="A"), ForwardTo(queue="B"))
SETTINGS = BrokerSettings(
    scheduler=SchedulerSettings(enabled=True),
    composite_destinations=(CompositeDestination("BOTH", forward_to=PARTS),),
)
LATER = {"AMQ_SCHEDULED_DELAY": 60_000}
BEGIN, PREPARE, ONE_PHASE, TWO_PHASE = (
    TransactionOperation.BEGIN,
    TransactionOperation.PREPARE,
    TransactionOperation.COMMIT_ONE_PHASE,
    TransactionOperation.COMMIT_TWO_PHASE,
)


@pytest.fixture
def bench(make_bench: "type[Bench]", tmp_path: Path) -> "Iterator[Bench]":
    """Return a broker over a journal whose disk is slow: nothing is durable until a tick."""
    bench = make_bench(KahaDBStore(tmp_path), settings=SETTINGS)
    yield bench
    bench.store.close()


def connect(bench: "Bench", reconnected: bool = False) -> "Client":
    """Return the client that is cut off, or is back."""
    client = bench.client(NAME)
    client.connection.fault_tolerant = True
    client.connection.reconnected = reconnected
    return client


def cut_off(client: "Client") -> "Client":
    """Return the client as it is after a failover; nothing becomes durable meanwhile."""
    client.bench.broker.disconnect(client.connection)
    return connect(client.bench, reconnected=True)


def ask(client: "Client", operation: TransactionOperation, identifier: TransactionId) -> Reply:
    """Have a client say something of a transaction; returns what it waits for."""
    progress = Progress()
    for event in ("agree", "admit"):
        progress.become(event)
    commands = Commands(client.bench.broker, ListenerSettings(), client.connection, progress)
    info = TransactionInfo(
        connection_id=ConnectionId(NAME), transaction_id=identifier, type=operation
    )
    reply = Reply(client.connection, 1)
    commands.carry_out(info, reply)
    turn(client.bench)
    return reply


def turn(bench: "Bench") -> None:
    """Begin to write what waits; what is written already does not become durable."""
    bench.broker.tick(bench.now, bench.steady)
    bench.broker.settle(bench.store.flush())


def keep_the_disk_busy(bench: "Bench") -> None:
    """Have a write begin that everything else waits for."""
    bench.client().send("OTHER", "x", wait=False)
    turn(bench)


def send_again(client: "Client", sent: Message, identifier: TransactionId) -> None:
    """Tell the begin of a transaction again, and what was sent in it."""
    ask(client, BEGIN, identifier)
    client.bench.broker.send(client.connection, sent, None)
    client.outputs()


@pytest.mark.parametrize("identifier", [LOCAL, XID], ids=["local", "xa"])
@pytest.mark.parametrize(
    ("to", "properties", "places"),
    [("Q", {}, ["Q"]), ("BOTH", {}, ["A", "B"]), ("Q", LATER, ["ActiveMQ.Scheduler.Jobs"])],
    ids=["queue", "composite", "scheduled"],
)
def test_a_commit_told_again_is_answered_when_it_is_durable(
    bench: "Bench",
    to: str,
    properties: dict[str, int],
    places: list[str],
    identifier: TransactionId,
) -> None:
    keep_the_disk_busy(bench)
    client = connect(bench)
    ask(client, BEGIN, identifier)
    sent = client.send(to, "x", wait=False, properties={**properties}, transaction_id=identifier)
    client.outputs()
    ask(client, ONE_PHASE, identifier)
    assert client.outputs() == []

    client = cut_off(client)
    send_again(client, sent, identifier)
    reply = ask(client, ONE_PHASE, identifier)
    assert client.outputs() == []
    bench.tick()
    assert client.outputs() == [reply]
    assert [bench.depth(place) for place in places] == [1] * len(places)
    assert bench.broker.transactions.unfinished() == []


def test_an_answer_of_the_second_phase_waits_for_the_disk_however_it_is_told_again(
    bench: "Bench",
) -> None:
    client = connect(bench)
    ask(client, BEGIN, XID)
    sent = client.send("Q", "x", wait=False, transaction_id=XID)
    ask(client, PREPARE, XID)
    bench.tick()
    assert bench.broker.transactions.in_doubt() == (XID,)
    keep_the_disk_busy(bench)
    client.outputs()
    ask(client, TWO_PHASE, XID)
    assert client.outputs() == []

    client = cut_off(client)
    send_again(client, sent, XID)
    ask(client, PREPARE, XID)
    assert client.outputs() == []
    reply = ask(client, TWO_PHASE, XID)
    assert client.outputs() == []
    bench.tick()
    assert client.outputs() == [Prepared(1, read_only=True), reply]
    assert bench.depth("Q") == 1


def test_a_commit_of_what_is_stored_and_what_is_not_persistent_takes_effect_when_durable(
    bench: "Bench",
) -> None:
    keep_the_disk_busy(bench)
    client = connect(bench)
    ask(client, BEGIN, LOCAL)
    sent = client.send("Q", "stored", wait=False, transaction_id=LOCAL)
    ask(client, ONE_PHASE, LOCAL)

    client = cut_off(client)
    send_again(client, sent, LOCAL)
    client.send("Q", "volatile", wait=False, persistent=False, transaction_id=LOCAL)
    client.outputs()
    reply = ask(client, ONE_PHASE, LOCAL)
    assert client.outputs() == []
    assert bench.depth("Q") == 0
    bench.tick()
    assert client.outputs() == [reply]
    assert bench.depth("Q") == 2


def test_what_is_new_and_not_persistent_is_committed_at_once(bench: "Bench") -> None:
    keep_the_disk_busy(bench)
    client = connect(bench, reconnected=True)
    ask(client, BEGIN, LOCAL)
    client.send("Q", "volatile", wait=False, persistent=False, transaction_id=LOCAL)
    client.outputs()
    reply = ask(client, ONE_PHASE, LOCAL)
    assert client.outputs() == [reply]
