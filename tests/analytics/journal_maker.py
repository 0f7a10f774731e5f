"""Journals made by hand, record by record, with known times: what reports are checked against."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockkeeper.journal.batch import EOF_SIZE, build_batch
from lockkeeper.journal.compacted import (
    Compaction,
    compaction_in,
    compaction_line,
    first_in,
)
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import (
    AddMessage,
    Commit,
    Record,
    RemoveMessage,
    Rollback,
    Trace,
)
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage, encode
from lockkeeper.message.primitives import encode_map
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

START = 1_795_000_000_000
"""The first moment of every journal made here, in ms since the epoch."""

ORDERS = queue("ORDERS")
PRODUCER = ProducerId("ID:maker-1:1", 1, 1)


def moment(milliseconds: int) -> datetime:
    """Return the time so many ms after START."""
    return datetime.fromtimestamp((START + milliseconds) / 1000, UTC)


def message_id(number: int) -> str:
    """Return the id of message *number*."""
    return f"{PRODUCER}:{number}"


def transaction(number: int) -> LocalTransactionId:
    """Return the id of transaction *number*."""
    return LocalTransactionId("ID:maker-1:1", number)


class JournalMaker:
    """Writes batches to data files; times are given in ms after START.

    Files are made *file_bytes* long, with zeros behind what is in them, as brokers do.
    """

    def __init__(self, directory: Path, file_bytes: int = 0) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.file_bytes = file_bytes
        self.file_id = 1
        self.waiting: list[bytes] = []

    @property
    def path(self) -> Path:
        """The file that is being written."""
        return self.directory / f"db-{self.file_id}.log"

    def record(self, record: Record) -> "JournalMaker":
        """Let *record* wait for the next batch."""
        self.waiting.append(encode_record(record))
        return self

    def add(
        self,
        number: int,
        at: int,
        destination: Destination = ORDERS,
        tx: LocalTransactionId | None = None,
        properties: dict[str, Any] | None = None,
        **fields: Any,
    ) -> "JournalMaker":
        """Add message *number*, sent a ms before it arrived *at*."""
        made = ActiveMQTextMessage(
            producer_id=PRODUCER,
            destination=destination,
            transaction_id=tx,
            message_id=MessageId(PRODUCER, number, number),
            persistent=True,
            timestamp=START + at - 1,
            content=fields.pop("content", b"\0\0\0\2hi"),
            marshalled_properties=encode_map(properties) if properties else None,
            broker_in_time=START + at,
            **fields,
        )
        frame = encode(made, 11)
        content = len(frame).to_bytes(4, "big") + frame
        return self.record(AddMessage(destination, message_id(number), content, transaction=tx))

    def remove(
        self,
        number: int,
        destination: Destination = ORDERS,
        tx: LocalTransactionId | None = None,
        subscription: str | None = None,
    ) -> "JournalMaker":
        """Acknowledge message *number*."""
        return self.record(
            RemoveMessage(destination, message_id(number), None, subscription, transaction=tx)
        )

    def commit(self, tx: LocalTransactionId) -> "JournalMaker":
        """Commit a transaction."""
        return self.record(Commit(tx))

    def rollback(self, tx: LocalTransactionId) -> "JournalMaker":
        """Roll a transaction back."""
        return self.record(Rollback(tx))

    def line(self, kind: str, at: int, **fields: Any) -> "JournalMaker":
        """Write a line of the flight recorder."""
        text = json.dumps({"t": kind, "at": START + at, **fields}, separators=(",", ":"))
        return self.record(Trace(f"lk1 {text}"))

    def clock(self, at: int) -> "JournalMaker":
        """Write a clock line."""
        return self.line("clock", at)

    def statistics(self, at: int, **figures: Any) -> "JournalMaker":
        """Write a statistics line for ORDERS; what is not given is 0."""
        names = ("enqueued", "dequeued", "dispatched", "redelivered", "expired", "deadLettered")
        counters = dict.fromkeys((*names, "neverWritten", "depth", "consumers"), 0)
        latency = {"le": [0, 1, 3, 7, 15], "n": figures.pop("latency", [0] * 5)}
        one = {**counters, **figures, "latency": latency}
        return self.line("stats", at, broker="b", destinations={str(ORDERS): one})

    def flush(self) -> "JournalMaker":
        """Write what waits as one batch, over the end record of the last one."""
        data = self.path.read_bytes() if self.path.exists() else b""
        whole = data[: _end_of(data)] + build_batch(b"".join(self.waiting))
        self.path.write_bytes(whole.ljust(self.file_bytes, b"\0"))
        self.waiting.clear()
        return self

    def compact(self, number: int) -> "JournalMaker":
        """Leave of file *number* what waits, as a broker does with what is still needed."""
        path = self.directory / f"db-{number}.log"
        whole = path.read_bytes()
        before = compaction_in(whole) or Compaction(len(whole), first_in(whole), _end_of(whole))
        line = build_batch(encode_record(Trace(compaction_line(before))))[:-EOF_SIZE]
        path.write_bytes(line + build_batch(b"".join(self.waiting)))
        self.waiting.clear()
        return self

    def roll(self) -> "JournalMaker":
        """Begin the next file."""
        self.file_id += 1
        return self


def _end_of(data: bytes) -> int:
    """Return where the last batch of a file ends: an end record and zeros are behind it."""
    return max(len(data.rstrip(b"\0")) - EOF_SIZE, 0)


def rows_of(directory: Path, **options: str) -> list[dict[str, Any]]:
    """Return the rows of a journal as the data source makes them, without Spark."""
    checked = parse_options({"path": str(directory), **options})
    batches = list(TABLES[checked.table].batches(checked))
    return pa.Table.from_batches(batches).to_pylist() if batches else []
