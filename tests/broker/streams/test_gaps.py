"""Reads where messages are gone: taken at ActiveMQ, or passed by groups."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streams_kit import Bench, DiskBench, taken

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.settings import (
    Retention,
    StreamSettings,
)
from lockkeeper.broker.streams.waiting import Read
from lockkeeper.message.segments import SegmentName
from lockkeeper.store.base import WRITTEN, Reference


def within(seconds: int, action: Callable[[], Any]) -> Any:
    """Return what *action* does, which must not take for ever."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        return action()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def consume(bench: DiskBench, stream: str) -> None:
    """Consume all but the newest segment, as somebody at ActiveMQ does."""
    for segment in bench.broker.streams.get(stream).partition(0).segments[:-1]:
        for entry in segment.entries(segment.base, len(segment)):
            reference = Reference(None, entry.size, entry.location, WRITTEN)
            bench.store.remove(segment.destination, reference)
    bench.settle()


def test_a_read_ends_behind_segments_of_which_removals_are_left(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.broker.streams.declare("orders", StreamSettings(1))
    partition = disk_bench.broker.streams.get("orders").partition(0)
    for size in (100, 200_000, 100_000):
        disk_bench.append(client, "orders", "x" * size)
        partition._is_apart = True
    places = [each.entries(each.base, 1)[0].location >> 32 for each in partition.segments]
    assert places == [1, 1, 2]
    consume(disk_bench, "orders")
    # Nothing is left in it: any clean-up, ActiveMQ's or ours, deletes it.
    (disk_bench.directory / "db-1.log").unlink()
    disk_bench.crash()
    client = disk_bench.connect()
    result = within(3, lambda: disk_bench.read(client, "orders"))
    assert [each.offset for each in result.records] == [2]


def test_retention_ends_a_segment_whose_file_is_gone_already(tmp_path: Path) -> None:
    bench = DiskBench(tmp_path / "kahadb", file_bytes_max=1 << 14, cleanup_interval_ms=1)
    bench.broker.streams.declare("orders", StreamSettings(1, Retention(time=100_000)))
    client = bench.connect()
    for _ in range(4):
        bench.append(client, "orders", "x" * 16_000)
    segment = bench.broker.streams.get("orders").partition(0).segments[0]
    taken_out = segment.entry(1)
    assert taken_out is not None
    gone = Reference(None, taken_out.size, taken_out.location, WRITTEN)
    bench.store.remove(segment.destination, gone)
    bench.settle()
    bench.crash()
    client = bench.connect()
    bench.append(client, "orders", "more")
    for _ in range(8):
        bench.tick(10)
        bench.store.maintain(bench.now)
        bench.settle()
    assert taken_out.location >> 32 not in {file.number for file in bench.store.files()}
    bench.broker.streams.remove("orders")
    bench.settle()
    assert bench.append(client, "orders", "next").offset == 0


def test_a_read_ends_where_groups_have_passed_messages_that_are_gone(
    disk_bench: DiskBench,
) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", *"abcde")
    disk_bench.broker.streams.commit_offset("g", "orders", 0, 5)
    disk_bench.broker.streams.groups.write()
    disk_bench.settle()
    # Somebody has consumed everything at ActiveMQ, which deleted the segment.
    disk_bench.store.remove_destination(SegmentName("orders", 0, 0).destination, None)
    disk_bench.settle()
    disk_bench.crash()
    client = disk_bench.connect()
    partition = disk_bench.broker.streams.get("orders").partition(0)
    assert partition.next == 5
    result = within(3, lambda: disk_bench.read(client, "orders", offset=3))
    assert result.next_offset == 5


def test_a_read_before_a_gap_ends_while_the_next_message_is_written(
    disk_bench: DiskBench,
) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", *"abc")
    partition = disk_bench.broker.streams.get("orders").partition(0)
    # What `recover` does when a group was at 9 and ActiveMQ dropped the newest segment.
    partition.pass_over(9)
    disk_bench.broker.streams.append(client, "later", "orders", 0, [Draft(b"d")])
    result = within(3, lambda: disk_bench.read(client, "orders", offset=3))
    assert result.next_offset == 9


def test_one_reader_that_cannot_be_answered_moves_no_offset(bench: Bench) -> None:
    client, reader = bench.connect(), bench.connect()
    bench.append(client, "orders", "a")

    class Broken:
        def accepts_hash(self, tag_hash: int) -> bool:
            raise ArithmeticError("a condition that fails")

        def accepts_frame(self, frame: bytes) -> bool:
            return True

    wait = Read("orders", 0, 1, wait_ms=60_000, wanted=Broken())
    bench.broker.streams.read(reader, "w", wait)
    bench.broker.streams.append(client, "b", "orders", 0, [Draft(b"b")])
    bench.settle()
    bench.tick(1)
    bench.broker.disconnect(reader)
    bench.broker.streams.append(client, "c", "orders", 0, [Draft(b"c")])
    bench.settle()
    taken(client)
    assert offsets_and_bodies(bench, client) == [(0, b"a"), (1, b"b"), (2, b"c")]


def offsets_and_bodies(bench: Bench, client: Connection) -> list[tuple[int, bytes]]:
    """Return what a reader sees."""
    records = bench.read(client, "orders").records
    return [(each.offset, each.draft.body) for each in records]


def test_the_newest_messages_of_several_segments(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.broker.streams.declare("orders", StreamSettings(1))
    partition = disk_bench.broker.streams.get("orders").partition(0)
    assert partition.newest(9, 1 << 20) == []
    for body in ("a", "b" * 50_000, "c", "d" * 50_000, "e"):
        disk_bench.append(client, "orders", body)
        partition._is_apart = body in ("a", "c")
    assert [each.base for each in partition.segments] == [0, 1, 3]

    def newest(count: int, size: int = 1 << 20) -> list[int]:
        return [record.offset for record in partition.newest(count, size)]

    assert [newest(count) for count in (1, 2, 3, 9)] == [[4], [3, 4], [2, 3, 4], [0, 1, 2, 3, 4]]
    assert [newest(9, size) for size in (0, 60_000, 120_000)] == [[4], [2, 3, 4], [0, 1, 2, 3, 4]]
    partition.segments[-1].take_out(4)
    assert [newest(9, size) for size in (0, 60_000)] == [[3], [2, 3]]
