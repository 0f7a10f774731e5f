"""Why a message is not in its queue yet: it comes later, again, or when there is room."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.connections import STALLED_BYTES_MAX
from lockkeeper.broker.context import MESSAGE_BYTES
from lockkeeper.broker.diagnostics.elsewhere import why_elsewhere
from lockkeeper.broker.diagnostics.producers import why_producers
from lockkeeper.broker.diagnostics.queues import why_message, why_queue
from lockkeeper.broker.diagnostics.reason import Reason
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.scheduling.job import JOBS, Job
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.broker.settings import BrokerSettings, LimitSettings, SchedulerSettings
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value
from lockkeeper.server.why import UnknownSubjectError, queue_answer
from lockkeeper.store.base import Reference
from lockkeeper.store.kahadb import KahaDBStore

if TYPE_CHECKING:
    from conftest import Bench

SECOND, MINUTE = 1_000, 60_000
SCHEDULER = SchedulerSettings(enabled=True)
LATER: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": MINUTE}
ONE_MESSAGE = DestinationPolicy(memory_limit=MESSAGE_BYTES)


@pytest.fixture
def bench(make_bench: "type[Bench]") -> "Bench":
    """Return a broker that heeds schedules, where Q and R have room for one message."""
    return make_bench(settings=BrokerSettings(scheduler=SCHEDULER), Q=ONE_MESSAGE, R=ONE_MESSAGE)


def about(bench: "Bench", message: Message, name: str = "Q") -> list[Reason]:
    """Return why a message of a queue is where it is."""
    message_id = message.identifier.decode()
    return why_message(bench.broker, bench.queue(name), message_id)


def codes(reasons: list[Reason]) -> list[str]:
    """Return the codes of reasons."""
    return [reason.code for reason in reasons]


def test_a_scheduled_message_comes_when_the_queue_of_jobs_says(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    sent = client.send("Q", "x", properties=LATER)
    waits, scheduled = about(bench, sent)
    assert (waits.code, waits.facts) == ("comes-later", {"destination": "queue://Q"})
    assert scheduled.facts == {"due": bench.now + MINUTE}
    assert [scheduled] == about(bench, sent, str(JOBS))
    bench.tick(MINUTE)
    assert codes(about(bench, sent)) == ["held"]


def test_a_scheduled_message_may_be_for_a_queue_that_is_not_there_yet(bench: "Bench") -> None:
    sent = bench.client().send("NEW", "x", properties=LATER)
    message_id = sent.identifier.decode()
    answer = queue_answer(bench.broker, "NEW", message_id)
    reasons = why_elsewhere(bench.broker, parse_destination("NEW"), message_id)
    assert codes(reasons) == ["comes-later", "scheduled"]
    assert answer == {
        "queue": "queue://NEW",
        "depth": 0,
        "inFlight": 0,
        "reasons": [reason.view() for reason in reasons],
    }
    for unknown in ("ID:nobody:1", ""):
        with pytest.raises(UnknownSubjectError, match="there is no queue NEW"):
            queue_answer(bench.broker, "NEW", unknown)


def test_a_part_of_several_queues_is_known_by_the_id_of_all(bench: "Bench") -> None:
    client = bench.client()
    client.consume("R")
    sent = client.send("Q,R", "x", properties=LATER)
    assert [each.facts["destination"] for each in about(bench, sent, "R")[:1]] == ["queue://Q,R"]


def test_what_was_scheduled_in_a_transaction_waits_for_its_outcome(bench: "Bench") -> None:
    client = bench.client()
    client.consume("Q")
    sent = client.send("Q", "x", properties=LATER, transaction_id=client.begin())
    assert codes(about(bench, sent)) == ["sent-in-transaction"]


def test_what_is_redelivered_comes_again_to_each_queue_at_its_time(
    make_bench: "type[Bench]",
) -> None:
    delays = {"Q": MINUTE, "R": 2 * MINUTE}
    soon, late = (
        DestinationPolicy(redelivery=RedeliveryPolicy(initial_redelivery_delay=delay))
        for delay in delays.values()
    )
    bench = make_bench(Q=soon, R=late)
    client = bench.client()
    consumers = [client.consume(name) for name in delays]
    sent = client.send("Q,R", "x")
    for consumer in consumers:
        (dispatched,) = consumer.dispatched.values()
        bench.broker.poison(consumer, dispatched.loaded.sequence, 1, "broken", None)
    bench.tick()
    for name, delay in delays.items():
        waits, scheduled = about(bench, sent, name)
        assert (waits.code, waits.facts) == ("comes-later", {"destination": f"queue://{name}"})
        assert (scheduled.code, scheduled.facts) == ("scheduled", {"due": bench.now + delay})


def test_what_keeps_a_scheduled_message_whose_time_has_come_is_told(
    make_bench: "type[Bench]",
) -> None:
    limits = LimitSettings(destinations=1)
    bench = make_bench(settings=BrokerSettings(scheduler=SCHEDULER, limits=limits))
    sent = bench.client().send("NEW", "x", properties=LATER)
    bench.tick(MINUTE)
    reasons = why_elsewhere(bench.broker, parse_destination("NEW"), sent.identifier.decode())
    assert codes(reasons) == ["comes-later", "scheduled-without-room"]
    assert "(limits.destinations)" in reasons[1].text


def test_what_waits_for_room_says_what_for(bench: "Bench") -> None:
    client = bench.client("greedy")
    for _ in range(3):
        last = client.send("Q", "x", persistent=False)
    began = bench.now
    bench.tick(SECOND)
    waits, no_room = about(bench, last)
    assert [no_room] == why_producers(bench.broker)
    assert no_room.facts["limit"] == "memoryLimit"
    assert (waits.code, waits.facts) == (
        "not-taken",
        {
            "destination": "queue://Q",
            "ahead": 1,
            "since": began,
            "connection": client.connection.identifier,
            "clientId": "greedy",
            "address": client.connection.address,
        },
    )


class CountingStore(KahaDBStore):
    """A journal that counts the bodies that are read from it, and from its temporary files."""

    reads = 0

    def load(self, references: Sequence[Reference], next_sequence: int) -> None:
        """Read, and count."""
        self.reads += len(references)
        super().load(references, next_sequence)


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    """Return a journal that counts what is read."""
    return CountingStore(tmp_path)


@pytest.fixture
def narrow_bench(make_bench: "type[Bench]", store: CountingStore) -> "Iterator[Bench]":
    """Return a broker whose Q takes one message; what waits for it may be in a file."""
    policy = DestinationPolicy(memory_limit=1, flow=FlowPolicy(spool_non_persistent=False))
    bench = make_bench(store, Q=policy)
    yield bench
    bench.store.close()


def send_many(bench: "Bench", count: int, size: int) -> list[Message]:
    """Send messages that are not persistent to Q, of which all but the first wait."""
    client = bench.client()
    # It has to be read, for what it acknowledges.
    client.consume("OTHER")
    return [client.send("Q", "x" * size, persistent=False) for _ in range(count)]


@pytest.mark.replaces
def test_what_waits_for_room_in_a_file_is_known_too(narrow_bench: "Bench") -> None:
    bench = narrow_bench
    *_, last = send_many(bench, 3, STALLED_BYTES_MAX)
    waiting = [*bench.broker.flow.lines[(last.destination, False)]]
    assert waiting[-1].reference.message is None
    assert codes(about(bench, last)) == ["not-taken", "no-room"]
    assert waiting[-1].reference.message is None


@pytest.mark.replaces
def test_all_that_waits_for_room_in_files_is_known(narrow_bench: "Bench") -> None:
    bench = narrow_bench
    sent = send_many(bench, 300, STALLED_BYTES_MAX // 50)
    line = bench.broker.flow.lines[(sent[0].destination, False)]
    in_files = sum(each.reference.message is None for each in line)
    assert in_files == 250
    found = [about(bench, each) for each in sent[1:]]
    assert [codes(each) for each in found] == [["not-taken", "no-room"]] * 299
    assert [each[0].facts["ahead"] for each in found] == [*range(299)]


@pytest.mark.replaces
def test_to_know_what_waits_in_files_none_is_read(
    narrow_bench: "Bench", store: CountingStore
) -> None:
    bench = narrow_bench
    *_, last = send_many(bench, 4, STALLED_BYTES_MAX)
    assert codes(about(bench, last)) == ["not-taken", "no-room"]
    assert codes(why_message(bench.broker, bench.queue("Q"), "ID:nobody:1")) == ["not-there"]
    assert store.reads == 0


@pytest.mark.replaces
def test_of_large_bodies_few_are_read_for_one_answer(
    make_bench: "type[Bench]", store: CountingStore
) -> None:
    bench = make_bench(store, memory_limit=1 << 20)
    sent = [bench.client().send("Q", "x" * (1 << 20)) for _ in range(40)]
    assert codes(about(bench, sent[15])) == ["waiting", "no-consumer"]
    store.reads = 0
    (reason,) = why_message(bench.broker, bench.queue("Q"), "ID:nobody:1")
    assert (reason.code, store.reads) == ("not-in-memory", 16)
    bench.store.close()


def test_what_fails_is_told_as_a_defect(bench: "Bench") -> None:
    sent = bench.client().send("NEW", "x", properties=LATER)
    jobs = bench.queue(str(JOBS))
    assert isinstance(jobs, JobQueue)
    fire = jobs._fire

    def fail(_: Job, __: Reference) -> str | None:
        raise KeyError("lost")

    jobs._fire = fail
    due = bench.now + MINUTE
    bench.tick(MINUTE)
    (reason,) = why_queue(jobs)
    assert (reason.code, reason.facts) == (
        "scheduled-set-aside",
        {"due": due, "error": "KeyError: 'lost'"},
    )
    assert [reason] == about(bench, sent, str(JOBS))
    assert "room" not in reason.way_out
    jobs._fire = fire
    bench.tick(SECOND)
    assert bench.depth("NEW") == 1
