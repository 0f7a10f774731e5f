"""Messages that somebody sent to a segment's queue, or moved there: told, and kept elsewhere."""

import logging
from pathlib import Path

import pytest
from streams_kit import DiskBench, replayed

from lockkeeper.broker.streams.settings import Retention, StreamSettings, StreamsSettings
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import ActiveMQTextMessage
from lockkeeper.message.rewrite import decoded, encoded, properties_of
from lockkeeper.server.declarations import is_in_use
from lockkeeper.store.base import WRITTEN, Reference
from lockkeeper.store.kahadb.extracts import read_extract
from lockkeeper.store.kahadb.recovery import no_extract
from lockkeeper.store.segment import Segment

DEAD_LETTERS = queue("ActiveMQ.DLQ")
SETTINGS = StreamsSettings(defaults=StreamSettings(1))


@pytest.fixture
def bench(tmp_path: Path) -> DiskBench:
    bench = DiskBench(tmp_path / "kahadb", SETTINGS, file_bytes_max=1 << 14)
    bench.append(bench.connect(), "orders", *["x" * 600] * 40)
    return bench


def stray(bench: DiskBench, number: int) -> Message:
    producer = ProducerId("ID:by-hand", 1, 1)
    return encoded(
        ActiveMQTextMessage(
            producer_id=producer,
            message_id=MessageId(producer, number),
            destination=queue("anything"),
            persistent=True,
        ),
        bench.broker.context.next_sequence(),
    )


def segments(bench: DiskBench, stream: str = "orders") -> list[Segment]:
    """Return the segments of a stream, oldest first."""
    found = [each for each in bench.store.streams.segments if each.name.stream == stream]
    return sorted(found, key=lambda each: each.base)


def message_at(bench: DiskBench, segment: Segment, offset: int) -> Message:
    """Return a message of a stream, as ActiveMQ reads it."""
    entry = segment.entry(offset)
    assert entry is not None
    found = Reference(None, entry.size, entry.location, WRITTEN)
    bench.store.load([found], 1)
    return found.loaded


def put(bench: DiskBench, message: Message) -> Reference:
    """Add a message to the queue of the first segment, as ActiveMQ does."""
    (segment, *_) = segments(bench)
    reference = Reference(message, len(message.body))
    bench.store.add(segment.destination, reference, None)
    bench.settle()
    return reference


def dead_letters(bench: DiskBench) -> list[str]:
    bench.settle()
    found = bench.broker.registry.find_queue(DEAD_LETTERS)
    waiting = list(found.waiting()) if found else []
    bench.store.load(waiting, bench.broker.context.next_sequence(len(waiting) + 1))
    return [str(decoded(reference.loaded).message_id) for reference in waiting]


def count(bench: DiskBench) -> int:
    return len(bench.bodies(bench.connect(), "orders", count=100))


