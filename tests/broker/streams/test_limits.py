"""Limits on what clients send, and streams that are the broker's own."""

import pytest
from streams_kit import Bench, DiskBench, only

from lockkeeper.broker.errors import BrokerError, ResourceAllocationError
from lockkeeper.broker.streams.delays import DELAY_STREAM
from lockkeeper.broker.streams.drafts import RESERVED, Draft
from lockkeeper.broker.streams.errors import NoSuchPartitionError
from lockkeeper.broker.streams.outputs import Done, Locked
from lockkeeper.broker.streams.settings import (
    Retention,
    StreamLimits,
    StreamSettings,
    StreamsSettings,
)
from lockkeeper.broker.streams.waiting import Read
from lockkeeper.message.destination import queue
from lockkeeper.message.segments import SegmentName, parse_segment
from lockkeeper.store.base import Reference
from lockkeeper.store.memory import MemoryStore

SECOND = 1_000


def test_groups_of_producers_are_limited(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    with pytest.raises(BrokerError):
        for number in range(200_000):
            streams.producer_heartbeat(client, f"group-{number}", "client")


def test_properties_are_limited(bench: Bench) -> None:
    client = bench.connect()
    draft = Draft(b"", {"huge": "x" * (40 << 20)})
    with pytest.raises(BrokerError, match="more than 32767"):
        bench.append(client, "orders", draft)


@pytest.mark.parametrize("name", RESERVED)
def test_properties_of_the_broker_are_refused(bench: Bench, name: str) -> None:
    client = bench.connect()
    with pytest.raises(BrokerError, match=f"the property {name} is the broker's own"):
        bench.append(client, "orders", Draft(b"", {name: "7"}))


def test_keys_of_one_message_are_limited(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    draft = Draft(b"", {"KEYS": " ".join(map(str, range(600_000)))})
    with pytest.raises(BrokerError, match="more than 32767"):
        disk_bench.append(client, "orders", draft)


def test_half_messages_wait_for_the_disk_within_the_limit(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", "a")
    body = bytes(4 << 20)
    with pytest.raises(BrokerError, match="pendingBytes"):
        for number in range(20):
            streams.begin_transaction(client, number, "p", "orders", 0, Draft(body))


def test_a_message_given_back_very_often_is_refused_or_set_aside(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", Draft(b"a", reconsumed=2**31 - 1))
    streams.send_back(client, "t", "g", "orders", 0, 0)
    bench.settle()
    assert only(client, Done).tag == "t"
    assert bench.bodies(client, "%DLQ%g") == ["a"]


def test_delayed_messages_come_after_the_delay_stream_was_deleted(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    for number in range(5):
        bench.append(client, "orders", f"{number}", delay_level=1)
    bench.tick(2 * SECOND)
    assert len(bench.bodies(client, "orders")) == 5
    with pytest.raises(BrokerError, match="the broker's own"):
        streams.remove(DELAY_STREAM)
    bench.append(client, "orders", "again", delay_level=1)
    bench.tick(60 * SECOND)
    assert bench.bodies(client, "orders")[-1] == "again"


def test_retention_of_a_declaration_never_ends_delayed_messages(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", "first", delay_level=18)
    with pytest.raises(BrokerError, match="the broker's own"):
        streams.declare(DELAY_STREAM, StreamSettings(18, Retention(time=60 * SECOND)))
    for _ in range(3):
        bench.tick(600 * SECOND)
        bench.append(client, "orders", "later", delay_level=18)
    bench.tick(7200 * SECOND)
    bench.tick(7200 * SECOND)
    assert bench.bodies(client, "orders")[0] == "first"


def test_locks_are_of_partitions_that_there_are(bench: Bench) -> None:
    client, groups = bench.connect(), bench.broker.streams.groups
    bench.append(client, "orders", "a")
    with pytest.raises(NoSuchPartitionError, match="no partition 0 of a stream 'odrers'"):
        groups.lock(client, 1, "g", "one", [("odrers", n) for n in range(10_000)])
    assert groups.find("g") is None
    places = [*(("orders", number) for number in range(-1, 1_000)), ("odrers", 0)]
    groups.lock(client, 1, "g", "one", places)
    bench.settle()
    assert only(client, Locked).partitions == (("orders", 0), ("orders", 1))
    group = groups.find("g")
    assert group is not None
    assert len(group.locks) == 2


@pytest.mark.parametrize("name", ["", "a b", "x" * 256, "g\n"])
def test_names_of_groups_are_limited(bench: Bench, name: str) -> None:
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", "a")
    with pytest.raises(BrokerError, match="no name of a group"):
        streams.commit_offset(name, "orders", 0, 1)
    with pytest.raises(BrokerError, match="no name of a group"):
        streams.producer_heartbeat(client, name, "client")
    with pytest.raises(BrokerError, match="no name of a group"):
        streams.begin_transaction(client, 1, name, "orders", 0, Draft(b""))
    assert not [*streams.groups]


# Names that somebody gave queues at ActiveMQ


@pytest.mark.parametrize(
    "name",
    [
        "999999999.00000000000000000000.orders",
        "1024.00000000000000000000.orders",
        "1.0.orders",
        "01.00000000000000000000.orders",
        "1.99999999999999999999.orders",
        f"1.{'9' * 5_000}.orders",
        f"{'9' * 5_000}.00000000000000000000.orders",
        "\u0661.00000000000000000000.orders",
    ],
)
def test_a_queue_that_ours_could_not_be_called_is_no_segment(name: str) -> None:
    assert parse_segment(queue(f"Lockkeeper.Stream.{name}")) is None


def test_a_queue_of_a_partition_far_away_allocates_nothing(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "a")
    segment = disk_bench.broker.streams.get("orders").partition(0).segments[0]
    (record,) = disk_bench.read(client, "orders").records
    message = (
        disk_bench.broker.streams.get("orders")
        .partition(0)
        .prepare([Draft(b"b")], 1, lambda *_: None)
        .references[0]
        .loaded
    )
    forged = SegmentName("orders", 999_999_999, 0).destination
    disk_bench.store.add(forged, Reference(message, len(message.body)), None)
    disk_bench.settle()
    disk_bench.restart()
    streams = disk_bench.broker.streams
    assert len(streams.get("orders").partitions) == 2
    assert streams.get("orders").partition(0).segments[0].destination == segment.destination
    assert disk_bench.read(disk_bench.connect(), "orders").records == [record]


def test_forged_states_allocate_nothing_and_stop_nobody(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.append(client, "orders", "a")
    book = disk_bench.broker.streams._book
    book.put("stream/huge", {"partitions": 10**9})
    book.put("group/g", {"locks": {"orders": {"9" * 5_000: "me"}}, "offsets": {"orders": 3}})
    book.put("delays", {"positions": [-5, "x", None]})
    disk_bench.settle()
    disk_bench.restart()
    assert len(disk_bench.broker.streams.get("huge").partitions) <= 1_024
    assert disk_bench.bodies(disk_bench.connect(), "orders") == ["a"]


# Delayed messages that cannot be delivered


def test_an_undeliverable_delayed_message_holds_up_no_other() -> None:
    limits = StreamLimits(streams=3)
    bench = Bench(MemoryStore(), StreamsSettings(defaults=StreamSettings(1), limits=limits))
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", "first", delay_level=1)
    streams.remove("orders")
    bench.append(client, "one", "x")
    bench.append(client, "two", "late", delay_level=1)
    bench.tick(1_001)
    bench.tick(1)
    assert bench.bodies(client, "two") == ["late"]
    # There is room for its stream again: nothing is lost.
    streams.remove("one")
    for _ in range(70):
        bench.tick(1_000)
    assert bench.bodies(client, "orders") == ["first"]


def test_what_somebody_put_among_delayed_messages_holds_up_no_other(bench: Bench) -> None:
    client = bench.connect()
    bench.append(client, "orders", "before", delay_level=1)
    partition = bench.broker.streams.get(DELAY_STREAM).partition(0)
    partition.add(partition.prepare([Draft(b"alien")], 1, lambda *_: None))
    bench.settle()
    bench.append(client, "orders", "after", delay_level=1)
    bench.tick(1_001)
    bench.tick(1)
    assert bench.bodies(client, "orders") == ["before", "after"]


def test_partitions_of_all_streams_are_limited() -> None:
    limits = StreamLimits(partitions_total=6)
    bench = Bench(MemoryStore(), StreamsSettings(limits=limits))
    streams = bench.broker.streams
    streams.declare("a", StreamSettings(partitions=3))
    with pytest.raises(ResourceAllocationError, match=r"limits\.partitionsTotal"):
        streams.declare("b", StreamSettings(partitions=4))
    assert streams.find("b") is None
    streams.declare("b", StreamSettings(partitions=1))
    with pytest.raises(ResourceAllocationError, match=r"4 partitions, and 3 more"):
        streams.declare("b", StreamSettings(partitions=4))
    streams.declare("a", StreamSettings(partitions=1, retention=Retention(messages=1)))
    streams.remove("a")
    streams.declare("b", StreamSettings(partitions=4))
    bench.settle()
    bench.restart()
    with pytest.raises(ResourceAllocationError, match=r"limits\.partitionsTotal"):
        bench.broker.streams.declare("c", StreamSettings(partitions=3))


def test_one_connection_does_not_take_all_reads_that_may_wait() -> None:
    limits = StreamLimits(waiting_reads=24)
    bench = Bench(MemoryStore(), StreamsSettings(limits=limits))
    greedy, other, streams = bench.connect(), bench.connect(), bench.broker.streams
    bench.append(other, "S", "a")
    for number in range(3):
        streams.read(greedy, number, Read("S", 0, 1, wait_ms=1_000))
    with pytest.raises(ResourceAllocationError, match=r"of this connection .*limits\.waitingReads"):
        streams.read(greedy, 3, Read("S", 0, 1, wait_ms=1_000))
    streams.read(other, 0, Read("S", 0, 1, wait_ms=1_000))
    assert streams.waiting_reads == 4
    bench.append(bench.connect(), "S", "b")
    streams.read(greedy, 4, Read("S", 0, 2, wait_ms=1_000))
    assert streams.waiting_reads == 1
