"""How fast a journal is read back."""

import time
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.batch import EOF_RECORD, control_record
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.records import AddMessage
from lockkeeper.message.destination import queue
from lockkeeper.store.kahadb import KahaDBStore

A = queue("A")
MESSAGES, MESSAGES_A_FILE = 200_000, 25_000
FIRST = 100_000


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 100])
def test_live_messages_are_read_quickly(
    tmp_path: Path, kit: Kit, batch_size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    body = kit.reference(1, size=1024).loaded.body
    frame = len(body).to_bytes(4, "big") + body
    template = encode_record(AddMessage(A, f"ID:producer-1:1:1:1:{FIRST}", frame))
    for file_id in range(1, MESSAGES // MESSAGES_A_FILE + 1):
        first = FIRST + (file_id - 1) * MESSAGES_A_FILE
        records = [
            template.replace(b":%d" % FIRST, b":%d" % number, 1)
            for number in range(first, first + MESSAGES_A_FILE)
        ]
        runs = [
            b"".join(records[at : at + batch_size]) for at in range(0, MESSAGES_A_FILE, batch_size)
        ]
        data = b"".join(control_record(run) + run for run in runs) + EOF_RECORD
        (tmp_path / data_file_name(file_id)).write_bytes(data)
    store = KahaDBStore(tmp_path)
    began = time.perf_counter(), time.process_time()
    recovered = store.open()
    elapsed, used = time.perf_counter() - began[0], time.process_time() - began[1]
    store.close()
    assert len(recovered.queues[A]) == MESSAGES
    with capsys.disabled():
        print(
            f"\nrecovery, {batch_size} records a batch: {MESSAGES / elapsed:,.0f} records/s", end=""
        )
        print(f" ({MESSAGES / used:,.0f} per second of processor time)")
    # A tenth of what a quiet machine does, so that only a blunder fails here.
    assert MESSAGES / used > 20_000
