"""Delayed messages where some are gone: taken at ActiveMQ, or lost with a data file."""

from collections.abc import Sequence

import pytest
from streams_kit import Bench, DiskBench

from lockkeeper.broker.streams.delays import DELAY_STREAM
from lockkeeper.broker.streams.drafts import StreamRecord
from lockkeeper.broker.streams.partition import Partition
from lockkeeper.message.segments import SegmentName
from lockkeeper.store.base import WRITTEN, Reference
from lockkeeper.store.segment import Entry

SECOND, MINUTE = 1_000, 60_000
LEVEL_OF_A_MINUTE, LEVEL_OF_A_SECOND = 5, 1


def waiting(bench: Bench, level: int = LEVEL_OF_A_MINUTE) -> Partition:
    """Return the partition in which the messages of a level wait."""
    return bench.broker.streams.get(DELAY_STREAM).partition(level - 1)


def take(bench: DiskBench, *offsets: int) -> None:
    """Consume messages of the level of a minute, as somebody at ActiveMQ does."""
    (segment,) = waiting(bench).segments
    for offset in offsets:
        entry = segment.entry(offset)
        assert entry is not None
        reference = Reference(None, entry.size, entry.location, WRITTEN)
        bench.store.remove(segment.destination, reference)
    bench.settle()


def turns_until(bench: Bench, due: int) -> list[int]:
    """Return when the broker has something to do, in ms from now, until a time."""
    begun, woken = bench.now, []
    while (deadline := bench.broker.next_deadline()) is not None and deadline < due:
        bench.now = max(bench.now, deadline)
        woken.append(bench.now - begun)
        assert len(woken) < 50
        bench.tick()
    return woken


@pytest.mark.parametrize("gone", [[0], [0, 1], [1], [0, 2], [1, 2]])
def test_a_level_rests_until_what_is_behind_a_gap_is_due(
    disk_bench: DiskBench, gone: list[int]
) -> None:
    client = disk_bench.connect()
    begun = disk_bench.now
    for body in "abcd":
        disk_bench.append(client, "orders", body, delay_level=LEVEL_OF_A_MINUTE)
        disk_bench.tick(10 * SECOND)
    take(disk_bench, *gone)
    disk_bench.crash()
    client = disk_bench.connect()
    assert disk_bench.now == begun + 40 * SECOND
    kept = [offset for offset in range(4) if offset not in gone]
    turns_until(disk_bench, disk_bench.now + SECOND)
    for offset in kept:
        due = begun + MINUTE + offset * 10 * SECOND
        # A look at each gap on the way, and one to find out what is next.
        assert len(turns_until(disk_bench, due)) <= 4
        disk_bench.tick(due - disk_bench.now)
        turns_until(disk_bench, due + 1)
        expected = ["abcd"[each] for each in kept if each <= offset]
        assert disk_bench.bodies(client, "orders") == expected


def test_a_level_rests_before_a_message_whose_record_is_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bench.connect()
    bench.append(client, "orders", "gone", delay_level=LEVEL_OF_A_MINUTE)
    bench.tick(30 * SECOND)
    bench.append(client, "orders", "kept", delay_level=LEVEL_OF_A_MINUTE)
    place, read_records = waiting(bench), Partition.records

    def records(partition: Partition, entries: Sequence[Entry]) -> list[StreamRecord]:
        found = read_records(partition, entries)
        return [each for each in found if partition is not place or each.offset != 0]

    monkeypatch.setattr(Partition, "records", records)
    bench.tick(30 * SECOND)
    assert len(turns_until(bench, bench.now + 30 * SECOND)) <= 4
    bench.tick(30 * SECOND)
    bench.tick()
    assert bench.bodies(client, "orders") == ["kept"]


def test_what_is_delayed_after_a_loss_comes(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    for body in "abc":
        disk_bench.append(client, "orders", body, delay_level=LEVEL_OF_A_SECOND)
    disk_bench.tick(SECOND)
    disk_bench.tick()
    assert disk_bench.bodies(client, "orders") == [*"abc"]
    # Somebody has deleted the queue of the segment at ActiveMQ: nothing tells its offsets.
    segment = SegmentName(DELAY_STREAM, 0, 0).destination
    disk_bench.store.remove_destination(segment, None)
    disk_bench.settle()
    disk_bench.crash()
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "d", delay_level=LEVEL_OF_A_SECOND)
    disk_bench.tick(SECOND)
    disk_bench.tick()
    assert disk_bench.bodies(client, "orders") == [*"abcd"]
    disk_bench.crash()
    disk_bench.tick(SECOND)
    disk_bench.tick()
    assert disk_bench.bodies(disk_bench.connect(), "orders") == [*"abcd"]
