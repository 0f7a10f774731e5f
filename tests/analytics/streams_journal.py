"""Journals of streams as our broker's core writes them, with what it answers itself meanwhile."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "broker" / "streams"))

from streams_kit import DiskBench, taken

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.settings import Retention, StreamSettings
from lockkeeper.broker.streams.transactions import Outcome
from lockkeeper.message.bodies import MessageType, encode_body
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import ActiveMQMapMessage, ActiveMQTextMessage
from lockkeeper.message.primitives import encode_map
from lockkeeper.message.rewrite import encoded
from lockkeeper.store.base import WRITTEN, Reference
from lockkeeper.store.segment import Segment

NEWS = topic("news")
KEPT = queue("billing.work")


@dataclass
class Streams:
    """A journal, and what the broker that wrote it answered.

    `lags` are those of every group after each step, by the time of people in ms: messages that it
    had to consume of a stream. `written` are offsets in the order in which they were written, each
    with the time and the group. `sent` are messages by stream, partition and offset.
    """

    directory: Path
    bench: DiskBench
    client: Connection
    lags: dict[int, dict[tuple[str, str], int]] = field(default_factory=dict)
    written: list[tuple[str, str, int, int, int]] = field(default_factory=list)
    sent: dict[tuple[str, int, int], Draft] = field(default_factory=dict)

    def send(self, stream: str, partition: int, *drafts: Draft, **options: Any) -> None:
        """Send messages to a partition."""
        answer = self.bench.append(self.client, stream, *drafts, partition=partition, **options)
        if not options:
            for number, draft in enumerate(drafts):
                self.sent[stream, partition, answer.offset + number] = draft

    def commit(self, group: str, *places: tuple[str, int, int]) -> None:
        """Have a group go on, and that be written at once."""
        streams = self.bench.broker.streams
        for stream, partition, offset in places:
            streams.commit_offset(group, stream, partition, offset)
        if group in streams.groups._changed:
            streams.groups.write(group)
            self._note_written(group)

    def _note_written(self, group: str) -> None:
        found = self.bench.broker.streams.groups.find(group)
        assert found is not None
        self.written += [
            (group, *place, offset, self.bench.now)
            for place, offset in sorted(found.offsets.items())
        ]

    def step(self, seconds: int = 2) -> None:
        """Note what the groups have to consume now, and let time pass."""
        self.bench.settle()
        told: dict[tuple[str, str], int] = {}
        streams = self.bench.broker.streams
        for group in streams.groups:
            for lag in streams.queries.lag(group):
                key = group.name, lag.stream
                told[key] = told.get(key, 0) + lag.messages
        self.lags[self.bench.now] = told
        self.bench.now += 1000 * seconds
        self.clock()
        self.bench.tick()
        taken(self.client)

    def put(self, segment: Segment, message: Message) -> None:
        """Send a message to the queue of a segment, as somebody does at ActiveMQ."""
        reference = Reference(message, len(message.body))
        self.bench.store.add(segment.destination, reference, None)
        self.bench.settle()

    def take_out(self, segment: Segment, offset: int) -> Message | None:
        """Consume a message of a segment, as somebody does at ActiveMQ; None: it is gone."""
        entry, store = segment.entry(offset), self.bench.store
        if entry is None:
            return None
        taken_out = Reference(None, entry.size, entry.location, WRITTEN)
        store.load([taken_out], 1)
        store.remove(segment.destination, taken_out)
        self.bench.settle()
        segment.take_out(offset)
        return taken_out.loaded

    def clock(self) -> None:
        """Write what time it is, as the flight recorder does."""
        line = json.dumps({"t": "clock", "at": self.bench.now}, separators=(",", ":"))
        self.bench.store.trace(f"lk1 {line}")


def draft(number: int, size: int = 100) -> Draft:
    """Return one of the messages, each unlike the others."""
    properties = {
        "TAGS": f"t{number % 3}",
        "KEYS": f"k{number} all",
        "UNIQ_KEY": f"u{number}",
        "région": "é" * (number % 4),
    }
    body = (f"body {number} ".encode() * size)[:size]
    return Draft(body, properties, flag=number, born_at=1_000 + number, born_host="10.0.0.7:9")


def write_streams(directory: Path) -> Streams:
    """Write a journal in several files: retention, retries, deletions, a restart, and the rest."""
    directory.mkdir(parents=True)
    bench = DiskBench(directory, file_bytes_max=1 << 16)
    told = Streams(directory, bench, bench.connect())
    streams = bench.broker.streams
    streams.declare("orders", StreamSettings(3))
    streams.declare("log", StreamSettings(1, Retention(time=8_000)))
    streams.declare("gone", StreamSettings(1))
    streams.declare("press", StreamSettings(1, from_topics=(NEWS.name,)))
    told.send("orders", 0, *map(draft, range(40)))
    told.send("orders", 1, *map(draft, range(40, 45)))
    told.send("gone", 0, *map(draft, range(3)))
    told.commit("billing", ("orders", 0, 10))
    told.step()
    for number in range(8):
        told.send("log", 0, draft(number, 5_000))
        told.send("orders", 0, draft(100 + number))
        told.commit("billing", ("orders", 0, 12 + number), ("orders", 1, number % 5))
        told.commit("audit", ("log", 0, min(number, 2)), ("gone", 0, 1))
        told.step()
    bench.restart()
    told.client = bench.connect()
    _have_jms_send(told)
    _give_back(told)
    told.commit("short", ("orders", 0, 1))
    told.step()
    bench.broker.streams.groups.delete("short")
    bench.broker.streams.remove("gone")
    told._note_written("audit")
    told.step(5)
    _end_transactions(told)
    told.commit("billing", ("orders", 0, 48), ("%RETRY%billing", 0, 1))
    bench.broker.streams.groups.lock(told.client, "l", "billing", "me", [("orders", 1)])
    told._note_written("billing")
    told.step(1)
    return told


def write_one_anew(directory: Path, again: int) -> Streams:
    """Write a journal whose stream was removed and declared anew, and had messages *again*."""
    bench = DiskBench(directory)
    told = Streams(directory, bench, bench.connect())
    streams = bench.broker.streams
    streams.declare("orders", StreamSettings(1))
    told.send("orders", 0, *map(draft, range(6)))
    told.commit("billing", ("orders", 0, 2))
    told.step(60)
    streams.remove("orders")
    told.step(10)
    streams.declare("orders", StreamSettings(1))
    if again:
        told.send("orders", 0, *map(draft, range(again)))
    told.commit("billing", ("orders", 0, 0))
    told.step(5)
    told.step()
    return told


def _have_jms_send(told: Streams) -> None:
    """Send a text and a map to the topic, and a message to a queue."""
    bench, producer = told.bench, ProducerId("ID:shop-1", 1, 1)
    text = encode_body(MessageType.TEXT, "héadline")
    several = encode_body(MessageType.MAP, {"a": 1, "b": b"\x01"})
    made = [
        (ActiveMQTextMessage, NEWS, text, {"urgent": True, "count": 7}),
        (ActiveMQMapMessage, NEWS, several, {}),
        (ActiveMQTextMessage, KEPT, text, {}),
    ]
    for number, (kind, place, content, properties) in enumerate(made, 1):
        fields = kind(
            producer_id=producer,
            message_id=MessageId(producer, number),
            destination=place,
            content=content,
            persistent=True,
            timestamp=1_234,
            correlation_id="c1 c2",
            marshalled_properties=encode_map(properties),
        )
        message = encoded(fields, bench.broker.context.next_sequence())
        bench.broker.send(told.client, message, None)
    told.step()


def _give_back(told: Streams) -> None:
    """Give two messages back, one of which comes again, and have a third one die."""
    streams = told.bench.broker.streams
    for offset, level in ((3, 1), (4, 1), (5, -1)):
        streams.send_back(told.client, "b", "billing", "orders", 0, offset, level)
    told.step()
    told.step()


def _end_transactions(told: Streams) -> None:
    streams = told.bench.broker.streams
    for number, outcome in enumerate((Outcome.COMMIT, Outcome.ROLLBACK)):
        streams.begin_transaction(told.client, "h", "shop", "orders", 2, draft(200 + number))
        told.bench.settle()
        (half,) = taken(told.client)
        streams.end_transaction(told.client, "e", half.number, outcome)
        told.step()
