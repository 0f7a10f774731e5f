"""Removals of jobs that are under way together: each takes what it was asked to, and no more."""

from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.context import END_BYTES, TICK_BYTES_MAX
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, encoded

if TYPE_CHECKING:
    from conftest import Bench, Client

MINUTE, HOUR = 60_000, 3_600_000
LATER: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": HOUR}
BEGINS: dict[str, Value] = {
    "AMQ_SCHEDULED_CRON": "* * * * *",
    "AMQ_SCHEDULED_DELAY": MINUTE,
    "AMQ_SCHEDULED_PERIOD": MINUTE,
    "AMQ_SCHEDULED_REPEAT": -1,
}
TURNS = 4


@pytest.fixture
def bench(make_bench: "type[Bench]") -> "Bench":
    """Return a broker with more jobs than are removed in a turn, and one that begins others."""
    bench = make_bench(settings=BrokerSettings(scheduler=SchedulerSettings(enabled=True)))
    client = bench.client()
    for _ in range(TURNS * TICK_BYTES_MAX // END_BYTES):
        client.send("FILL", "x", wait=False, properties=LATER)
    return bench


def ask(client: "Client", action: str, **properties: Value) -> Reply:
    """Ask for something without a turn; returns what it is answered with when it is done."""
    told = {ACTION: action, **properties}
    to = parse_destination("ANSWERS")
    message = client.bench.message(client, MANAGEMENT, "", properties=told, reply_to=to)
    reply = Reply(client.connection, 77)
    client.bench.broker.send(client.connection, message, reply)
    return reply


def turn(bench: "Bench", count: int = 1) -> None:
    """Do what is due, and write what waits."""
    for _ in range(count):
        bench.broker.tick(bench.now, bench.steady)
        bench.broker.settle(bench.store.flush())


def next_minute(bench: "Bench") -> None:
    """Let it become a whole minute, in one turn."""
    left = MINUTE - bench.now % MINUTE
    bench.now += left
    bench.steady += left
    turn(bench)


def begun(bench: "Bench") -> int:
    """Return how many jobs there are that others have begun."""
    queue = bench.queue(str(JOBS))
    assert isinstance(queue, JobQueue)
    return sum(not job.schedule.cron and job.schedule.repeat == -1 for job, _ in queue.jobs())


@pytest.mark.parametrize("is_another_removing", [False, True])
def test_what_a_job_began_before_it_is_removed_goes_on_whoever_else_removes(
    bench: "Bench", is_another_removing: bool
) -> None:
    client, other = bench.client(), bench.client()
    cron = client.send("Q", "x", properties=BEGINS)
    if is_another_removing:
        # Of a time at which this one is not due.
        first, last = str(bench.now + HOUR // 2), str(bench.now + 2 * HOUR)
        reply = ask(other, "REMOVEALL", ACTION_START_TIME=first, ACTION_END_TIME=last)
        turn(bench)
    next_minute(bench)
    assert begun(bench) == 1
    if is_another_removing:
        assert reply not in other.connection.outbox
    ask(client, "REMOVE", scheduledJobId=cron.key.decode())
    turn(bench, 20 * TURNS)
    bench.tick()
    assert begun(bench) == 1
    for _ in range(3):
        bench.tick(MINUTE)
    assert bench.depth("Q") == 3


def test_what_a_job_begins_while_its_removal_has_not_begun_is_removed(bench: "Bench") -> None:
    client = bench.client()
    cron = client.send("Q", "x", properties=BEGINS)
    # Several jobs of one id are removed in turns.
    broker = bench.broker
    broker.send(client.connection, encoded(decoded(cron), broker.context.next_sequence()), None)
    bench.tick()
    before = bench.depth(str(JOBS))
    # What was asked for first is carried out first.
    ask(client, "BROWSE")
    reply = ask(client, "REMOVE", scheduledJobId=cron.key.decode())
    next_minute(bench)
    assert begun(bench) == 2
    turn(bench, 1000)
    bench.tick()
    assert reply in client.connection.outbox
    assert bench.depth(str(JOBS)) == before - 2
