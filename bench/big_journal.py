"""Write a large journal quickly, and tell what it takes to analyse it.

`big_journal.py make DIR --gigabytes 5` writes data files of 32 MB: text messages of 1 KB from four
producers to eight queues, each acknowledged two thousand messages later, one in a thousand never,
a thousand messages a second. One batch is encoded by the broker's own code, and all others are
copies of it in which numpy has replaced numbers and times.

`big_journal.py measure COMMAND…` runs a command and samples its processes, ten times a second: the
peaks of Java's and of Python's memory (RSS), and how much lay in TMPDIR and in `--scratch`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from zlib import adler32

import numpy as np
import psutil

from lockkeeper.journal.batch import CONTROL, CONTROL_SIZE, CONTROL_START, EOF_RECORD
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import AddMessage, RemoveMessage, Trace
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage, encode

START = 1_795_000_000_000
FIRST = 100_100_000
"""Numbers of messages have nine digits from the first to the last."""
DIGITS = 9
PER_BATCH = 32
DELAY = 2000
"""Messages between one and its acknowledgement."""
FILE_BYTES = 32 * 1024 * 1024
BODY = b"x" * 1000
SAMPLE_SECONDS = 0.1
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Template:
    """One batch, and where in it numbers and times stand, with what they are more than the first.

    *texts* are positions of nine digits, *longs* of eight bytes with a number, *times* of those
    with a time in ms.
    """

    data: np.ndarray
    texts: tuple[tuple[int, int], ...]
    longs: tuple[tuple[int, int], ...]
    times: tuple[int, ...]
    clock: int


def template() -> Template:
    """Return the batch whose messages have the first numbers."""
    producers = [ProducerId(f"ID:gate-{n}-40122-1795261934990-3:1", 1, 1) for n in range(4)]
    places = [queue(f"DEPARTURES.GATE.{n}") for n in range(8)]
    records = [encode_record(Trace("lk1 " + json.dumps({"t": "clock", "at": START})))]
    for index in range(PER_BATCH):
        number, producer, place = FIRST + index, producers[index % 4], places[index % 8]
        message = ActiveMQTextMessage(
            producer_id=producer,
            destination=place,
            message_id=MessageId(producer, number, number),
            persistent=True,
            timestamp=START,
            content=len(BODY).to_bytes(4, "big") + BODY,
            broker_in_time=START,
        )
        frame = encode(message, 11)
        whole = len(frame).to_bytes(4, "big") + frame
        records.append(encode_record(AddMessage(place, str(MessageId(producer, number, 0)), whole)))
        gone = str(MessageId(producer, number - DELAY, 0))
        records.append(encode_record(RemoveMessage(place, gone, None, None)))
    data = b"".join(records)
    numbers = [(FIRST + index - delay) for index in range(PER_BATCH) for delay in (0, DELAY)]
    return Template(
        np.frombuffer(data, np.uint8),
        tuple((at, n - FIRST) for n in numbers for at in positions(data, str(n).encode())),
        tuple((at, n - FIRST) for n in numbers for at in positions(data, n.to_bytes(8, "big"))),
        tuple(positions(data, START.to_bytes(8, "big"))),
        data.index(str(START).encode()),
    )


def positions(data: bytes, wanted: bytes) -> list[int]:
    """Return where *wanted* stands in *data*."""
    found, at = [], data.find(wanted)
    while at >= 0:
        found.append(at)
        at = data.find(wanted, at + 1)
    return found


def batches(made: Template, first: int, count: int) -> np.ndarray:
    """Return *count* batches, a row each; the first message of all has the number *first*."""
    rows = np.repeat(made.data[None, :], count, axis=0)
    numbers = first + PER_BATCH * np.arange(count, dtype=np.int64)
    for at, more in made.texts:
        write_digits(rows, at, numbers + more, DIGITS)
    for at, more in made.longs:
        write_long(rows, at, numbers + more)
    now = START + (numbers - FIRST)
    for at in made.times:
        write_long(rows, at, now)
    write_digits(rows, made.clock, now, len(str(START)))
    return rows


def write_digits(rows: np.ndarray, at: int, numbers: np.ndarray, digits: int) -> None:
    """Write decimal numbers into a column of the rows."""
    for place in range(digits):
        rows[:, at + digits - 1 - place] = numbers // 10**place % 10 + ord("0")


def write_long(rows: np.ndarray, at: int, numbers: np.ndarray) -> None:
    """Write numbers as eight bytes, the highest first."""
    rows[:, at : at + 8] = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)


def make(directory: Path, gigabytes: float) -> None:
    """Write the journal, and print how many messages are in it."""
    directory.mkdir(parents=True)
    made = template()
    size = len(made.data) + CONTROL_SIZE
    per_file = FILE_BYTES // size
    number = FIRST
    for file_id in range(1, int(gigabytes * 1e9 / FILE_BYTES) + 2):
        with (directory / f"db-{file_id}.log").open("wb") as file:
            for row in batches(made, number, per_file):
                data = row.tobytes()
                file.write(CONTROL.pack(CONTROL_START, len(data), adler32(data)) + data)
            file.write(EOF_RECORD)
        number += per_file * PER_BATCH
    print(f"{number - FIRST:,} messages in {file_id} files")


@dataclass
class Peaks:
    """The most that was seen, in bytes."""

    java: int = 0
    driver: int = 0
    workers: int = 0
    one_worker: int = 0
    scratch: int = 0
    began: float = field(default_factory=time.monotonic)

    def sample(self, root: psutil.Process, scratch: list[Path]) -> None:
        """Look once at all processes below *root*, and at the files in *scratch*."""
        java = driver = workers = 0
        for process in [root, *root.children(recursive=True)]:
            try:
                size, words = process.memory_info().rss, process.cmdline()
            except psutil.Error:
                continue
            if words and Path(words[0]).name == "java":
                java += size
            elif any("pyspark.daemon" in word or "pyspark.sql.worker" in word for word in words):
                workers += size
                self.one_worker = max(self.one_worker, size)
            else:
                driver += size
        self.java, self.driver = max(self.java, java), max(self.driver, driver)
        self.workers = max(self.workers, workers)
        self.scratch = max(self.scratch, sum(map(size_of, scratch)))

    def text(self) -> str:
        """Return all of it in a line."""
        mebibytes = {
            "java": self.java, "python driver": self.driver, "python workers": self.workers,
            "largest worker": self.one_worker, "scratch": self.scratch,
        }  # fmt: skip
        told = ", ".join(f"{name} {size // MEBIBYTE} MiB" for name, size in mebibytes.items())
        return f"{time.monotonic() - self.began:.0f} s; at most: {told}"


def size_of(folder: Path) -> int:
    """Return how much the files below *folder* take on the disk."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


def measure(command: list[str], scratch: list[Path]) -> int:
    """Run *command*, print its peaks, and return its exit code."""
    peaks = Peaks()
    process = subprocess.Popen(command)
    root = psutil.Process(process.pid)
    while process.poll() is None:
        peaks.sample(root, scratch)
        time.sleep(SAMPLE_SECONDS)
    print(peaks.text())
    return process.returncode


def main() -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    maker = verbs.add_parser("make")
    maker.add_argument("directory", type=Path)
    maker.add_argument("--gigabytes", type=float, default=5.0)
    measurer = verbs.add_parser("measure")
    measurer.add_argument("--scratch", type=Path, action="append", default=[])
    measurer.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    if asked.verb == "make":
        make(asked.directory, asked.gigabytes)
        return 0
    return measure(asked.command, asked.scratch)


if __name__ == "__main__":
    sys.exit(main())
