"""Requests about a job that comes again, while what it delivers is being written."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SchedulerSettings, SystemUsage
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench, Client

SETTINGS = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
MINUTE = 60_000
REPEATED: dict[str, Value] = {
    "AMQ_SCHEDULED_DELAY": MINUTE,
    "AMQ_SCHEDULED_PERIOD": MINUTE,
    "AMQ_SCHEDULED_REPEAT": -1,
}
CRON: dict[str, Value] = {"AMQ_SCHEDULED_CRON": "* * * * *"}
BEGUN_BY_CRON = {**REPEATED, **CRON}
LAST: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": MINUTE}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KahaDBStore]:
    """Return a store on a disk, which writes when it is told to."""
    store = KahaDBStore(tmp_path)
    yield store
    store.close()


@pytest.fixture
def bench(make_bench: "type[Bench]", store: KahaDBStore) -> "Bench":
    """Return a broker over that store, which heeds schedules."""
    return make_bench(store, settings=SETTINGS)


def fire(client: "Client", schedule: dict[str, Value]) -> str:
    """Let a job be due whose delivery is being written from now on; returns its id."""
    bench = client.bench
    sent = client.send("Q", "job", properties=schedule)
    bench.now += MINUTE
    bench.steady += MINUTE
    turn(bench)
    assert bench.depth(str(JOBS)) == bench.depth("Q") == 0
    client.outputs()
    return str(decoded(sent).message_id)


def turn(bench: "Bench") -> None:
    """Do what is due, and write nothing."""
    bench.broker.tick(bench.now, bench.steady)


def ask(client: "Client", action: str, **properties: Value) -> Reply:
    """Ask for something, and write nothing; returns what it is answered with when it is done."""
    bench = client.bench
    message = bench.message(
        client,
        MANAGEMENT,
        "",
        properties={ACTION: action, **properties},
        reply_to=parse_destination("ANSWERS"),
    )
    reply = Reply(client.connection, 77)
    bench.broker.send(client.connection, message, reply)
    turn(bench)
    return reply


@pytest.mark.parametrize("action", ["REMOVE", "REMOVEALL"])
@pytest.mark.parametrize("schedule", [REPEATED, CRON], ids=["repeated", "cron"])
def test_a_job_that_is_removed_comes_no_more(
    bench: "Bench", store: KahaDBStore, tmp_path: Path, action: str, schedule: dict[str, Value]
) -> None:
    client = bench.client()
    identifier = fire(client, schedule)
    reply = ask(client, action, scheduledJobId=identifier)
    assert client.outputs() == []
    bench.tick()
    assert client.outputs() == [reply]
    assert (bench.depth("Q"), bench.depth(str(JOBS))) == (1, 0)
    assert bench.queue(str(JOBS)).memory_used() == 0
    for _ in range(3):
        bench.tick(MINUTE)
    store.close()
    again = type(bench)(KahaDBStore(tmp_path), settings=SETTINGS)
    again.now, again.steady = bench.now, bench.steady
    for _ in range(3):
        again.tick(MINUTE)
    assert (again.depth("Q"), again.depth(str(JOBS))) == (1, 0)
    assert bench.broker.containment.records == {}
    again.store.close()


def test_what_a_cron_expression_begins_is_removed_with_all(bench: "Bench") -> None:
    client = bench.client()
    fire(client, BEGUN_BY_CRON)
    ask(client, "REMOVEALL")
    for _ in range(5):
        bench.tick(MINUTE)
    assert (bench.depth("Q"), bench.depth(str(JOBS))) == (0, 0)


@pytest.mark.parametrize(
    ("first", "last", "left"), [(0, 59_999, 1), (1, 60_000, 0), (60_001, 9**9, 1)]
)
def test_the_next_time_of_a_job_tells_whether_it_is_removed(
    bench: "Bench", first: int, last: int, left: int
) -> None:
    client = bench.client()
    fire(client, REPEATED)
    times = {"ACTION_START_TIME": str(bench.now + first), "ACTION_END_TIME": str(bench.now + last)}
    ask(client, "REMOVEALL", **times)
    bench.tick()
    assert (bench.depth("Q"), bench.depth(str(JOBS))) == (1, left)


@pytest.mark.parametrize(
    ("schedule", "told"), [(REPEATED, 1), (CRON, 1), (BEGUN_BY_CRON, 2), (LAST, 0)]
)
def test_who_browses_is_told_of_a_job_that_comes_again(
    bench: "Bench", schedule: dict[str, Value], told: int
) -> None:
    client = bench.client()
    fire(client, schedule)
    reply = ask(client, "BROWSE")
    assert reply in client.outputs()
    assert bench.depth("ANSWERS") == told
    bench.tick()
    assert bench.depth(str(JOBS)) == told


def test_other_jobs_come_again(bench: "Bench") -> None:
    client = bench.client()
    client.send("Q", "other", wait=False, properties=REPEATED)
    ask(client, "REMOVE", scheduledJobId=fire(client, REPEATED))
    bench.tick()
    assert (bench.depth("Q"), bench.depth(str(JOBS))) == (2, 1)
    bench.tick(MINUTE)
    assert (bench.depth("Q"), bench.depth(str(JOBS))) == (3, 1)


def test_a_job_for_which_there_was_no_room_is_removed_as_it_waits_on(
    make_bench: "type[Bench]",
) -> None:
    usage = SystemUsage(MemoryUsage(1 << 20))
    bench = make_bench(settings=replace(SETTINGS, system_usage=usage))
    client = bench.client()
    sent = client.send("Q", "job", properties=REPEATED)
    memory = bench.broker.memory
    memory.used += 100 << 20
    for _ in range(3):
        bench.tick(MINUTE)
    assert (bench.depth("Q"), bench.depth(str(JOBS))) == (0, 1)
    ask(client, "REMOVE", scheduledJobId=str(decoded(sent).message_id))
    memory.used -= 100 << 20
    for _ in range(3):
        bench.tick(MINUTE)
    assert (bench.depth("Q"), bench.depth(str(JOBS))) == (0, 0)
    assert memory.used == 0
