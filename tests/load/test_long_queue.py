"""What waits in a queue stays on the disk, and may be long: `make scale` takes ten million."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loaded import Loaded

from lockkeeper.journal.batch import EOF_RECORD, control_record
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.records import AddMessage
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage, encode

MESSAGES = int(os.environ.get("LOCKKEEPER_SCALE_MESSAGES", "1_000_000"))
PEAK_BYTES_MAX = 400_000_000
START_SECONDS_MAX = 60 + MESSAGES // 5_000
LONG = queue("LONG")
PRODUCER = ProducerId("ID:producer-1:1", 1, 1)
SENT = int.from_bytes(b"sequence")
"""The number of the message that all others are made of; its bytes appear nowhere else."""
SIZES = (60, 61, 90)
BATCH = 1000
FILE_BYTES = 30 << 20
TAKEN = 5_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def templates() -> list[bytes]:
    """Return the record of a message of each size."""
    found = []
    for size in SIZES:
        message = ActiveMQTextMessage(
            producer_id=PRODUCER,
            destination=LONG,
            message_id=MessageId(PRODUCER, SENT),
            persistent=True,
            priority=4,
            content=(size - 4).to_bytes(4, "big") + b"x" * (size - 4),
        )
        body = encode(message, 11)
        assert body.count(b"sequence") == 1
        frame = len(body).to_bytes(4, "big") + body
        found.append(encode_record(AddMessage(LONG, "ID:producer-1:1:1:1:xxxxxxxx", frame)))
    return found


def batches(count: int) -> Iterator[bytes]:
    """Yield the messages of a queue, in order, as a broker writes them."""
    made = templates()
    for first in range(0, count, BATCH):
        run = b"".join(
            made[number % len(made)]
            .replace(b"xxxxxxxx", b"%08d" % number, 1)
            .replace(b"sequence", number.to_bytes(8, "big"), 1)
            for number in range(10_000_000 + first, 10_000_000 + min(first + BATCH, count))
        )
        yield control_record(run) + run


def fill(directory: Path, count: int) -> None:
    """Write a journal in which *count* messages wait."""
    directory.mkdir(parents=True)
    file_id, pieces, size = 1, list[bytes](), 0
    for batch in batches(count):
        pieces.append(batch)
        size += len(batch)
        if size > FILE_BYTES:
            (directory / data_file_name(file_id)).write_bytes(b"".join(pieces) + EOF_RECORD)
            file_id, pieces, size = file_id + 1, [], 0
    (directory / data_file_name(file_id)).write_bytes(b"".join(pieces) + EOF_RECORD)


def take(loaded: Loaded, first: int) -> None:
    """Consume TAKEN messages, the first of which is *first*."""
    with loaded.connect() as connection:
        consumer = connection.session().consumer("LONG")
        for number in range(first, first + TAKEN):
            message = consumer.receive(timeout=60)
            assert message is not None
            assert message.message_id == f"ID:producer-1:1:1:1:{10_000_000 + number}"


def test_a_long_queue_weighs_little(
    tmp_path: Path, start_loaded: Callable[..., Loaded], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path / "data", MESSAGES)
    began = time.monotonic()
    loaded = start_loaded(start_seconds_max=START_SECONDS_MAX)
    took = time.monotonic() - began
    read = loaded.peak
    take(loaded, 0)
    # Nobody answers acknowledgements; what is answered now comes behind them in the journal.
    assert loaded.serves()
    loaded.process.kill()
    loaded.process.start()
    again = loaded.peak
    take(loaded, TAKEN)
    assert loaded.serves()
    with capsys.disabled():
        print(
            f"\n{MESSAGES:,} messages: served after {took:.1f} s, {read} MiB at most; after"
            f" {TAKEN:,} acknowledgements and a kill {again} MiB, {loaded.peak} once more were read"
        )
    assert max(read, again, loaded.peak) << 20 < PEAK_BYTES_MAX
