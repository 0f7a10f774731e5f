"""Lines of the flight recorder count what the broker itself sends once it stands before them."""

import json
from pathlib import Path

import pytest
from streams_kit import DiskBench

from lockkeeper.broker.streams.settings import StreamSettings, StreamsSettings
from lockkeeper.journal import records
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.scan import record_offsets, scan_file
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage
from lockkeeper.message.rewrite import encoded
from lockkeeper.server.recorder import PREFIX, FlightRecorder
from lockkeeper.store.base import Reference
from lockkeeper_api.broker import Recorder

BILLING, DEAD_LETTERS = queue("billing"), queue("ActiveMQ.DLQ")


@pytest.fixture
def bench(tmp_path: Path) -> DiskBench:
    return DiskBench(tmp_path / "kahadb", StreamsSettings(defaults=StreamSettings(1)))


def lines_of(bench: DiskBench, destination: Destination) -> list[tuple[int, int, int]]:
    """Return the messages before each line of statistics, and what it says came and is there."""
    before, found = 0, []
    for file in list_data_files(bench.directory):
        data = file.path.read_bytes()
        for batch in scan_file(data, file.path.name).batches:
            for offset, _ in record_offsets(data, batch):
                record = decode_record(data, offset)
                if isinstance(record, records.AddMessage):
                    before += record.destination == destination
                elif isinstance(record, records.Trace) and record.message.startswith(PREFIX):
                    line = json.loads(record.message.removeprefix(PREFIX))
                    told = line.get("destinations", {}).get(str(destination), {})
                    if line["t"] == "stats":
                        found.append((before, told.get("enqueued", 0), told.get("depth", 0)))
    return found


def write_line(bench: DiskBench) -> None:
    """Have a line of statistics written as the next record."""
    FlightRecorder(bench.broker, bench.store, Recorder()).write_statistics(bench.now)
    bench.settle()


def test_a_batch_of_a_feed_that_is_being_written_is_counted(bench: DiskBench) -> None:
    client = bench.connect()
    bench.broker.streams.declare("orders", StreamSettings(1, to_queues=("billing",)))
    bench.tick()
    bench.append(client, "orders", *"abcde")
    # The feed has its turn; the disk does not.
    while not bench.broker.destinations.arriving():
        bench.broker.tick(bench.now)
    write_line(bench)
    write_line(bench)
    assert lines_of(bench, BILLING) == [(5, 5, 5), (5, 5, 5)]


def test_so_are_strays_on_their_way_to_the_dead_letters(bench: DiskBench) -> None:
    bench.append(bench.connect(), "orders", *"abc")
    (segment,) = bench.store.streams.segments
    producer = ProducerId("ID:by-hand", 1, 1)
    message = encoded(
        ActiveMQTextMessage(
            producer_id=producer,
            message_id=MessageId(producer, 1),
            destination=queue("anything"),
            persistent=True,
        ),
        bench.broker.context.next_sequence(),
    )
    bench.store.add(segment.destination, Reference(message, len(message.body)), None)
    bench.settle()
    bench.crash()
    assert len(bench.broker.destinations.arriving()) == 1
    write_line(bench)
    write_line(bench)
    assert lines_of(bench, DEAD_LETTERS) == [(1, 1, 1), (1, 1, 1)]
