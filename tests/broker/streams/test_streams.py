"""Streams: what is appended stays, and whoever likes reads it from where they like."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from streams_kit import START, Bench, DiskBench, only, taken

from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.errors import (
    IllegalMessageError,
    InvalidFilterError,
    NoSuchPartitionError,
    NoSuchRecordError,
    NoSuchStreamError,
    StreamsBusyError,
)
from lockkeeper.broker.streams.filters import sql_filter, tags_filter
from lockkeeper.broker.streams.outputs import Appended, ReadResult, ReadStatus, Refused
from lockkeeper.broker.streams.settings import (
    Retention,
    StreamLimits,
    StreamSettings,
    StreamsSettings,
)
from lockkeeper.broker.streams.waiting import Read
from lockkeeper.message.segments import STATES, SegmentName
from lockkeeper.store.kahadb.compaction import Settings
from lockkeeper.store.memory import MemoryStore


def tagged(body: str, tags: str = "", **properties: str) -> Draft:
    """Return a message with a tag and properties."""
    return Draft(body.encode(), {"TAGS": tags, **properties} if tags else dict(properties))


def test_offsets_count_from_zero_in_each_partition(any_bench: Bench) -> None:
    client = any_bench.connect()
    assert any_bench.append(client, "orders", "a", "b").offset == 0
    assert any_bench.append(client, "orders", "c").offset == 2
    assert any_bench.append(client, "orders", "d", partition=1).offset == 0
    assert any_bench.bodies(client, "orders") == ["a", "b", "c"]
    assert any_bench.bodies(client, "orders", offset=2) == ["c"]
    assert any_bench.bodies(client, "orders", partition=1) == ["d"]


def test_everything_of_a_message_comes_back(any_bench: Bench) -> None:
    client = any_bench.connect()
    draft = Draft(
        bytes(range(256)),
        {"TAGS": "a", "KEYS": "k1 k2", "UNIQ_KEY": "u", "naïve": "été \0 𝄞", "long": "x" * 9000},
        flag=7,
        system_flag=9,
        born_at=START - 5,
        born_host="10.0.0.7:40112",
        reconsumed=3,
    )
    any_bench.append(client, "orders", draft)
    any_bench.restart()
    client = any_bench.connect()
    (record,) = any_bench.read(client, "orders").records
    assert record.draft == draft
    assert (record.offset, record.stored_at) == (0, START)


def test_streams_are_as_they_were_after_a_restart(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.broker.streams.declare("wide", StreamSettings(partitions=5, ordered=True))
    any_bench.append(client, "wide", "a", "b", partition=3)
    any_bench.restart()
    client = any_bench.connect()
    assert any_bench.broker.streams.get("wide").settings.ordered
    assert len(any_bench.broker.streams.get("wide").partitions) == 5
    assert any_bench.bodies(client, "wide", partition=3) == ["a", "b"]
    assert any_bench.append(client, "wide", "c", partition=3).offset == 2
    assert any_bench.bodies(client, "wide", partition=3, offset=1) == ["b", "c"]


def test_nobody_sees_what_is_not_durable(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "a")
    disk_bench.broker.streams.append(client, "later", "orders", 0, [Draft(b"b")])
    assert disk_bench.bodies(client, "orders") == ["a"]
    disk_bench.settle()
    assert only(client, Appended).offset == 1
    assert disk_bench.bodies(client, "orders") == ["a", "b"]


def test_offsets_that_somebody_saw_are_never_given_again(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "a", "b")
    disk_bench.broker.streams.append(client, "lost", "orders", 0, [Draft(b"c")])
    disk_bench.crash()
    client = disk_bench.connect()
    assert disk_bench.bodies(client, "orders") == ["a", "b"]
    assert disk_bench.append(client, "orders", "d").offset == 2


def test_a_read_waits_for_the_next_message(any_bench: Bench) -> None:
    reader, writer = any_bench.connect(), any_bench.connect()
    any_bench.append(writer, "orders", "a")
    any_bench.broker.streams.read(reader, "w", Read("orders", 0, 1, wait_ms=5_000))
    any_bench.tick(1_000)
    assert taken(reader) == []
    any_bench.append(writer, "orders", "b", partition=1)
    assert taken(reader) == []
    any_bench.append(writer, "orders", "c")
    result = only(reader, ReadResult)
    assert (result.tag, result.status, result.next_offset) == ("w", ReadStatus.FOUND, 2)
    assert [record.draft.body for record in result.records] == [b"c"]
    any_bench.append(writer, "orders", "d")
    assert taken(reader) == []


def test_a_read_waits_no_longer_than_it_says(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a")
    bench.broker.streams.read(client, "w", Read("orders", 0, 1, wait_ms=5_000))
    bench.tick(4_999)
    assert taken(client) == []
    bench.tick(1)
    result = only(client, ReadResult)
    assert (result.status, result.next_offset) == (ReadStatus.NOT_YET, 1)
    assert bench.broker.streams.waiting_reads == 0


def test_a_waiting_read_ends_with_its_connection_and_its_stream(bench: Bench) -> None:
    client, other = bench.connect(), bench.connect()
    bench.append(client, "orders", "a")
    for connection in (client, other):
        bench.broker.streams.read(connection, "w", Read("orders", 0, 1, wait_ms=5_000))
    bench.broker.disconnect(client)
    assert bench.broker.streams.waiting_reads == 1
    bench.broker.streams.remove("orders")
    assert isinstance(only(other, Refused).error, NoSuchStreamError)
    assert bench.broker.streams.waiting_reads == 0


def test_reads_outside_of_what_is_kept_are_told_where_to_go_on(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a", "b")
    result = bench.read(client, "orders", offset=7)
    assert (result.status, result.next_offset) == (ReadStatus.TOO_LARGE, 2)
    result = bench.read(client, "orders", offset=-1)
    assert (result.status, result.next_offset) == (ReadStatus.TOO_SMALL, 0)


def test_a_read_is_bounded_by_messages_and_bytes(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", *("x" * 1000 for _ in range(10)))
    assert len(any_bench.read(client, "orders", count=3).records) == 3
    result = any_bench.read(client, "orders", bytes_max=3000)
    assert (len(result.records), result.next_offset) == (2, 2)
    assert len(any_bench.read(client, "orders", bytes_max=1).records) == 1


def test_a_read_filters_by_tags(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", *(tagged(f"{n}", "abc"[n % 3]) for n in range(9)), "none")
    assert any_bench.bodies(client, "orders", wanted=tags_filter("a || c")) == [
        *("0", "2", "3", "5", "6", "8")
    ]
    assert len(any_bench.bodies(client, "orders", wanted=tags_filter("*"))) == 10
    result = any_bench.read(client, "orders", wanted=tags_filter("d"))
    assert (result.status, result.next_offset) == (ReadStatus.NO_MATCH, 10)


def test_a_read_filters_by_properties(any_bench: Bench) -> None:
    client = any_bench.connect()
    drafts = [tagged(f"{n}", price=str(n), colour="red" if n % 2 else "blue") for n in range(8)]
    any_bench.append(client, "orders", *drafts)
    wanted = sql_filter("price > 3 AND colour = 'red'")
    assert any_bench.bodies(client, "orders", wanted=wanted) == ["5", "7"]
    assert any_bench.bodies(client, "orders", wanted=sql_filter("size IS NOT NULL")) == []
    with pytest.raises(InvalidFilterError, match="price"):
        sql_filter("price >")


def test_a_waiting_read_is_not_woken_for_what_it_does_not_want(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a")
    read = Read("orders", 0, 0, wait_ms=5_000, wanted=tags_filter("t"))
    bench.broker.streams.read(client, "w", read)
    bench.broker.streams.append(client, "x", "orders", 0, [tagged("b", "u"), tagged("c", "v")])
    bench.settle()
    assert isinstance(only(client, Appended), Appended)
    bench.broker.streams.append(client, "x", "orders", 0, [tagged("d", "t")])
    bench.settle()
    result = next(each for each in taken(client) if isinstance(each, ReadResult))
    assert [record.offset for record in result.records] == [3]
    assert result.next_offset == 4


def test_a_partition_is_searched_by_time(any_bench: Bench) -> None:
    client = any_bench.connect()
    for number in range(20):
        any_bench.append(client, "orders", f"{number}")
        any_bench.tick(10)
    at = any_bench.broker.streams.queries.offset_at
    assert at("orders", 0, 0) == 0
    assert at("orders", 0, START + 40) == 4
    assert at("orders", 0, START + 41) == 5
    assert at("orders", 0, START + 10_000) == 20


def test_a_message_is_found_by_its_keys_and_its_place(any_bench: Bench) -> None:
    client = any_bench.connect()
    one = Draft(b"1", {"KEYS": "red blue", "UNIQ_KEY": "first"})
    two = Draft(b"2", {"KEYS": "blue", "UNIQ_KEY": "second"})
    any_bench.append(client, "orders", "0", one)
    any_bench.tick(100)
    any_bench.append(client, "orders", two, partition=1)
    for _ in range(2):
        find = any_bench.broker.streams.queries.find_key
        all_time = (0, START + 1000)
        assert [each[0] for each in find("orders", "blue", *all_time, 9)] == [1, 0]
        assert [each[1].draft for each in find("orders", "red", *all_time, 9)] == [one]
        assert [each[1].draft for each in find("orders", "second", *all_time, 9)] == [two]
        assert find("orders", "blue", START, START + 50, 9)[0][1].draft == one
        assert len(find("orders", "blue", *all_time, 1)) == 1
        assert find("orders", "green", *all_time, 9) == []
        record = any_bench.read(client, "orders", offset=1).records[0]
        found = any_bench.broker.streams.queries.record_at(record.location)
        assert found == ("orders", 0, record)
        any_bench.restart()
        client = any_bench.connect()
    with pytest.raises(NoSuchRecordError):
        any_bench.broker.streams.queries.record_at(record.location + 10**6)
    with pytest.raises(NoSuchRecordError):
        any_bench.broker.streams.queries.record("orders", 0, 99)


def test_times_never_go_back_within_a_partition(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "a")
    bench.now -= 5_000
    bench.tick()
    assert bench.append(client, "orders", "b").stored_at == START


SMALL = Retention(time=8_000)


def test_retention_ends_whole_segments_by_time(any_bench: Bench) -> None:
    any_bench.broker.streams.declare("log", StreamSettings(1, SMALL))
    client = any_bench.connect()
    for number in range(30):
        any_bench.append(client, "log", f"{number}")
        any_bench.tick(500)
    any_bench.tick(5_000)
    assert any_bench.broker.streams.queries.offsets("log", 0) == (24, 30)
    assert any_bench.bodies(client, "log", offset=24) == [f"{n}" for n in range(24, 30)]
    assert any_bench.read(client, "log", offset=3).status is ReadStatus.TOO_SMALL
    any_bench.restart()
    assert any_bench.broker.streams.queries.offsets("log", 0) == (24, 30)


def test_retention_ends_messages_by_number_and_keeps_the_last(any_bench: Bench) -> None:
    retention = Retention(time=8_000, messages=4)
    any_bench.broker.streams.declare("log", StreamSettings(1, retention))
    client = any_bench.connect()
    for number in range(10):
        any_bench.append(client, "log", f"{number}")
        any_bench.tick(1_000)
    any_bench.tick(10_000)
    any_bench.tick(100_000)
    assert any_bench.broker.streams.queries.offsets("log", 0) == (9, 10)
    any_bench.restart()
    client = any_bench.connect()
    assert any_bench.append(client, "log", "next").offset == 10


def test_retention_gives_back_the_disk(disk_bench: DiskBench) -> None:
    disk_bench = DiskBench(
        disk_bench.directory / "small", file_bytes_max=1 << 16, cleanup_interval_ms=1
    )
    retention = Retention(time=8_000, bytes=100_000)
    disk_bench.broker.streams.declare("log", StreamSettings(1, retention))
    client = disk_bench.connect()
    sizes = []
    for number in range(150):
        disk_bench.append(client, "log", f"{number:04}" * 1500)
        disk_bench.tick(500)
        for _ in range(3):
            disk_bench.store.maintain(disk_bench.now)
            disk_bench.settle()
        sizes.append(disk_bench.store.usage().files)
    assert max(sizes[75:]) <= 10
    minimum, maximum = disk_bench.broker.streams.queries.offsets("log", 0)
    assert maximum == 150
    assert minimum > 110
    disk_bench.crash()
    client = disk_bench.connect()
    assert disk_bench.broker.streams.queries.offsets("log", 0) == (minimum, 150)
    assert disk_bench.bodies(client, "log", offset=149) == ["0149" * 1500]


def test_messages_stay_readable_when_their_files_are_compacted(tmp_path: Path) -> None:
    eager = Settings(after_no_gc=1, ignores_store_growth=True)
    bench = DiskBench(
        tmp_path / "data", file_bytes_max=1 << 15, cleanup_interval_ms=0, compaction=eager
    )
    client = bench.connect()
    for number in range(40):
        bench.append(client, "orders", Draft(f"{number}".encode(), {"KEYS": f"k{number}"}))
        for _ in range(4):
            bench.broker.streams.groups.lock(client, "l", f"{number}", "x" * 3000, [("orders", 0)])
            bench.settle()
            bench.broker.streams.groups.delete(f"{number}")
        bench.tick(1_000)
        taken(client)
    before = bench.store.usage().bytes_on_disk
    deadline = time.monotonic() + 60
    while bench.store.usage().bytes_on_disk >= before // 2:
        assert time.monotonic() < deadline
        bench.tick(1_000)
        bench.store.maintain(bench.now)
        bench.settle()
        time.sleep(0.001)
    for _ in range(2):
        assert bench.bodies(client, "orders", count=99) == [f"{number}" for number in range(40)]
        (found,) = bench.broker.streams.queries.find_key("orders", "k7", 0, bench.now, 9)
        assert bench.broker.streams.queries.record_at(found[1].location) == ("orders", 0, found[1])
        bench.crash()
        client = bench.connect()


def test_a_deleted_stream_is_gone_with_what_is_being_written(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", "a")
    any_bench.broker.streams.append(client, "x", "orders", 0, [Draft(b"b")])
    any_bench.broker.streams.remove("orders")
    any_bench.settle()
    taken(client)
    with pytest.raises(NoSuchStreamError):
        any_bench.read(client, "orders")
    any_bench.restart()
    assert any_bench.broker.streams.find("orders") is None
    client = any_bench.connect()
    assert any_bench.append(client, "orders", "new").offset == 0


def test_partitions_are_added_and_never_taken_away(any_bench: Bench) -> None:
    client = any_bench.connect()
    streams = any_bench.broker.streams
    streams.declare("orders", StreamSettings(partitions=1))
    any_bench.append(client, "orders", "a")
    streams.declare("orders", StreamSettings(partitions=3))
    any_bench.append(client, "orders", "b", partition=2)
    streams.declare("orders", StreamSettings(partitions=1))
    assert len(streams.get("orders").partitions) == 3
    assert any_bench.bodies(client, "orders") == ["a"]
    with pytest.raises(NoSuchPartitionError, match="0 to 2, not 3"):
        streams.append(client, "x", "orders", 3, [Draft(b"")])


def test_a_message_without_a_partition_takes_the_next_in_turn(bench: Bench) -> None:
    client = bench.connect()
    partitions = [bench.append(client, "orders", "a", partition=-1).partition for _ in range(4)]
    assert partitions == [1, 0, 1, 0]


def test_streams_are_only_made_where_that_is_allowed() -> None:
    bench = Bench(MemoryStore(), StreamsSettings(create_on_first_use=False))
    client = bench.connect()
    with pytest.raises(NoSuchStreamError, match="createOnFirstUse"):
        bench.broker.streams.append(client, "x", "orders", 0, [Draft(b"")])
    bench.broker.streams.declare("orders", StreamSettings())
    assert bench.append(client, "orders", "a").offset == 0


def test_limits_are_named_where_they_are_passed() -> None:
    limits = StreamLimits(
        streams=2, partitions=4, message_bytes=10, waiting_reads=1, pending_bytes=1000
    )
    settings = StreamsSettings(limits=limits, defaults=StreamSettings(partitions=2))
    bench = Bench(MemoryStore(), settings)
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", "a")
    streams.declare("other", StreamSettings(partitions=4))
    with pytest.raises(ResourceAllocationError, match=r"limits\.streams"):
        streams.declare("third", StreamSettings(partitions=1))
    with pytest.raises(InvalidDestinationError, match=r"limits\.partitions"):
        streams.declare("other", StreamSettings(partitions=5))
    with pytest.raises(InvalidDestinationError, match="no name of a stream"):
        streams.declare("a/b", StreamSettings())
    with pytest.raises(IllegalMessageError, match=r"limits\.messageBytes"):
        streams.append(client, "x", "orders", 0, [Draft(b"x" * 11)])
    with pytest.raises(IllegalMessageError, match="without messages"):
        streams.append(client, "x", "orders", 0, [])
    streams.read(client, "w", Read("orders", 0, 1, wait_ms=1000))
    with pytest.raises(ResourceAllocationError, match=r"limits\.waitingReads"):
        streams.read(client, "w", Read("orders", 0, 1, wait_ms=1000))
    with pytest.raises(StreamsBusyError, match=r"limits\.pendingBytes"):
        for _ in range(20):
            streams.append(client, "x", "orders", 1, [Draft(b"x")])
    bench.settle()
    taken(client)
    assert bench.append(client, "orders", "b", partition=1).offset > 0


def test_nobody_else_uses_the_queues_of_streams(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.append(client, "orders", "a")
    any_bench.restart()
    assert [region.destination.name for region in any_bench.broker.registry if region.depth()] == []
    with pytest.raises(InvalidDestinationError, match="the broker's own"):
        any_bench.broker.declare(SegmentName("orders", 0, 0).destination)
    with pytest.raises(InvalidDestinationError, match="the broker's own"):
        any_bench.broker.declare(STATES)


def test_settings_are_taken_over_while_it_runs(bench: Bench) -> None:
    stream = bench.broker.streams.declare("orders", StreamSettings(2))
    bench.broker.streams.declare("orders", replace(stream.settings, retention=SMALL))
    assert [partition.retention for partition in stream.partitions] == [SMALL, SMALL]