def test_what_is_none_of_the_stream_goes_to_the_dead_letters(
    bench: DiskBench, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        put(bench, stray(bench, number))
    with caplog.at_level(logging.WARNING):
        bench.crash()
    assert (
        "Stream.0.00000000000000000000.orders: 3 messages that are none of its stream"
        in caplog.text
    )
    expected = [f"ID:by-hand:1:1:{number}" for number in (1, 2, 3)]
    assert dead_letters(bench) == expected
    assert count(bench) == 40
    # Once, whatever comes then.
    caplog.clear()
    for start in (bench.crash, bench.restart):
        start()
        assert dead_letters(bench) == expected
    assert "none of its stream" not in caplog.text
    (first, *_) = bench.broker.registry.ensure_queue(bench.broker.context, DEAD_LETTERS).waiting()
    bench.store.load([first], bench.broker.context.next_sequence(2))
    cause = properties_of(decoded(first.loaded))["dlqDeliveryFailureCause"]
    assert "the queue of a stream's segment" in str(cause)


def test_the_dead_letters_are_in_use_while_strays_are_written_there(bench: DiskBench) -> None:
    put(bench, stray(bench, 1))
    bench.crash()
    region = bench.broker.registry.find_queue(DEAD_LETTERS)
    assert region is not None and region.depth() == 0
    assert is_in_use(bench.broker, DEAD_LETTERS)
    assert dead_letters(bench) == ["ID:by-hand:1:1:1"]
    assert region.drop(1) == 1
    assert not is_in_use(bench.broker, DEAD_LETTERS)


def test_what_somebody_consumed_there_is_gone(bench: DiskBench) -> None:
    (segment, *_) = segments(bench)
    reference = put(bench, stray(bench, 1))
    bench.store.remove(segment.destination, reference)
    bench.settle()
    bench.crash()
    assert dead_letters(bench) == []
    assert count(bench) == 40


def test_a_message_that_was_taken_out_and_moved_back_is_kept(bench: DiskBench) -> None:
    (segment, *_) = segments(bench)
    entry = segment.entry(3)
    assert entry is not None
    taken = Reference(None, entry.size, entry.location, WRITTEN)
    bench.store.load([taken], 1)
    message = taken.loaded
    bench.store.remove(segment.destination, taken)
    bench.settle()
    segment.take_out(3)
    put(bench, message)
    bench.crash()
    assert len(dead_letters(bench)) == 1
    assert count(bench) == 39


def test_strays_are_found_beside_extracts_and_keep_their_file(bench: DiskBench) -> None:
    put(bench, stray(bench, 1))
    for _ in range(3):
        bench.append(bench.connect(), "orders", *["x" * 600] * 40)
    bench.extract()
    bench.store.close()
    whole, _ = replayed(bench.directory, no_extract)
    state, extracted = replayed(bench.directory, read_extract)
    assert extracted
    assert state == whole
    bench.store = bench._open()
    (reference,) = bench.store.open().strays.popitem()[1]
    live = bench.store._file_references.files[reference.location >> 32].live
    assert live == reference.size + sum(
        each.bytes_in(reference.location >> 32) for each in segments(bench)
    )
    bench.store.close()


@pytest.mark.parametrize("offset", [3, 40, 41], ids=["of another", "the next one", "beyond"])
def test_a_message_of_another_partition_is_none_of_the_stream(
    bench: DiskBench, offset: int
) -> None:
    bench.append(bench.connect(), "invoices", *["y" * 600] * 45)
    (invoices,) = segments(bench, "invoices")
    put(bench, message_at(bench, invoices, offset))
    for _ in range(2):
        bench.crash()
        assert len(dead_letters(bench)) == 1
        client = bench.connect()
        assert bench.bodies(client, "orders", count=100) == ["x" * 600] * 40
        assert bench.bodies(client, "invoices", count=100) == ["y" * 600] * 45
    bench.append(bench.connect(), "orders", "z")
    bench.crash()
    assert bench.bodies(bench.connect(), "orders", offset=40, count=100) == ["z"]


def test_to_consume_a_message_of_another_partition_takes_nothing_out(bench: DiskBench) -> None:
    bench.append(bench.connect(), "invoices", *["y" * 600] * 5)
    (invoices,), (orders,) = segments(bench, "invoices"), segments(bench)
    reference = put(bench, message_at(bench, invoices, 3))
    bench.store.remove(orders.destination, reference)
    bench.settle()
    bench.crash()
    assert dead_letters(bench) == []
    assert count(bench) == 40


def test_a_message_of_a_later_segment_is_none_of_an_earlier_one(tmp_path: Path) -> None:
    settings = StreamsSettings(defaults=StreamSettings(1, Retention(time=80_000)))
    bench = DiskBench(tmp_path / "kahadb", settings)
    for _ in range(2):
        bench.append(bench.connect(), "orders", *"xyz")
        bench.tick(20_000)
    first, second = segments(bench)
    assert (first.base, second.base) == (0, 3)
    for offset in (3, 5):
        put(bench, message_at(bench, second, offset))
    bench.crash()
    assert len(dead_letters(bench)) == 2
    assert bench.bodies(bench.connect(), "orders", count=100) == [*"xyzxyz"]
    assert [(each.base, each.end) for each in segments(bench)] == [(0, 3), (3, 6)]


def test_a_message_of_a_stream_that_was_deleted_is_none_of_one_of_its_name(
    bench: DiskBench,
) -> None:
    (before,) = segments(bench)
    message = message_at(bench, before, 3)
    bench.broker.streams.remove("orders")
    bench.tick(1_000)
    bench.append(bench.connect(), "orders", *["z" * 600] * 40)
    put(bench, message)
    bench.crash()
    assert len(dead_letters(bench)) == 1
    assert bench.bodies(bench.connect(), "orders", count=100) == ["z" * 600] * 40
