"""Removals of jobs are answered when they are on the disk: whatever dies then, none comes back."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

SETTINGS = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
JOBS = "ActiveMQ.Scheduler.Jobs"
MINUTE = 60_000
AGAIN: dict[str, Value] = {
    "AMQ_SCHEDULED_DELAY": MINUTE,
    "AMQ_SCHEDULED_PERIOD": MINUTE,
    "AMQ_SCHEDULED_REPEAT": -1,
}
WRITES_MAX = 10


@pytest.fixture
def bench(make_bench: "type[Bench]", tmp_path: Path) -> "Iterator[Bench]":
    """Return a broker over a store on a disk, which heeds schedules."""
    store = KahaDBStore(tmp_path / "data")
    yield make_bench(store, settings=SETTINGS)
    store.close()


def send_jobs(client: "Client", count: int) -> str:
    """Have jobs wait that have one id; returns it."""
    bench, sent = client.bench, client.send("Q", "job", properties=AGAIN)
    for _ in range(count - 1):
        again = encoded(decoded(sent), bench.broker.context.next_sequence())
        bench.broker.send(client.connection, again, None)
    bench.tick()
    client.outputs()
    return str(decoded(sent).message_id)


def remove(client: "Client", action: str, identifier: str) -> Reply:
    """Ask for a removal; returns what it is answered with."""
    bench, reply = client.bench, Reply(client.connection, 77)
    properties: dict[str, Value] = {ACTION: action, "scheduledJobId": identifier}
    message = bench.message(client, MANAGEMENT, "", properties=properties)
    bench.broker.send(client.connection, message, reply)
    bench.broker.tick(bench.now, bench.steady)
    return reply


def writes_until(client: "Client", reply: Reply) -> int:
    """Return how often the store has to write until a request is answered."""
    bench, writes = client.bench, 0
    while reply not in client.connection.outbox:
        assert writes < WRITES_MAX
        bench.broker.settle(bench._durable())
        bench.broker.tick(bench.now, bench.steady)
        writes += 1
    return writes


def after_a_kill(bench: "Bench", tmp_path: Path) -> tuple[int, int]:
    """Return how many jobs the next master has, and how many messages come of them."""
    killed = tmp_path / "killed"
    killed.mkdir()
    for path in (tmp_path / "data").glob("db-*.log"):
        shutil.copy2(path, killed)
    store = KahaDBStore(killed)
    again = type(bench)(store, settings=SETTINGS)
    again.now, again.steady = bench.now, bench.steady
    there, before = again.depth(JOBS), again.depth("Q")
    again.tick(MINUTE)
    come = again.depth("Q") - before
    store.close()
    return there, come


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("action", ["REMOVE", "REMOVEALL"])
def test_a_job_that_waits_is_gone_when_that_is_answered(
    bench: "Bench", tmp_path: Path, action: str, count: int
) -> None:
    client = bench.client()
    identifier = send_jobs(client, count)
    assert writes_until(client, remove(client, action, identifier)) == 1
    assert after_a_kill(bench, tmp_path) == (0, 0)


@pytest.mark.parametrize("action", ["REMOVE", "REMOVEALL"])
def test_a_job_that_is_coming_is_gone_when_that_is_answered(
    bench: "Bench", tmp_path: Path, action: str
) -> None:
    client = bench.client()
    identifier = send_jobs(client, 1)
    bench.now += MINUTE
    bench.steady += MINUTE
    bench.broker.tick(bench.now, bench.steady)
    assert (bench.depth(JOBS), bench.depth("Q")) == (0, 0)
    assert writes_until(client, remove(client, action, identifier)) == 2
    assert bench.depth("Q") == 1
    assert after_a_kill(bench, tmp_path) == (0, 0)


def test_a_removal_of_nothing_is_answered(bench: "Bench") -> None:
    client = bench.client()
    assert writes_until(client, remove(client, "REMOVE", "ID:nobody")) == 1
