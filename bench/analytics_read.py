"""How fast the tables of a journal are read, beside yardsticks in the same minutes.

The journal is made here: text messages of 450 bytes from a few producers for a few queues, each
acknowledged, in batches of 20, with the flight recorder's clock lines. The yardsticks are reading
the same files and checking their batches (what no reader can go below), walking their records in
pure Python, and pyarrow's parser over a file of JSON lines that holds the same facts. Everything
runs in one thread, in rounds whose order changes; the figures are medians.
"""

import argparse
import json
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.json as pj

HERE = Path(__file__).parent


from lockkeeper.journal.batch import build_batch  # noqa: E402
from lockkeeper.journal.encode import encode_record  # noqa: E402
from lockkeeper.journal.records import AddMessage, RemoveMessage, Trace  # noqa: E402
from lockkeeper.journal.walk import walk_batch  # noqa: E402
from lockkeeper.message.destination import queue  # noqa: E402
from lockkeeper.message.ids import MessageId, ProducerId  # noqa: E402
from lockkeeper.message.openwire import ActiveMQTextMessage, encode  # noqa: E402
from lockkeeper_analytics.reading.batches import read_chunks  # noqa: E402
from lockkeeper_analytics.tables import TABLES  # noqa: E402
from lockkeeper_analytics.tables.options import parse_options  # noqa: E402

START = 1_795_000_000_000
FILE_BYTES = 32 * 1024 * 1024
FEW = "kind,destination,message_id"
TIMED = f"{FEW},written_after,written_before,stored_at,message_bytes,offset,file_id"
"""Where, what, how big and when: nothing that stands inside a message."""


def make(directory: Path, files: int) -> int:
    """Write a journal of so many data files; return how many records it has."""
    directory.mkdir()
    producers = [
        ProducerId(f"ID:gate-{number}-40122-1795261934990-3:1", 1, 1) for number in range(4)
    ]
    places = [queue(f"DEPARTURES.GATE.{number}") for number in range(8)]
    content = b"x" * 150
    number = records = 0
    for file_id in range(1, files + 1):
        written, batches = 0, []
        while written < FILE_BYTES - 30_000:
            waiting = []
            for _ in range(20):
                number += 1
                producer, place = producers[number % 4], places[number % 8]
                identifier = MessageId(producer, number, number)
                frame = encode(
                    ActiveMQTextMessage(
                        producer_id=producer,
                        destination=place,
                        message_id=identifier,
                        persistent=True,
                        timestamp=START + number // 10,
                        content=len(content).to_bytes(4, "big") + content,
                        broker_in_time=START + number // 10,
                    ),
                    11,
                )
                whole = len(frame).to_bytes(4, "big") + frame
                waiting.append(encode_record(AddMessage(place, str(identifier), whole)))
                waiting.append(encode_record(RemoveMessage(place, str(identifier), None, None)))
            if number % 500 == 0:
                line = json.dumps({"t": "clock", "at": START + number // 10})
                waiting.append(encode_record(Trace(f"lk1 {line}")))
            records += len(waiting)
            batch = build_batch(b"".join(waiting))[:-5]
            batches.append(batch)
            written += len(batch)
        (directory / f"db-{file_id}.log").write_bytes(b"".join(batches) + b"-qMa4")
    return records


def table(directory: Path, columns: str) -> Callable[[], int]:
    """Return what reads the records and says how many there were."""

    def run() -> int:
        options = parse_options({"path": str(directory), "columns": columns})
        return sum(batch.num_rows for batch in TABLES["records"].batches(options))

    return run


def checked(directory: Path) -> Callable[[], int]:
    def run() -> int:
        return sum(
            len(chunk.batches) for path in directory.iterdir() for chunk in read_chunks(path)
        )

    return run


def walked(directory: Path) -> Callable[[], int]:
    def run() -> int:
        return sum(
            len(walk_batch(chunk.data, *batch))
            for path in directory.iterdir()
            for chunk in read_chunks(path)
            for batch in chunk.batches
        )

    return run


def as_json(directory: Path, target: Path) -> None:
    """Write the records with the timed columns as JSON lines, padded to the journal's length."""
    options = parse_options({"path": str(directory), "columns": TIMED})
    size = sum(path.stat().st_size for path in directory.iterdir())
    rows = [row for batch in TABLES["records"].batches(options) for row in batch.to_pylist()]
    lines = [json.dumps(row, default=str) for row in rows]
    left = max(0, size - sum(map(len, lines)) - len(lines)) // len(lines)
    filler = "x" * max(0, left - 14)
    target.write_text("".join(f'{line[:-1]}, "body": "{filler}"}}\n' for line in lines))


def parsed(path: Path) -> Callable[[], int]:
    def run() -> int:
        options = pj.ReadOptions(use_threads=False, block_size=4 * 1024 * 1024)
        return int(pj.read_json(path, options).num_rows)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=3, help="data files of 32 MB")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    with TemporaryDirectory(prefix="lockkeeper-bench-") as folder:
        directory, lines = Path(folder) / "journal", Path(folder) / "records.jsonl"
        records = make(directory, arguments.files)
        size = sum(path.stat().st_size for path in directory.iterdir())
        columns = TABLES["records"].default_columns
        table(directory, ",".join(columns))()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        as_json(directory, lines)
        runs = {
            "read and checked": checked(directory),
            "walked in Python": walked(directory),
            f"records: {FEW}": table(directory, FEW),
            "records: those and times, sizes, places": table(directory, TIMED),
            f"records: all {len(columns)} but bodies": table(directory, ",".join(columns)),
            "pyarrow.json, as many bytes": parsed(lines),
        }
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(arguments.rounds):
            for name in random.Random(number).sample(list(runs), len(runs)):
                began = time.process_time()
                runs[name]()
                seconds[name].append(time.process_time() - began)
        print(f"{size / 1e6:.0f} MB, {records:,} records, {size / records:.0f} bytes each")
        for name, several in seconds.items():
            middle = median(several)
            print(f"{name:42} {size / 1e6 / middle:7.0f} MB/s {records / middle:12,.0f} records/s")
    print(f"peak memory of reading all columns {memory:.0f} MiB")


if __name__ == "__main__":
    main()
