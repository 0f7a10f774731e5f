"""Memory of a broker with a long stream, and how fast its history is read from the disk."""

import socket
import time
from collections.abc import Iterator, Mapping

from aims_common import SECONDS_MAX, Figure, Settings, memory
from others import OURS, start

from lockkeeper.protocols.rocketmq.codec import BINARY, Command, decode, encode
from lockkeeper.protocols.rocketmq.codes import Request
from lockkeeper.protocols.rocketmq.frames import FrameBuffer
from lockkeeper.protocols.rocketmq.messages import InBatch, encode_batch

MEGABYTE = 1e6
STREAM, PARTITION = "AIM", 0
BODY = bytes(1024)
IN_A_BATCH = 2_000
SENT_AT_ONCE = 4
READ_AT_ONCE = 64
PULLED = 32
FRAME_BYTES_MAX = 16 << 20
MEMORY_MOST = 100.0
READ_LEAST = 200.0


class Wire:
    """A client of RocketMQ's protocol that says several things before it looks at the answers."""

    def __init__(self, url: str) -> None:
        host, _, port = url.rpartition("/")[2].partition(":")
        self._socket = socket.create_connection((host, int(port)), SECONDS_MAX)
        self._buffer = FrameBuffer(FRAME_BYTES_MAX)

    def say(self, requests: list[Command]) -> None:
        """Send requests in one piece."""
        self._socket.sendall(b"".join(encode(each) for each in requests))

    def answer(self) -> Command:
        """Return the next answer. Raises RuntimeError if it is a refusal."""
        while (frame := self._buffer.take_frame()) is None:
            self._buffer.feed(self._socket.recv(1 << 20))
        found = decode(frame)
        if found.code:
            raise RuntimeError(f"refused with {found.code}: {found.remark}")
        return found

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def measure(settings: Settings) -> Iterator[Figure]:
    """Fill a partition with messages of 1 KB; start with it; read it from end to end."""
    with_streams = start(OURS, settings.directory / "lockkeeper", streams=True)
    try:
        running = with_streams.running
        wire = Wire(with_streams.stream_url)
        yield Figure("sent", _fill(wire, settings.count), "messages/s")
        process = running.process.pid
        yield Figure("memory with all that were sent", memory(process) / MEGABYTE, "MB")
        yield Figure("at most", memory(process, "VmHWM") / MEGABYTE, "MB")
        wire.close()
        running.stop()
        began = time.monotonic()
        running.start()
        process = running.process.pid
        yield Figure("started with them", time.monotonic() - began, "s")
        yield Figure("memory then", memory(process) / MEGABYTE, "MB", MEMORY_MOST)
        wire = Wire(with_streams.stream_url)
        yield Figure("read", _read(wire, settings.count) / MEGABYTE, "MB/s", least=READ_LEAST)
        yield Figure("memory after that", memory(process) / MEGABYTE, "MB", MEMORY_MOST)
        yield Figure("at most, until then", memory(process, "VmHWM") / MEGABYTE, "MB")
        wire.close()
    finally:
        with_streams.running.stop()


def _request(code: Request, fields: Mapping[str, object], body: bytes = b"") -> Command:
    texts = {name: str(value) for name, value in fields.items()}
    return Command(code, fields=texts, body=body, encoding=BINARY)


def _fill(wire: Wire, count: int) -> float:
    """Send so many messages in batches; return how many a second."""
    wire.say([_request(Request.UPDATE_AND_CREATE_TOPIC, {
        "topic": STREAM, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6,
        "defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG",
    })])  # fmt: skip
    wire.answer()
    batch = encode_batch([InBatch(BODY, {})] * IN_A_BATCH)
    fields = {"a": "P", "b": STREAM, "c": "TBW102", "d": 1, "e": PARTITION, "m": "true"}
    send = _request(Request.SEND_BATCH_MESSAGE, fields, batch)
    began = time.monotonic()
    for _ in range(0, count, IN_A_BATCH * SENT_AT_ONCE):
        wire.say([send] * SENT_AT_ONCE)
        for _ in range(SENT_AT_ONCE):
            wire.answer()
    return count / (time.monotonic() - began)


def _read(wire: Wire, count: int) -> float:
    """Read messages from the first on; return bytes a second, as they are on the wire."""
    read, began = 0, time.monotonic()
    for first in range(0, count, PULLED * READ_AT_ONCE):
        offsets = range(first, min(first + PULLED * READ_AT_ONCE, count), PULLED)
        wire.say([_pull(offset) for offset in offsets])
        for offset in offsets:
            told = wire.answer()
            # Whoever came too short would be told of an offset behind what was asked for.
            if told.fields["nextBeginOffset"] != str(min(offset + PULLED, count)):
                raise RuntimeError(f"read from {offset} to {told.fields['nextBeginOffset']}")
            read += len(told.body)
    return read / (time.monotonic() - began)


def _pull(offset: int) -> Command:
    return _request(
        Request.PULL_MESSAGE,
        {"consumerGroup": "G", "topic": STREAM, "queueId": PARTITION, "queueOffset": offset,
         "maxMsgNums": PULLED, "sysFlag": 4, "subscription": "*"},
    )  # fmt: skip
