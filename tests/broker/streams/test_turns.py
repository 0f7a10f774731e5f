"""Work that is much goes on in the next turn: others do not wait for all of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streams_kit import START, Bench, DiskBench, taken

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.filters import sql_filter
from lockkeeper.broker.streams.outputs import CheckTransaction, ReadResult, ReadStatus, Refused
from lockkeeper.broker.streams.settings import Retention, StreamSettings
from lockkeeper.broker.streams.transactions import Outcome
from lockkeeper.broker.streams.waiting import Read
from lockkeeper.broker.timers import NEVER

SECOND = 1_000
PER_TURN = 600


def turns(bench: Bench, count: Callable[[], int]) -> list[int]:
    """Let turns pass until nothing is left to do now; returns by how much each raised *count*."""
    found: list[int] = []
    before = count()
    while bench.broker.context.timers.earliest <= bench.now or not found:
        bench.broker.tick(bench.now)
        found.append(count() - before)
        before = count()
    return found


def test_retention_ends_some_segments_a_turn(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    streams.declare("orders", StreamSettings(1, Retention(time=0)))
    place = streams.get("orders").partition(0)
    for _ in range(1_000):
        bench.append(client, "orders", "a")
        place._is_apart = True
    streams.declare("orders", StreamSettings(1, Retention(time=0, bytes=1)))
    bench.now += 11 * SECOND
    work = turns(bench, lambda: -len(place.segments))
    assert sum(work) == 999
    assert max(work) <= 33
    assert place.bytes == sum(segment.bytes for segment in place.segments)


def test_offsets_are_written_some_a_turn_and_all_in_time(disk_bench: DiskBench) -> None:
    client, streams = disk_bench.connect(), disk_bench.broker.streams
    disk_bench.append(client, "orders", "a")
    for number in range(1_000):
        streams.commit_offset(f"g{number}", "orders", 0, 1)
    disk_bench.now += 4 * SECOND
    work = turns(disk_bench, disk_bench.store.waiting)
    assert max(work) <= 2 * 128
    disk_bench.settle()
    disk_bench.crash()
    offsets = [group.offsets for group in disk_bench.broker.streams.groups]
    assert offsets == [{("orders", 0): 1}] * 1_000


def test_offsets_that_change_all_the_time_are_written_once_an_interval(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", *"abc")
    written: list[str] = []
    put = streams._book.put

    def count(name: str, *rest: Any) -> None:
        written.append(name)
        put(name, *rest)

    monkeypatch.setattr(streams._book, "put", count)
    for step in range(300):
        for number in range(500):
            streams.commit_offset(f"g{number}", "orders", 0, step % 3)
        bench.tick(40)
    assert 2 <= len(written) / 500 <= 3


class Counting:
    """A filter that accepts nothing, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def accepts_hash(self, tag_hash: int) -> bool:
        self.asked += 1
        return tag_hash != 0

    def accepts_frame(self, frame: bytes) -> bool:
        return True


def wait(bench: Bench, client: Connection, count: int, wanted: Counting) -> None:
    for number in range(count):
        read = Read("orders", 0, 1, wait_ms=60_000, wanted=wanted)
        bench.broker.streams.read(client, number, read)


def test_many_who_wait_are_looked_at_some_a_turn(bench: Bench) -> None:
    client, reader, wanted = bench.connect(), bench.connect(), Counting()
    bench.append(client, "orders", "a")
    wait(bench, reader, 3_000, wanted)
    bench.broker.streams.append(client, "b", "orders", 0, [Draft(b"b")])
    bench.broker.settle(bench.store.flush())
    assert wanted.asked <= PER_TURN
    assert max(turns(bench, lambda: wanted.asked)) <= PER_TURN
    assert wanted.asked == 3_000
    assert taken(reader) == []
    # More comes while not all have looked: everybody sees what is wanted.
    for body in "cd":
        draft = Draft(body.encode(), {"TAGS": "t"} if body == "d" else {})
        bench.broker.streams.append(client, body, "orders", 0, [draft])
        bench.broker.settle(bench.store.flush())
    assert len(taken(reader)) + sum(turns(bench, lambda: len(reader.outbox))) <= 3_000
    assert bench.broker.streams.waiting_reads == 0


