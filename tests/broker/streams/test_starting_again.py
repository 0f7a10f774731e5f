"""Starts of a broker with streams: what it finds again, and what that takes."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from streams_kit import START, Bench, DiskBench

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.errors import NoSuchRecordError
from lockkeeper.broker.streams.settings import (
    Retention,
    StreamSettings,
)
from lockkeeper.store.kahadb import segment_files
from lockkeeper.store.kahadb.segment_replay import ReplayedKeys

SECOND = 1_000


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("what", ["message", "start"])
def test_a_disk_without_room_for_the_index_ends_no_broker(
    disk_bench: DiskBench, monkeypatch: pytest.MonkeyPatch, what: str, code: int
) -> None:
    """The journal's files are as long as they will be; those of the index grow."""
    client = disk_bench.connect()
    monkeypatch.setattr(segment_files, "BUFFER_BYTES", 1)
    disk_bench.append(client, "orders", "a")

    def full(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        only_here = SimpleNamespace(**{**vars(os), "pwrite": full})
        patched.setattr(segment_files, "os", only_here)
        if what == "start":
            disk_bench.crash()
        else:
            with suppress(BrokerError):
                disk_bench.append(client, "orders", "b")
    assert offsets_and_bodies(disk_bench, disk_bench.connect())[0] == (0, b"a")


def offsets_and_bodies(bench: Bench, client: Connection) -> list[tuple[int, bytes]]:
    """Return what a reader sees."""
    records = bench.read(client, "orders").records
    return [(each.offset, each.draft.body) for each in records]


def test_a_group_reads_what_a_stream_made_again_has_after_a_crash(disk_bench: DiskBench) -> None:
    client, streams = disk_bench.connect(), disk_bench.broker.streams
    disk_bench.append(client, "orders", *"abcdefgh")
    streams.commit_offset("g", "orders", 0, 8)
    disk_bench.tick(6 * SECOND)
    streams.remove("orders")
    disk_bench.append(client, "orders", "x", "y")
    disk_bench.crash()
    client = disk_bench.connect()
    (group,) = disk_bench.broker.streams.groups
    offset = group.offsets.get(("orders", 0), 0)
    assert offset <= 0, f"the group goes on at {offset}: x and y are lost to it"


def test_the_location_of_a_message_that_is_gone_is_no_other_message(
    disk_bench: DiskBench,
) -> None:
    client, streams = disk_bench.connect(), disk_bench.broker.streams
    location = disk_bench.append(client, "orders", "old").locations[0]
    streams.remove("orders")
    disk_bench.append(client, "orders", "new")
    with pytest.raises(NoSuchRecordError):
        streams.queries.record_at(location)


def test_long_keys_are_found_after_a_restart(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    keys = " ".join(f"order-{number}" for number in range(1_000))
    disk_bench.append(client, "orders", Draft(b"a", {"KEYS": keys}))
    find = ("orders", "order-7", 0, START * 2, 10)
    assert len(disk_bench.broker.streams.queries.find_key(*find)) == 1
    disk_bench.restart()
    assert len(disk_bench.broker.streams.queries.find_key(*find)) == 1


def test_replay_forgets_keys_of_what_is_no_segment(
    disk_bench: DiskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, streams = disk_bench.connect(), disk_bench.broker.streams
    disk_bench.append(client, "orders", "a")
    for number in range(500):
        streams.commit_offset("g", "orders", 0, number % 2)
        streams.groups.write()
    disk_bench.settle()
    kept: list[ReplayedKeys] = []
    init = ReplayedKeys.__init__

    def remembered(self: ReplayedKeys) -> None:
        init(self)
        kept.append(self)

    monkeypatch.setattr(ReplayedKeys, "__init__", remembered)
    disk_bench.crash()
    assert max(len(each._hashes) for each in kept) < 10


def test_files_of_sealed_segments_are_closed_after_a_start(
    disk_bench: DiskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_files, "BUFFER_BYTES", 64)
    client = disk_bench.connect()
    settings = StreamSettings(1, Retention(time=0))
    disk_bench.broker.streams.declare("orders", settings)
    for _ in range(40):
        disk_bench.append(client, "orders", *"abcdefgh")
        disk_bench.tick(86_400_001)

    def opened() -> int:
        found = 0
        for each in Path("/proc/self/fd").iterdir():
            try:
                found += each.readlink().is_relative_to(disk_bench.directory)
            except OSError:
                continue
        return found

    assert len(disk_bench.broker.streams.get("orders").partition(0).segments) > 20
    before = opened()
    disk_bench.crash()
    assert before < 5
    assert opened() < 5
