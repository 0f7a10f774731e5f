"""Extracts of files that ActiveMQ wrote: transactions over several files, messages added twice."""

from pathlib import Path

import pytest
from streams_kit import DiskBench, replayed

from lockkeeper.journal.batch import build_batch
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import AddMessage, Commit, Record, RemoveMessage
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.message.segments import SegmentName, lane_of
from lockkeeper.store.kahadb.extracts import read_extract
from lockkeeper.store.kahadb.recovery import no_extract

FIRST = SegmentName("s", 0, 0).destination
MOVED = LocalTransactionId("ID:activemq", 1)


def add(offset: int, transaction: LocalTransactionId | None = None, size: int = 500) -> AddMessage:
    key = (lane_of("s", 0) + b":1000:0:%d" % offset).decode()
    return AddMessage(FIRST, key, size.to_bytes(4, "big") + bytes(size), transaction=transaction)


@pytest.mark.parametrize(
    "files",
    [
        [[add(0), add(1, MOVED)], [Commit(MOVED), add(2)], [add(3)], [add(4)]],
        [[add(0), add(1, MOVED, 9)], [add(1), Commit(MOVED), add(2)], [add(3)], [add(4)]],
        [[add(0), add(1, MOVED, 9), add(1), Commit(MOVED)], [add(2)], [add(3)], [add(4)]],
        [[add(0), RemoveMessage(FIRST, add(1).message_id), add(1)], [add(2)], [add(3)], [add(4)]],
    ],
    ids=["over files", "twice", "twice in a file", "removed before"],
)
def test_a_start_learns_the_same_from_extracts(tmp_path: Path, files: list[list[Record]]) -> None:
    for number, records in enumerate(files, 1):
        data = build_batch(b"".join(map(encode_record, records)))
        (tmp_path / f"db-{number}.log").write_bytes(data)
    bench = DiskBench(tmp_path)
    bench.append(bench.connect(), "s", "next")
    bench.extract()
    bench.store.close()
    whole, _ = replayed(tmp_path, no_extract)
    state, _ = replayed(tmp_path, read_extract)
    assert state == whole