def test_large_answers_are_given_some_a_turn(bench: Bench) -> None:
    client, reader = bench.connect(), bench.connect()
    bench.append(client, "orders", "a")
    for number in range(100):
        bench.broker.streams.read(reader, number, Read("orders", 0, 1, wait_ms=60_000))
    bench.broker.streams.append(client, "b", "orders", 0, [Draft(bytes(1 << 20))])
    bench.broker.settle(bench.store.flush())
    found = [len(reader.outbox), *turns(bench, lambda: len(reader.outbox))]
    assert sum(found) == 100
    assert max(found) <= 5


def test_a_read_that_fails_is_refused_and_harms_no_other(bench: Bench) -> None:
    client, reader = bench.connect(), bench.connect()
    bench.append(client, "orders", "a")

    class Broken(Counting):
        def accepts_frame(self, frame: bytes) -> bool:
            raise ArithmeticError("a condition that fails")

        def accepts_hash(self, tag_hash: int) -> bool:
            return True

    wait(bench, reader, 1, Broken())
    bench.broker.streams.read(reader, "good", Read("orders", 0, 1, wait_ms=60_000))
    bench.append(client, "orders", "b")
    refused, result = taken(reader)
    assert isinstance(refused, Refused)
    assert isinstance(result, ReadResult)
    assert result.status is ReadStatus.FOUND
    assert bench.broker.streams.waiting_reads == 0


def test_a_condition_that_nothing_fulfils_ends_a_read_soon(tmp_path: Path) -> None:
    bench = DiskBench(tmp_path, file_bytes_max=32 << 20)
    client = bench.connect()
    for _ in range(4):
        drafts = [Draft(b"", {"price": "1"}) for _ in range(1_000)]
        bench.broker.streams.append(client, "t", "orders", 0, drafts)
        bench.settle()
    taken(client)
    wanted = sql_filter("price > 3")
    result = bench.read(client, "orders", bytes_max=4 << 20, wanted=wanted)
    assert result.status is ReadStatus.NO_MATCH
    assert 1_000 <= result.next_offset <= 2_560
    bench.append(client, "orders", Draft(b"", {"price": "4"}))
    offset = 0
    while not result.records:
        result = bench.read(client, "orders", offset=offset, bytes_max=4 << 20, wanted=wanted)
        offset = result.next_offset
    assert result.records[0].offset == 4_000


# Questions about transactions


def begin(bench: Bench, client: Connection, count: int, size: int = 0) -> None:
    """Begin transactions that are late then."""
    for number in range(count):
        body = bytes(size)
        bench.broker.streams.begin_transaction(client, number, "p", "orders", 0, Draft(body))
        bench.settle()
    taken(client)
    bench.broker.streams.producer_heartbeat(client, "p", "producer")


def questions(client: Connection) -> list[CheckTransaction]:
    return [each for each in taken(client) if isinstance(each, CheckTransaction)]


def test_questions_come_some_at_a_time_each_once(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a")
    begin(bench, client, 500)
    bench.now += 6 * SECOND
    asked: list[int] = []
    for _ in range(300):
        bench.broker.tick(bench.now)
        found = questions(client)
        assert len(found) <= 64
        asked += [each.number for each in found]
        bench.now += 10
    assert len(asked) == len(set(asked)) == 500


def test_questions_do_not_fill_the_memory(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a")
    begin(bench, client, 30, 1 << 20)
    for _ in range(200):
        bench.now += 100
        bench.broker.tick(bench.now)
    unread = questions(client)
    assert sum(len(each.draft.body) for each in unread) <= 2 << 20
    # It reads again: everything is asked, nothing was counted in vain.
    asked = {each.number for each in unread}
    for _ in range(60):
        bench.now += 100
        bench.broker.tick(bench.now)
        for each in questions(client):
            assert each.checks == 1
            asked.add(each.number)
    assert len(asked) == 30


def test_a_congested_producer_is_asked_later(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a")
    begin(bench, client, 1)
    client.congested = True
    bench.tick(20 * SECOND)
    assert questions(client) == []
    client.congested = False
    bench.tick(1 * SECOND)
    assert [each.checks for each in questions(client)] == [1]


def test_transactions_that_ended_leave_nothing_behind(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a")
    halves = bench.broker.streams.halves
    begin(bench, client, 1)
    for _ in range(3_000):
        bench.broker.streams.begin_transaction(client, 1, "p", "orders", 0, Draft(b""))
        number = max(halves._halves)
        bench.broker.streams.end_transaction(client, 2, number, Outcome.ROLLBACK)
    assert len(halves._late) < 1_100
    bench.broker.disconnect(client)
    assert (halves._producers, halves._groups) == ({}, {})
    assert bench.broker.context.timers.earliest < NEVER
    assert bench.now == START
