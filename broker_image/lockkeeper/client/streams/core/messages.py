"""Messages as applications send and receive them."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final

from lockkeeper.client.streams.core.names import (
    DELAY_LEVEL,
    DELIVER_AT,
    KEYS,
    ORIGINAL_STREAM,
    OWN,
    RETRY_PREFIX,
    TAGS,
    UNIQUE_KEY,
)
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.errors import UnreadableBodyError
from lockkeeper.protocols.rocketmq.errors import ProtocolError
from lockkeeper.protocols.rocketmq.messages import (
    COMPRESSED,
    NAME_END,
    PROPERTIES_BYTES_MAX,
    VALUE_END,
    Stored,
    decode_stored,
    encode_properties,
    message_id,
)

BODY_BYTES_MAX: Final = 64 << 20
"""How long a compressed body may be in the end."""
_COMPRESSION: Final = 7 << 8
_ZLIB: Final = (0, 3 << 8)
_SIZE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Message:
    """A message to be sent.

    Text is sent in UTF-8. It has one `tag` at most, and any number of `keys` by which it is found.
    `delay_level` is one of the broker's levels, from 1; `deliver_at` a time of its own.
    """

    body: bytes | str
    tag: str | None = None
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    delay_level: int = 0
    deliver_at: datetime | None = None

    @property
    def is_delayed(self) -> bool:
        """Tell whether it is to come later."""
        return self.delay_level > 0 or self.deliver_at is not None

    def content(self) -> bytes:
        """Return the body as bytes."""
        return self.body.encode() if isinstance(self.body, str) else bytes(self.body)

    def written(self, unique_id: str) -> dict[str, str]:
        """Return its properties as RocketMQ has them. Raises ValueError, which names the part."""
        found = {UNIQUE_KEY: unique_id, "WAIT": "true"}
        for name, value in self.properties.items():
            if name in OWN:
                raise ValueError(f"the property {name} is RocketMQ's own; call yours another name")
            found[_checked(name, "the name of a property")] = _checked(value, f"property {name}")
        if self.tag is not None:
            if "|" in self.tag or self.tag != self.tag.strip():
                raise ValueError(f"the tag {self.tag!r} has a '|' in it, or blanks around it")
            found[TAGS] = _checked(self.tag, "the tag")
        if self.keys:
            if isinstance(self.keys, str):
                raise ValueError("keys are a list of texts, even when there is one")
            if any(not key or " " in key for key in self.keys):
                raise ValueError(f"a key among {list(self.keys)} is empty or has a blank in it")
            found[KEYS] = _checked(" ".join(self.keys), "keys")
        if self.delay_level:
            found[DELAY_LEVEL] = str(self.delay_level)
        if self.deliver_at is not None:
            found[DELIVER_AT] = str(milliseconds(self.deliver_at))
        size = len(encode_properties(found))
        if size > PROPERTIES_BYTES_MAX:
            raise ValueError(f"properties of {size} bytes; there may be {PROPERTIES_BYTES_MAX}")
        return found


def _checked(text: str, what: str) -> str:
    if not isinstance(text, str) or not text:
        raise ValueError(f"{what} is no text, or an empty one: {text!r}")
    if NAME_END in text or VALUE_END in text:
        raise ValueError(f"{what} has one of the characters 1 and 2 in it, which divide properties")
    return text


def milliseconds(time: datetime) -> int:
    """Return a time in ms since the epoch. Raises ValueError for one without a time zone."""
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone: datetime.now().astimezone() has one")
    return int(time.timestamp() * 1000)


class SendStatus(Enum):
    """Degrees of how safe a message is; with Lockkeeper it is on the disk whenever a send returns.

    A RocketMQ that flushes and copies synchronously may answer before it has.
    """

    OK = 0
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12


@dataclass(frozen=True, slots=True)
class Sent:
    """Place of a message that was sent.

    `message_id` tells where it is stored, `unique_id` came with it and is the same if it was sent
    twice. A delayed message has an offset of the stream that it waits in.
    """

    partition: Partition
    offset: int
    message_id: str
    unique_id: str
    status: SendStatus = SendStatus.OK


class ReceivedMessage:
    """A message of a stream; times are in ms since the epoch.

    `stream` is the one that it was sent to, also when it comes again. `reconsumed` counts how often
    its group gave it back. `size` are the bytes of its body as it came.
    """

    __slots__ = ("_body", "_stored", "partition", "reconsumed")

    def __init__(self, stored: Stored, partition: Partition) -> None:
        self._stored = stored
        self._body: bytes | None = None
        self.partition = partition
        self.reconsumed = stored.reconsumed

    def __repr__(self) -> str:
        """Return its place."""
        return f"<ReceivedMessage {self.partition} offset {self.offset}>"

    @property
    def stream(self) -> str:
        """The stream that it was sent to."""
        topic = self.partition.stream
        if topic.startswith(RETRY_PREFIX):
            return self._stored.properties.get(ORIGINAL_STREAM, topic)
        return topic

    @property
    def offset(self) -> int:
        """The offset within its partition."""
        return self._stored.offset

    @property
    def body(self) -> bytes:
        """The body. Raises UnreadableBodyError."""
        if self._body is None:
            stored = self._stored
            is_compressed = stored.system_flag & COMPRESSED
            self._body = _inflated(stored) if is_compressed else stored.body
        return self._body

    @property
    def text(self) -> str:
        """The body as text in UTF-8. Raises UnicodeDecodeError."""
        return self.body.decode()

    @property
    def size(self) -> int:
        """Bytes of the body as it came."""
        return len(self._stored.body)

    @property
    def properties(self) -> dict[str, str]:
        """The properties that its producer gave it."""
        return {name: value for name, value in self.headers.items() if name not in OWN}

    @property
    def headers(self) -> dict[str, str]:
        """All properties, with those of clients and brokers."""
        return self._stored.properties

    @property
    def tag(self) -> str | None:
        """The tag."""
        return self.headers.get(TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys."""
        return self.headers.get(KEYS, "").split()

    @property
    def unique_id(self) -> str:
        """The id that its producer gave it."""
        return self.headers.get(UNIQUE_KEY, self.message_id)

    @property
    def message_id(self) -> str:
        """The id by which tools find it: where it is stored."""
        return message_id(self._stored.stored_host, self._stored.place)

    @property
    def place(self) -> int:
        """The place where its broker stores it."""
        return self._stored.place

    @property
    def born_at(self) -> int:
        """Time of sending."""
        return self._stored.born_at

    @property
    def stored_at(self) -> int:
        """Time of storing."""
        return self._stored.stored_at

    @property
    def flag(self) -> int:
        """A number that its producer gave it."""
        return self._stored.flag


