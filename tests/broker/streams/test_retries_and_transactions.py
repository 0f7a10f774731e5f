"""Messages that come later, come again, or come when their transaction is committed."""

from dataclasses import replace
from typing import Any

import pytest
from streams_kit import START, Bench, DiskBench, only, taken

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.errors import (
    IllegalMessageError,
    NoSuchRecordError,
    NoSuchTransactionError,
)
from lockkeeper.broker.streams.outputs import Appended, CheckTransaction, Done, HalfStored
from lockkeeper.broker.streams.settings import StreamLimits, StreamsSettings
from lockkeeper.broker.streams.transactions import Outcome
from lockkeeper.store.memory import MemoryStore

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
GROUP, PRODUCERS = "billing", "shop"


def later(bench: Bench, client: Connection, stream: str = "orders") -> list[str]:
    """Return what is in a stream by now."""
    bench.tick()
    bench.tick()
    if bench.broker.streams.find(stream) is None:
        return []
    return bench.bodies(client, stream, count=1000)


def test_a_delayed_message_comes_after_its_level(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", "3", delay_level=3)
    any_bench.append(client, "orders", "1", delay_level=1)
    assert later(any_bench, client) == []
    any_bench.tick(999)
    assert later(any_bench, client) == []
    any_bench.tick(1)
    assert later(any_bench, client) == ["1"]
    any_bench.tick(8_999)
    assert later(any_bench, client) == ["1"]
    any_bench.tick(1)
    assert later(any_bench, client) == ["1", "3"]


def test_a_delayed_message_is_what_it_was(bench: Bench) -> None:
    client = bench.connect()
    draft = Draft(b"x", {"TAGS": "t", "KEYS": "k"}, born_at=START, flag=3)
    bench.append(client, "orders", draft, partition=1, delay_level=1)
    bench.tick(SECOND)
    bench.tick()
    (record,) = bench.read(client, "orders", partition=1).records
    assert record.draft == draft


def test_delayed_messages_outlive_the_broker_and_come_once(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    for number in range(30):
        disk_bench.append(client, "orders", f"{number}", delay_level=2)
        disk_bench.tick(20)
    disk_bench.tick(4_000)
    for _ in range(4):
        disk_bench.crash()
        disk_bench.tick(450)
    client = disk_bench.connect()
    assert later(disk_bench, client) == [f"{number}" for number in range(30)]


def test_a_message_for_a_time_of_its_own_is_never_early_and_hardly_late(bench: Bench) -> None:
    client = bench.connect()
    due = START + 17 * MINUTE + 3 * SECOND + 400
    bench.append(client, "orders", "x", deliver_at=due)
    seen = 0
    while not seen:
        bench.tick(SECOND)
        if later(bench, client):
            seen = bench.now
    assert due <= seen <= due + 2 * SECOND


def test_delayed_messages_are_kept_for_as_long_as_nobody_runs(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "x", delay_level=18)
    disk_bench.now += 400 * 24 * HOUR
    disk_bench.crash()
    client = disk_bench.connect()
    assert later(disk_bench, client) == ["x"]


def test_what_a_client_calls_its_properties_delays_nothing(bench: Bench) -> None:
    client = bench.connect()
    odd = Draft(b"x", {"lockkeeperDue": "never", "REAL_TOPIC": "a/b", "REAL_QID": "-"})
    bench.append(client, "orders", odd, delay_level=1)
    bench.append(client, "orders", "y", delay_level=1)
    with pytest.raises(InvalidDestinationError, match="the broker's own"):
        bench.append(client, "SCHEDULE_TOPIC_XXXX", odd)
    bench.tick(SECOND)
    assert later(bench, client) == ["x", "y"]
    assert not any(bench.broker.containment.counts.values())


def test_levels_may_become_more_and_fewer(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    for levels in ((SECOND,), (SECOND, 2 * SECOND, 3 * SECOND), (5 * SECOND,)):
        disk_bench.settings = replace(disk_bench.settings, delay_levels=levels)
        disk_bench.restart()
        client = disk_bench.connect()
        disk_bench.append(client, "orders", f"{len(levels)}", delay_level=3)
    disk_bench.tick(4 * SECOND)
    assert later(disk_bench, client) == []
    disk_bench.tick(SECOND)
    assert sorted(later(disk_bench, client)) == ["1", "1", "3"]


def test_a_time_that_has_passed_is_no_delay(bench: Bench) -> None:
    client = bench.connect()
    assert bench.append(client, "orders", "x", deliver_at=START - 1).stream == "orders"


def test_delayed_messages_come_one_by_one(bench: Bench) -> None:
    client = bench.connect()
    with pytest.raises(IllegalMessageError, match="one by one"):
        bench.append(client, "orders", "a", "b", delay_level=1)


def test_levels_are_those_of_the_broker() -> None:
    bench = Bench(MemoryStore(), StreamsSettings(delay_levels=(250, MINUTE)))
    client = bench.connect()
    bench.append(client, "orders", "long", delay_level=18)
    bench.append(client, "orders", "short", delay_level=1)
    bench.tick(250)
    assert later(bench, client) == ["short"]
    bench.tick(MINUTE)
    assert later(bench, client) == ["short", "long"]


def send_back(bench: Bench, client: Connection, stream: str, **options: Any) -> None:
    """Give the first message of a stream back."""
    bench.broker.streams.send_back(client, "b", GROUP, stream, 0, 0, **options)
    bench.settle()
    assert only(client, Done).tag == "b"


def test_a_message_that_is_given_back_comes_again_later_and_later(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", Draft(b"x", {"TAGS": "t"}))
    send_back(any_bench, client, "orders")
    any_bench.tick(9_999)
    assert later(any_bench, client, "%RETRY%billing") == []
    any_bench.tick(1)
    assert later(any_bench, client, "%RETRY%billing") == ["x"]
    (record,) = any_bench.read(client, "%RETRY%billing").records
    assert record.draft.reconsumed == 1
    assert record.draft.properties == {"TAGS": "t", "RETRY_TOPIC": "orders"}
    send_back(any_bench, client, "%RETRY%billing")
    any_bench.tick(29_999)
    assert later(any_bench, client, "%RETRY%billing") == ["x"]
    any_bench.tick(1)
    assert later(any_bench, client, "%RETRY%billing") == ["x", "x"]
    record = any_bench.read(client, "%RETRY%billing", offset=1).records[0]
    assert record.draft.reconsumed == 2
    assert record.draft.properties["RETRY_TOPIC"] == "orders"


def test_a_message_that_was_given_back_too_often_is_a_dead_letter(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", Draft(b"x", reconsumed=2))
    send_back(bench, client, "orders", reconsume_max=2)
    assert bench.bodies(client, "%DLQ%billing") == ["x"]
    send_back(bench, client, "orders", delay_level=-1)
    assert bench.bodies(client, "%DLQ%billing") == ["x", "x"]
    with pytest.raises(NoSuchRecordError):
        bench.broker.streams.send_back(client, "b", GROUP, "orders", 0, 7)


def begin(bench: Bench, client: Connection, body: str = "x", **options: int) -> int:
    """Send a half message; returns its number."""
    draft = Draft(body.encode(), {"TAGS": "t"})
    bench.broker.streams.begin_transaction(client, "t", PRODUCERS, "orders", 0, draft, **options)
    bench.settle()
    return only(client, HalfStored).number


def end(bench: Bench, client: Connection, number: int, outcome: Outcome) -> object:
    """Decide about a half message; returns the answer."""
    bench.broker.streams.end_transaction(client, "e", number, outcome)
    bench.settle()
    (answer,) = taken(client)
    return answer


@pytest.mark.parametrize("restarts", [False, True])
def test_a_half_message_is_seen_once_it_is_committed(any_bench: Bench, restarts: bool) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", "before")
    first, second = begin(any_bench, client, "a"), begin(any_bench, client, "b")
    assert any_bench.bodies(client, "orders") == ["before"]
    if restarts:
        any_bench.restart()
        client = any_bench.connect()
    assert any_bench.broker.streams.pending_transactions == 2
    answer = end(any_bench, client, second, Outcome.COMMIT)
    assert isinstance(answer, Appended)
    assert (answer.stream, answer.partition, answer.offset) == ("orders", 0, 1)
    assert isinstance(end(any_bench, client, first, Outcome.ROLLBACK), Done)
    any_bench.restart()
    client = any_bench.connect()
    assert any_bench.bodies(client, "orders") == ["before", "b"]
    assert any_bench.read(client, "orders", offset=1).records[0].draft.properties == {"TAGS": "t"}
    assert any_bench.broker.streams.pending_transactions == 0
    for number in (first, second):
        with pytest.raises(NoSuchTransactionError):
            any_bench.broker.streams.end_transaction(client, "e", number, Outcome.COMMIT)


def test_a_commit_is_seen_once_or_not_at_all_after_a_crash(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "before")
    number = begin(disk_bench, client)
    disk_bench.broker.streams.end_transaction(client, "e", number, Outcome.COMMIT)
    disk_bench.crash()
    client = disk_bench.connect()
    assert disk_bench.bodies(client, "orders") == ["before"]
    disk_bench.broker.streams.end_transaction(client, "e", number, Outcome.COMMIT)
    disk_bench.settle()
    disk_bench.crash()
    client = disk_bench.connect()
    assert disk_bench.bodies(client, "orders") == ["before", "x"]
    assert disk_bench.broker.streams.pending_transactions == 0


def test_a_producer_that_says_nothing_is_asked(any_bench: Bench) -> None:
    client, other = any_bench.connect(), any_bench.connect()
    number = begin(any_bench, client)
    for producer, name in ((client, "one"), (other, "two")):
        any_bench.broker.streams.producer_heartbeat(producer, PRODUCERS, name)
    any_bench.tick(5_999)
    assert taken(client) == taken(other) == []
    any_bench.tick(1)
    question = only(client, CheckTransaction)
    assert (question.group, question.number, question.checks) == (PRODUCERS, number, 1)
    assert question.draft == Draft(b"x", {"TAGS": "t"})
    assert isinstance(end(any_bench, client, number, Outcome.UNKNOWN), Done)
    any_bench.tick(30_000)
    assert only(other, CheckTransaction).checks == 2
    any_bench.broker.disconnect(other)
    any_bench.tick(30_000)
    assert only(client, CheckTransaction).checks == 3
    end(any_bench, client, number, Outcome.COMMIT)
    any_bench.tick(60_000)
    assert taken(client) == []
    assert any_bench.bodies(client, "orders") == ["x"]


def test_a_half_message_may_ask_for_more_time(bench: Bench) -> None:
    client = bench.connect()
    begin(bench, client, immunity_ms=60_000)
    bench.broker.streams.producer_heartbeat(client, PRODUCERS, "one")
    bench.tick(59_999)
    assert taken(client) == []
    bench.tick(1)
    assert only(client, CheckTransaction).checks == 1


def test_what_nobody_decides_about_is_set_aside() -> None:
    bench = Bench(MemoryStore(), StreamsSettings(checks_max=2))
    client = bench.connect()
    bench.broker.streams.producer_heartbeat(client, PRODUCERS, "one")
    begin(bench, client)
    for _ in range(3):
        bench.tick(30_000)
        bench.tick()
    assert [each.checks for each in taken(client)] == [1, 2]
    assert bench.bodies(client, "TRANS_CHECK_MAX_TIME_TOPIC") == ["x"]
    assert bench.bodies(client, "orders") == []


def test_the_number_of_open_transactions_is_limited() -> None:
    limits = StreamLimits(pending_transactions=1)
    bench = Bench(MemoryStore(), StreamsSettings(limits=limits))
    client = bench.connect()
    begin(bench, client)
    with pytest.raises(ResourceAllocationError, match=r"limits\.pendingTransactions"):
        begin(bench, client)
