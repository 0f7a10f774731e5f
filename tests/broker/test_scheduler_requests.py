"""Requests about jobs: which jobs they are about, and what they cost others while they last."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.context import END_BYTES, TICK_BYTES_MAX
from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.outputs import Failure, Reply
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.requests.turns import ASKED_BYTES_MAX
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.job_queue import JOB_BYTES
from lockkeeper.broker.scheduling.management import ACTION, MANAGEMENT
from lockkeeper.broker.scheduling.searching import LOOKED_AT_ONCE
from lockkeeper.broker.settings import (
    BrokerSettings,
    MemoryUsage,
    SchedulerSettings,
    SystemUsage,
)
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.openwire import AckType
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.message.segments import SEGMENT_PREFIX

if TYPE_CHECKING:
    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.message.message import Message

SETTINGS = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
HOUR = 3_600_000
MINUTE = 60_000
COUNT = 300
ENDED_IN_A_TURN = TICK_BYTES_MAX // END_BYTES
# In bytes: all of the 30 jobs below, and about ten of their copies.
ROOM = 450_000


@pytest.fixture
def bench(make_bench: "type[Bench]") -> "Bench":
    """Return a broker that heeds schedules."""
    return make_bench(settings=SETTINGS)


def scheduled(**properties: Value) -> dict[str, Value]:
    """Return the properties of a schedule: delay=5 for AMQ_SCHEDULED_DELAY."""
    return {f"AMQ_SCHEDULED_{name.upper()}": value for name, value in properties.items()}


def schedule(client: "Client", *texts: str, **fields: Any) -> None:
    """Send jobs that come in an hour, without a turn."""
    for text in texts:
        client.send("Q", text, wait=False, properties=scheduled(delay=HOUR), **fields)


def ask(
    client: "Client",
    action: str,
    reply_to: str = "ANSWERS",
    is_answered: bool = True,
    **properties: Value,
) -> Reply:
    """Ask for something without a turn; returns what it is answered with when it is done."""
    message = client.bench.message(
        client,
        MANAGEMENT,
        "",
        properties={ACTION: action, **properties},
        reply_to=parse_destination(reply_to),
    )
    reply = Reply(client.connection, 77)
    client.bench.broker.send(client.connection, message, reply if is_answered else None)
    return reply


def turn(bench: "Bench", count: int = 1) -> None:
    """Do what is due, and write what waits."""
    for _ in range(count):
        bench.broker.tick(bench.now, bench.steady)
        bench.broker.settle(bench.store.flush())


def turns_until(client: "Client", reply: Reply) -> int:
    """Return how many turns it takes until a request is answered."""
    bench, turns = client.bench, 0
    while reply not in client.connection.outbox:
        assert turns < 10 * COUNT
        turn(bench)
        turns += 1
    return turns


def waiting_jobs(bench: "Bench", consumer: "Consumer", client: "Client") -> list[str]:
    """Return the texts of all jobs, as somebody is told who asks."""
    ask(client, "BROWSE", str(consumer.destination))
    bench.tick(1)
    return client.texts(consumer)


@pytest.mark.parametrize(
    ("again", "pause"),
    [
        (scheduled(delay=5, period=10 * MINUTE, repeat=9), 10),
        (scheduled(cron="* * * * *"), MINUTE),
        (scheduled(cron="* * * * *", delay=MINUTE, period=MINUTE, repeat=9), MINUTE),
    ],
    ids=["repeated", "cron", "begun by cron"],
)
def test_all_jobs_are_those_that_there_are_when_somebody_asks_to_remove_them(
    bench: "Bench", again: dict[str, Value], pause: int
) -> None:
    client, other = bench.client(), bench.client()
    schedule(client, *["old"] * COUNT)
    client.send("Q", "again", wait=False, properties=again)
    bench.tick()
    ask(client, "BROWSE")
    reply = ask(client, "REMOVEALL")
    # Even what claims to be older is not; what comes again is what it was.
    schedule(other, "new", "newer")
    forged: dict[str, Value] = {**scheduled(delay=HOUR), "lockkeeperNumber": 0}
    other.send("Q", "newest", wait=False, properties=forged)
    bench.now += pause
    bench.steady += pause
    bench.tick()
    turns_until(client, reply)
    assert waiting_jobs(bench, other.consume("LEFT"), other) == ["new", "newer", "newest"]
    bench.tick(30 * MINUTE)
    assert bench.depth(str(JOBS)) == 3


def test_who_browses_is_told_of_the_jobs_that_there_were(bench: "Bench") -> None:
    client, other = bench.client(), bench.client()
    consumer = client.consume("TOLD", prefetch=2 * COUNT)
    schedule(client, *["old"] * COUNT)
    client.send("Q", "again", wait=False, properties=scheduled(period=5, repeat=9))
    bench.tick()
    ask(client, "BROWSE")
    reply = ask(client, "BROWSE", "TOLD")
    schedule(other, "new")
    bench.now += 5
    bench.steady += 5
    bench.tick()
    turns_until(client, reply)
    assert sorted(client.texts(consumer)) == ["again", *["old"] * COUNT]


def test_jobs_are_browsed_whatever_transaction_they_came_in(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("TOLD")
    transaction = client.begin()
    schedule(client, "sent in one", transaction_id=transaction)
    bench.broker.transactions.commit(client.connection, transaction, None)
    client.send("Q", "repeated", wait=False, properties=scheduled(delay=5, period=MINUTE, repeat=9))
    bench.tick(5)
    client.outputs()
    reply = ask(client, "BROWSE", "TOLD")
    turns_until(client, reply)
    bench.tick()
    assert client.texts(consumer) == ["repeated", "sent in one"]


def test_one_job_is_removed_at_once_whoever_browses(bench: "Bench") -> None:
    client, other = bench.client(), bench.client()
    schedule(client, *["old"] * COUNT)
    sent = client.send("Q", "one", properties=scheduled(delay=HOUR))
    client.outputs()
    ask(other, "BROWSE")
    reply = ask(client, "REMOVE", scheduledJobId=str(decoded(sent).message_id))
    assert bench.depth(str(JOBS)) == COUNT
    bench.broker.settle(bench.store.flush())
    assert client.outputs() == [reply]
    assert client.connection.stalled_bytes == 0


def send_again(client: "Client", message: "Message", count: int, **fields: Any) -> None:
    """Send so many jobs that have the id of a message."""
    broker, same = client.bench.broker, replace(decoded(message), **fields)
    for _ in range(count):
        again = encoded(same, broker.context.next_sequence())
        broker.send(client.connection, again, None)


@pytest.mark.parametrize("action", ["REMOVE", "REMOVEALL"])
def test_jobs_of_one_id_are_removed_some_in_each_turn(bench: "Bench", action: str) -> None:
    client, other = bench.client(), bench.client()
    sent = client.send("Q", "one", properties=scheduled(delay=HOUR))
    send_again(client, sent, ENDED_IN_A_TURN * 3 - 1)
    bench.tick()
    client.outputs()
    reply = ask(client, action, scheduledJobId=str(decoded(sent).message_id))
    assert bench.depth(str(JOBS)) == ENDED_IN_A_TURN * 3
    turn(bench)
    assert ENDED_IN_A_TURN * 2 <= bench.depth(str(JOBS)) < ENDED_IN_A_TURN * 3
    # Those that begin to wait now have the same id, but are not meant.
    send_again(other, sent, 2)
    turns_until(client, reply)
    assert bench.depth(str(JOBS)) == 2


def test_jobs_of_one_id_are_removed_that_come_again_meanwhile(bench: "Bench") -> None:
    client = bench.client()
    sent = client.send("Q", "one", properties=scheduled(delay=HOUR))
    send_again(client, sent, 3 * ENDED_IN_A_TURN)
    repeated = encode_map(scheduled(delay=5, period=10 * MINUTE, repeat=9))
    send_again(client, sent, 3, marshalled_properties=repeated)
    bench.tick()
    reply = ask(client, "REMOVE", scheduledJobId=str(decoded(sent).message_id))
    turn(bench)
    assert bench.depth(str(JOBS)) > ENDED_IN_A_TURN
    bench.tick(5)
    assert bench.depth("Q") == 3
    turns_until(client, reply)
    assert bench.depth(str(JOBS)) == 0


@pytest.mark.parametrize("how", ["REMOVE", "REMOVEALL", "those of a time"])
def test_what_jobs_begin_while_they_are_removed_is_removed(bench: "Bench", how: str) -> None:
    client, to_minute = bench.client(), MINUTE - bench.now % MINUTE
    begins = scheduled(cron="* * * * *", delay=MINUTE, period=MINUTE, repeat=-1)
    # Long enough that a minute begins before their turn has come.
    before = scheduled(delay=to_minute - 1)
    sent = client.send("Q", "one", wait=False, properties=before)
    if how == "REMOVE":
        send_again(client, sent, 2 * ENDED_IN_A_TURN)
        send_again(client, sent, 3, marshalled_properties=encode_map(begins))
    else:
        for properties in (*[before] * 2 * ENDED_IN_A_TURN, *[begins] * 3):
            client.send("Q", "one", wait=False, properties=properties)
    bench.tick()
    asked: dict[str, Any] = {"scheduledJobId": str(decoded(sent).message_id)}
    if how == "those of a time":
        asked = {"ACTION_START_TIME": "1", "ACTION_END_TIME": str(bench.now + to_minute)}
    client.outputs()
    reply = ask(client, "REMOVE" if how == "REMOVE" else "REMOVEALL", **asked)
    turn(bench)
    assert bench.depth(str(JOBS)) > ENDED_IN_A_TURN
    bench.now += to_minute
    bench.steady += to_minute
    turns_until(client, reply)
    assert bench.depth(str(JOBS)) == 0
    come = bench.depth("Q")
    bench.tick(3 * MINUTE)
    assert bench.depth("Q") == come


@pytest.mark.parametrize("action", ["BROWSE", "REMOVEALL"])
def test_jobs_are_looked_for_in_turns(bench: "Bench", action: str) -> None:
    client = bench.client()
    schedule(client, *["old"] * (3 * LOOKED_AT_ONCE))
    bench.tick()
    client.outputs()
    # Long before any of them.
    replies = [ask(client, action, ACTION_START_TIME="1", ACTION_END_TIME="2") for _ in range(100)]
    assert client.connection.outbox == []
    most, turns = 0, 0
    while replies[-1] not in client.connection.outbox:
        before = len(client.connection.outbox)
        turn(bench)
        turns += 1
        most = max(most, len(client.connection.outbox) - before)
    looked = TICK_BYTES_MAX // JOB_BYTES
    assert most <= looked // 3 + 1
    assert turns >= 100 * 3 // looked
    assert client.outputs() == replies
    assert bench.depth(str(JOBS)) == 3 * LOOKED_AT_ONCE


def test_a_request_begins_in_its_turn(bench: "Bench") -> None:
    clients = [bench.client() for _ in range(3)]
    schedule(clients[0], *["old"] * COUNT)
    bench.tick()
    replies = [ask(client, "BROWSE", "ANSWERS") for client in clients]
    assert bench.depth("ANSWERS") == 0
    turn(bench)
    # As many as a turn has time for, whoever asked.
    assert 0 < bench.depth("ANSWERS") <= TICK_BYTES_MAX // JOB_BYTES
    for client, reply in zip(clients, replies, strict=True):
        turns_until(client, reply)
    assert bench.depth("ANSWERS") == 3 * COUNT


@pytest.mark.parametrize("action", ["BROWSE", "REMOVEALL", "REMOVE"])
def test_a_request_is_answered_where_there_are_no_jobs(bench: "Bench", action: str) -> None:
    client = bench.client()
    schedule(client, "first, so that there is a scheduler")
    bench.tick()
    turns_until(client, ask(client, "REMOVEALL"))
    client.connection.outbox.clear()
    turns_until(client, ask(client, action, scheduledJobId="none"))
    assert bench.depth("ANSWERS") == 0


def test_the_next_job_is_told_first(bench: "Bench") -> None:
    client = bench.client()
    consumer = client.consume("TOLD", prefetch=3 * LOOKED_AT_ONCE)
    delays = [HOUR + 37 * number % 2003 for number in range(LOOKED_AT_ONCE + 500)]
    for delay in delays:
        client.send("Q", f"{delay}", wait=False, properties=scheduled(delay=delay))
    bench.tick()
    client.outputs()
    last = str(bench.now + HOUR + 1000)
    reply = ask(client, "BROWSE", "TOLD", ACTION_START_TIME="1", ACTION_END_TIME=last)
    turns_until(client, reply)
    bench.tick()
    expected = sorted(delay for delay in delays if delay <= HOUR + 1000)
    assert [int(text) for text in client.texts(consumer)] == expected


def test_requests_of_several_connections_have_their_turns(bench: "Bench") -> None:
    client = bench.client()
    schedule(client, *["old"] * COUNT)
    bench.tick()
    others = [bench.client() for _ in range(20)]
    told = [ask(other, "BROWSE", f"TOLD.{number}") for number, other in enumerate(others)]
    # Twenty times as long as this one, were it to wait for them.
    assert turns_until(client, ask(client, "REMOVEALL")) <= COUNT // 10
    assert bench.depth(str(JOBS)) == 0
    for other, reply in zip(others, told, strict=True):
        turns_until(other, reply)


def test_a_connection_is_not_read_from_while_its_requests_last(bench: "Bench") -> None:
    client = bench.client()
    schedule(client, *["old"] * COUNT)
    bench.tick()
    # What came with it is carried out in its order.
    first, second = ask(client, "BROWSE"), ask(client, "REMOVEALL")
    turns_until(client, first)
    assert client.connection.stalled
    turns_until(client, second)
    assert not client.connection.stalled
    assert client.connection.stalled_bytes == 0
    assert (bench.depth("ANSWERS"), bench.depth(str(JOBS))) == (COUNT, 0)


def test_what_a_connection_asks_for_at_once_is_limited(bench: "Bench") -> None:
    client = bench.client()
    schedule(client, *["old"] * COUNT)
    bench.tick()
    ask(client, "BROWSE")
    asked = 1
    with pytest.raises(ResourceAllocationError, match=r"requests .* that are not done"):
        while asked < 10_000:
            ask(client, "BROWSE", note="x" * 60_000)
            asked += 1
    assert asked == 2 + ASKED_BYTES_MAX // 61_500
    # Nobody else is limited by that.
    ask(bench.client(), "BROWSE")


def test_what_a_connection_asked_for_that_is_gone_is_not_told_but_done(bench: "Bench") -> None:
    client, other = bench.client(), bench.client()
    schedule(client, *["old"] * COUNT)
    bench.tick()
    ask(client, "BROWSE")
    ask(client, "REMOVEALL")
    turn(bench)
    told = bench.depth("ANSWERS")
    client.leave()
    schedule(other, "new")
    turn(bench, COUNT)
    assert 0 < bench.depth("ANSWERS") == told < COUNT
    assert bench.depth(str(JOBS)) == 1


def make_small(make_bench: "type[Bench]", **policies: Any) -> "tuple[Bench, Client]":
    """Return a broker whose memory holds a part of the jobs that it has, and their client."""
    usage = SystemUsage(MemoryUsage(ROOM))
    bench = make_bench(settings=replace(SETTINGS, system_usage=usage), **policies)
    client = bench.client()
    schedule(client, *["x" * 10_000] * 30)
    bench.tick()
    client.outputs()
    return bench, client


def test_answers_wait_for_room(make_bench: "type[Bench]") -> None:
    bench, client = make_small(make_bench)
    reply = ask(client, "BROWSE")
    turn(bench, COUNT)
    (blocked,) = bench.broker.flow.blocked()
    assert (str(blocked.destination), blocked.sends) == ("queue://ANSWERS", 1)
    assert bench.broker.memory.used < ROOM + 20_000
    assert client.connection.stalled
    assert bench.broker.next_deadline() != bench.steady
    reader = bench.client()
    consumer = reader.consume("ANSWERS", prefetch=1)
    count = 0
    while reply not in client.connection.outbox:
        for delivery in reader.deliveries(consumer):
            reader.acknowledge(consumer, delivery.message)
            count += 1
        bench.tick()
        assert bench.broker.memory.used < ROOM + 20_000
    assert count + bench.depth("ANSWERS") == 30
    assert client.connection.stalled_bytes == 0


def test_who_waits_for_answers_is_read_for_its_acknowledgements(
    make_bench: "type[Bench]",
) -> None:
    bench, client = make_small(make_bench)
    consumer = client.consume("ANSWERS")
    reply = ask(client, "BROWSE")
    count, is_answered = 0, False
    while not is_answered:
        turn(bench, COUNT)
        assert not client.connection.stalled
        is_answered = reply in client.connection.outbox
        for delivery in client.deliveries(consumer):
            bench.broker.acknowledge(consumer, AckType.STANDARD, delivery.message.sequence, 1, None)
            count += 1
        turn(bench)
    assert count + len(client.deliveries(consumer)) == 30


def test_answers_that_wait_for_room_end_with_their_asker(make_bench: "type[Bench]") -> None:
    bench, client = make_small(make_bench)
    ask(client, "BROWSE")
    turn(bench, COUNT)
    assert len(bench.broker.flow.blocked()) == 1
    client.leave()
    assert bench.broker.flow.blocked() == []


def test_answers_that_are_not_to_wait_for_longer_are_refused(make_bench: "type[Bench]") -> None:
    impatient = FlowPolicy(send_fail_if_no_space_after_timeout=1_000)
    bench, client = make_small(make_bench, ANSWERS=DestinationPolicy(flow=impatient))
    ask(client, "BROWSE")
    turn(bench, COUNT)
    assert client.outputs() == []
    bench.tick(1_000)
    turn(bench, 2)
    (failure,) = client.outputs()
    assert isinstance(failure, Failure)
    assert "no room for queue://ANSWERS" in str(failure.error)
    assert client.connection.stalled_bytes == 0


@pytest.mark.parametrize("is_answered", [True, False])
def test_answers_end_with_the_temporary_queue_that_they_are_for(
    bench: "Bench", is_answered: bool
) -> None:
    client = bench.client()
    schedule(client, *["old"] * COUNT)
    bench.tick()
    answers = parse_destination(f"temp-queue://{client.connection.identifier}:1")
    bench.broker.destinations.create_temporary(client.connection, answers)
    client.outputs()
    reply = ask(client, "BROWSE", str(answers), is_answered=is_answered)
    turn(bench)
    assert bench.depth(str(answers)) > 0
    bench.broker.destinations.remove_temporary(client.connection, answers)
    turn(bench, COUNT)
    assert client.outputs() == ([reply] if is_answered else [])


@pytest.mark.parametrize(
    "reply_to",
    [str(JOBS), f"A,{JOBS}", f"{SEGMENT_PREFIX}S.0", "A.>", "queue://A,B.>", "a?b=1", " a", "a\nb"],
)
def test_jobs_are_not_told_where_nobody_may_send(bench: "Bench", reply_to: str) -> None:
    client = bench.client()
    client.send("Q", "job", properties=scheduled(cron="* * * * *", delay=HOUR))
    with pytest.raises(InvalidDestinationError):
        client.send(reply_to, "sent there")
    before = [region.destination for region in bench.broker.registry]
    with pytest.raises(InvalidDestinationError):
        ask(client, "BROWSE", reply_to)
    turn(bench, 10)
    assert bench.depth(str(JOBS)) == 1
    assert [region.destination for region in bench.broker.registry] == before
    assert client.connection.stalled_bytes == 0
