"""While a long journal is read the admin endpoint answers as if nothing were."""

import re
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest
from pods import Pod

from lockkeeper.journal.batch import EOF_RECORD, control_record
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.records import AddMessage
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage, encode

pytestmark = pytest.mark.slow

StartPod = Callable[..., Pod]
FILES, MESSAGES_A_FILE, BATCH = 40, 25_000, 100
FIRST = 1_000_000
ANSWER_SECONDS_MAX = 2.0
LENGTH_SECONDS = 2.0
"""A journal that takes longer would make whoever asks wait longer than it may."""


def write_journal(directory: Path) -> None:
    """Write 1,000,000 messages of one queue."""
    producer = ProducerId("ID:producer-1:1", 1, 1)
    message = ActiveMQTextMessage(
        producer_id=producer,
        destination=queue("A"),
        message_id=MessageId(producer, FIRST),
        persistent=True,
        priority=4,
        content=b"short",
    )
    body = encode(message, 11)
    frame = len(body).to_bytes(4, "big") + body
    template = encode_record(AddMessage(queue("A"), f"ID:producer-1:1:1:1:{FIRST}", frame))
    directory.mkdir(exist_ok=True)
    for file_id in range(1, FILES + 1):
        first = FIRST + (file_id - 1) * MESSAGES_A_FILE
        records = [
            template.replace(b":%d" % FIRST, b":%d" % number, 1)
            for number in range(first, first + MESSAGES_A_FILE)
        ]
        runs = [b"".join(records[at : at + BATCH]) for at in range(0, MESSAGES_A_FILE, BATCH)]
        data = b"".join(control_record(run) + run for run in runs) + EOF_RECORD
        (directory / data_file_name(file_id)).write_bytes(data)


def test_health_and_status_are_told_while_the_journal_is_read(
    start_pod: StartPod, tmp_path: Path
) -> None:
    write_journal(tmp_path / "data")
    pod = start_pod()
    slowest, answers = 0.0, 0
    role = ""
    while role != "master":
        assert pod.process.poll() is None, pod.log.read_text()
        for path in ("/healthz", "/api/v1/status"):
            began = time.monotonic()
            try:
                said = pod.ask(path, timeout=10)
            except urllib.error.URLError:
                continue
            slowest = max(slowest, time.monotonic() - began)
            if said.get("role") == "recovering":
                answers += 1
            role = said.get("role", role)
        time.sleep(0.05)
    read = re.search(r"read the journal in ([\d.]+) s", pod.log.read_text())
    assert read is not None
    seconds = float(read[1])
    print(f"read in {seconds:.1f} s; {answers} answers meanwhile, the slowest in {slowest:.2f} s")
    assert seconds > LENGTH_SECONDS
    assert answers > 10
    assert slowest < ANSWER_SECONDS_MAX
    assert pod.ask("/api/v1/destinations")["destinations"][0]["depth"] == FILES * MESSAGES_A_FILE