def _inflated(stored: Stored) -> bytes:
    if stored.system_flag & _COMPRESSION not in _ZLIB:
        raise UnreadableBodyError(
            "the body is compressed by LZ4 or zstd: have its producer use zlib "
            "(rocketmq.message.compressType=ZLIB)"
        )
    inflating = zlib.decompressobj()
    try:
        body = inflating.decompress(stored.body, BODY_BYTES_MAX)
    except zlib.error as wrong:
        raise UnreadableBodyError(f"the body is compressed, and damaged: {wrong}") from wrong
    if not inflating.eof:
        raise UnreadableBodyError(f"the body is cut short, or longer than {BODY_BYTES_MAX} bytes")
    return body


def read_messages(body: bytes, broker: str) -> list[ReceivedMessage]:
    """Return the messages that an answer of a broker brings. Raises ProtocolError."""
    found = []
    position = 0
    while position < len(body):
        size = int.from_bytes(body[position : position + _SIZE_BYTES], "big")
        if size < _SIZE_BYTES or position + size > len(body):
            raise ProtocolError(f"a message of {size} bytes in an answer of {len(body)}")
        stored = decode_stored(body[position : position + size])
        found.append(ReceivedMessage(stored, Partition(stored.topic, broker, stored.queue)))
        position += size
    return found
