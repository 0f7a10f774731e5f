"""No more messages are scheduled than may wait, in transactions either."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.errors import ResourceAllocationError
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.message.primitives import Value
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

MOST = 10
SETTINGS = BrokerSettings(scheduler=SchedulerSettings(enabled=True, max_scheduled_messages=MOST))
JOBS = "ActiveMQ.Scheduler.Jobs"
HOUR = 3_600_000
LATER: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": HOUR}
AGAIN: dict[str, Value] = {**LATER, "AMQ_SCHEDULED_PERIOD": HOUR, "AMQ_SCHEDULED_REPEAT": -1}
XID = XATransactionId(1, b"global", b"branch")


@pytest.fixture
def bench(make_bench: "type[Bench]", tmp_path: Path) -> "Iterator[Bench]":
    """Return a broker where few jobs may wait, over a store that writes when it is told to."""
    store = KahaDBStore(tmp_path)
    yield make_bench(store, settings=SETTINGS)
    store.close()


def taken(client: "Client", count: int, properties: dict[str, Value] = LATER, **fields: Any) -> int:
    """Send so many jobs and write nothing; returns how many of them are not refused."""
    found = 0
    for _ in range(count):
        try:
            client.send("Q", "job", wait=False, properties=properties, **fields)
        except ResourceAllocationError as error:
            assert "scheduler.maxScheduledMessages" in str(error)
        else:
            found += 1
    return found


def commit(client: "Client", identifier: TransactionId) -> None:
    """Commit, and write nothing."""
    client.bench.broker.transactions.commit(client.connection, identifier, None)
    client.bench.broker.tick(client.bench.now, client.bench.steady)


def test_a_transaction_has_no_more_jobs_than_may_wait(bench: "Bench") -> None:
    client = bench.client()
    identifier = client.begin()
    assert taken(client, 100, transaction_id=identifier) == MOST
    client.send("Q", "at once", wait=False, transaction_id=identifier)
    commit(client, identifier)
    bench.tick()
    assert (bench.depth(JOBS), bench.depth("Q")) == (MOST, 1)


def test_all_that_send_have_one_limit(bench: "Bench") -> None:
    clients = [bench.client() for _ in range(3)]
    found = [taken(each, 4, transaction_id=each.begin()) for each in clients[:2]]
    assert [*found, taken(clients[2], 4)] == [4, 4, 2]


def test_a_transaction_that_is_rolled_back_leaves_its_places(bench: "Bench") -> None:
    client, other = bench.client(), bench.client()
    identifier = client.begin()
    assert taken(client, MOST, transaction_id=identifier) == MOST
    assert taken(other, 1) == 0
    bench.broker.transactions.rollback(client.connection, identifier, None)
    assert taken(other, MOST + 1, transaction_id=other.begin()) == MOST
    other.leave()
    assert taken(client, MOST + 1) == MOST


def test_jobs_have_their_places_while_their_commit_is_written(bench: "Bench") -> None:
    client = bench.client()
    identifier = client.begin()
    assert taken(client, 6, transaction_id=identifier) == 6
    commit(client, identifier)
    assert bench.depth(JOBS) == 0
    assert taken(client, MOST) == 4
    bench.tick()
    assert bench.depth(JOBS) == MOST
    bench.tick(HOUR)
    assert taken(client, MOST + 1) == MOST


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_prepared_transaction_has_its_places(bench: "Bench", is_restarted: bool) -> None:
    client, transactions = bench.client(), bench.broker.transactions
    transactions.begin(client.connection, XID)
    assert taken(client, 6, transaction_id=XID) == 6
    assert transactions.prepare(client.connection, XID, Reply(client.connection, 1))
    bench.tick()
    if is_restarted:
        bench.store.close()
        bench = bench.restart()
    other = bench.client()
    assert taken(other, MOST) == 4
    bench.broker.transactions.commit(other.connection, XID, None, is_one_phase=False)
    bench.tick()
    assert bench.depth(JOBS) == MOST
    assert taken(other, 1) == 0


def test_a_job_that_comes_again_has_its_place_while_it_is_written(bench: "Bench") -> None:
    client = bench.client()
    assert taken(client, MOST, AGAIN) == MOST
    bench.now += HOUR
    bench.steady += HOUR
    bench.broker.tick(bench.now, bench.steady)
    assert bench.depth(JOBS) == 0
    assert taken(client, 1) == 0
    bench.tick()
    assert (bench.depth(JOBS), bench.depth("Q")) == (MOST, MOST)


def test_jobs_that_wait_for_room_have_their_places(bench: "Bench") -> None:
    client, memory = bench.client(), bench.broker.memory
    memory.used += 2 << 30
    assert taken(client, 100) == MOST
    assert [each.sends for each in bench.broker.flow.blocked()] == [MOST]
    memory.used -= 2 << 30
    bench.tick()
    assert bench.depth(JOBS) == MOST
    assert taken(client, 1) == 0


def test_a_prepared_transaction_that_is_told_again_has_its_places_already(bench: "Bench") -> None:
    client = bench.client()
    transactions = bench.broker.transactions
    transactions.begin(client.connection, XID)
    sent = [
        client.send("Q", "job", wait=False, properties=LATER, transaction_id=XID) for _ in range(6)
    ]
    assert transactions.prepare(client.connection, XID, Reply(client.connection, 1))
    bench.tick()
    client.leave()
    again = bench.client()
    again.connection.reconnected = True
    transactions.begin(again.connection, XID)
    for message in sent:
        bench.broker.send(again.connection, message, None)
    # They are counted once.
    other = bench.client()
    assert taken(other, 1) == 1
    assert transactions.prepare(again.connection, XID, Reply(again.connection, 2))
    assert taken(other, MOST) == 3
    transactions.commit(again.connection, XID, None, is_one_phase=False)
    bench.tick()
    assert bench.depth(JOBS) == MOST


@pytest.mark.parametrize("is_local", [False, True])
def test_a_job_that_is_sent_again_is_answered_and_dropped_at_the_limit(
    bench: "Bench", is_local: bool
) -> None:
    client = bench.client()
    client.connection.fault_tolerant = True
    identifier = client.begin() if is_local else None
    sent = [
        client.send("Q", "job", wait=False, properties=LATER, transaction_id=identifier)
        for _ in range(MOST)
    ]
    if identifier is not None:
        commit(client, identifier)
    bench.tick()
    client.leave()
    again = bench.client()
    again.connection.fault_tolerant = again.connection.reconnected = True
    if identifier is not None:
        bench.broker.transactions.begin(again.connection, identifier)
    replies = [Reply(again.connection, number) for number in range(MOST)]
    for message, reply in zip(sent, replies, strict=True):
        bench.broker.send(again.connection, message, reply)
    bench.tick()
    assert again.outputs() == replies
    if identifier is not None:
        bench.broker.transactions.commit(again.connection, identifier, None)
        bench.tick()
    assert bench.depth(JOBS) == MOST
    # What is new is refused as before.
    assert taken(again, 1) == 0
