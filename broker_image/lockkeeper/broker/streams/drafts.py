"""Messages of streams: drafts that producers send, and the OpenWire bytes that the journal holds.

In the journal a message of a stream is an ordinary bytes message, so that ActiveMQ can serve it:
its properties are text properties, its key is `LANE:stored at:tag hash:offset`, where the lane is
that of its partition. So the key alone tells what the index of a segment holds.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lockkeeper.broker.streams.java_hash import java_hash
from lockkeeper.broker.streams.originals import BODY, placed, plain_body, text_of
from lockkeeper.keeping import kept_while_short
from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.layout import Lead
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value, decode_map, encode_map
from lockkeeper.message.reader import MessageReader
from lockkeeper.message.segments import KEY_PREFIX, LANE_BYTES
from lockkeeper.message.text import decode_text, encode_text
from lockkeeper.store.segment import key_hash_of

TAGS, KEYS, UNIQUE_KEY = "TAGS", "KEYS", "UNIQ_KEY"
"""Names of properties with a meaning: the tag, keys with spaces between, the unique id."""
_FLAG, _SYSTEM_FLAG = "lockkeeperFlag", "lockkeeperSystemFlag"
_BORN_HOST = "lockkeeperBornHost"
RESERVED: Final = (_FLAG, _SYSTEM_FLAG, _BORN_HOST)
"""Names of properties by which a message keeps what its producer said beside them."""
_HIDDEN_NAMES: Final = tuple(map(encode_text, RESERVED))
_HIDDEN: Final = frozenset(_HIDDEN_NAMES)

_LONG: Final = struct.Struct(">q")
_LONGS: Final = struct.Struct(">qq")
_LENGTH: Final = struct.Struct(">i")
# Type byte of a bytes message, command id, no response wanted.
_OPENING: Final = b"\x18" + bytes(5)
# A producer id as a nested object, up to its lane.
_PRODUCER: Final = b"\x01\x7b\x01" + LANE_BYTES.to_bytes(2, "big")
_LEAD: Final = _OPENING + _PRODUCER
_LEAD_BYTES: Final = len(_LEAD) + LANE_BYTES + 16
# No transaction, no original destination; a message id without a text.
_MESSAGE_ID: Final = b"\x00\x00\x01\x6e\x00" + _PRODUCER
_MESSAGE_ID_BYTES: Final = len(_MESSAGE_ID) + LANE_BYTES
# No original transaction, group, group sequence, correlation id; persistent; it never expires;
# priority 4; no reply.
_FLAGS: Final = bytes(7) + b"\x01" + bytes(8) + b"\x04\x00"
# No type.
_CONTENT: Final = b"\x00\x01"
# No data structure, target consumer, compression.
_AFTER_PROPERTIES: Final = bytes(3)
# No broker path, arrival, user id, rest of flags, cluster.
_BEFORE_TIMES: Final = bytes(13)
# It has not left the broker, and is not the first of a group.
_ENDING: Final = bytes(9)
_SHORT: Final = struct.Struct(">H").pack
_SHORT_BYTES_MAX: Final = 8_000
_NUMBER_DIGITS_MAX: Final = 20
_NUMBER_END: Final = 1 << 31
# The type byte of a short text.
_TEXT: Final = 9
# The message id's producer has two numbers, then come its own two.
_IDS_BYTES: Final = 32


@dataclass(slots=True)
class Draft:
    """A message as its producer sent it, or as a reader sees it.

    `properties` are texts by name; the core looks at TAGS, KEYS and UNIQ_KEY there. `flag` is the
    application's, `system_flag` the protocol's own and opaque here. `born_at` is in ms since the
    epoch, `born_host` an address such as `10.0.0.7:40112`. `reconsumed` counts how often a group
    gave it back. An `original` of JMS stays what it is, and the rest is for the index.
    """

    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    system_flag: int = 0
    born_at: int = 0
    born_host: str = ""
    reconsumed: int = 0
    original: Message | None = None

    @property
    def tags(self) -> str:
        """The tag; empty without one."""
        return self.properties.get(TAGS, "")

    @property
    def keys(self) -> list[str]:
        """The keys by which the message can be found, its unique id the first of them."""
        keys = self.properties.get(KEYS, "").split(" ")
        return [key for key in (self.properties.get(UNIQUE_KEY, ""), *keys) if key]


class StreamRecord(NamedTuple):
    """A message as a partition holds it.

    `stored_at` is in ms since the epoch, `location` where its record is (unique in the broker),
    `size` that of the record in bytes. `frame` are its loose OpenWire bytes; `draft` reads them.
    """

    offset: int
    stored_at: int
    location: int
    size: int
    frame: bytes

    @property
    def draft(self) -> Draft:
        """The message as its producer sent it. Raises MalformedMessageError."""
        return read_draft(self.frame)


@kept_while_short(4096)
def tag_hash_of(tags: str) -> int:
    """Return the hash of a tag: that of Java's String.hashCode, 32 bits with a sign; 0 without."""
    return java_hash(tags)


def compose(
    draft: Draft,
    stream: Destination,
    lane: bytes,
    offset: int,
    stored_at: int,
    sequence: int,
    tag_hash: int,
) -> Message:
    """Return a draft as the message of *stream* that gets *offset* in the partition of *lane*.

    *sequence* becomes its brokerSequenceId; *stored_at* is in ms since the epoch, *tag_hash* what
    `tag_hash_of` says. Raises ValueError for a text that no message can hold.
    """
    if draft.original is not None:
        producer_id = ProducerId(decode_text(lane), tag_hash, stored_at)
        return placed(draft.original, draft.properties, producer_id, stream, offset, sequence)
    producer = lane + _LONGS.pack(tag_hash, stored_at)
    wire = stream.wire
    sequence_at = _LEAD_BYTES + len(wire) + _MESSAGE_ID_BYTES + 16
    flags_at = sequence_at + 16 + 7
    properties = _encoded_texts(_written_properties(draft))
    body = b"".join(
        (
            _LEAD,
            producer,
            wire,
            _MESSAGE_ID,
            producer,
            _LONGS.pack(offset, sequence),
            _FLAGS,
            _LONG.pack(draft.born_at),
            _CONTENT,
            _LENGTH.pack(len(draft.body)),
            draft.body,
            b"\x01",
            _LENGTH.pack(len(properties)),
            properties,
            _AFTER_PROPERTIES,
            _LENGTH.pack(draft.reconsumed),
            _BEFORE_TIMES,
            _LONG.pack(stored_at),
            _ENDING,
        )
    )
    key = b"%b:%d:%d:" % (lane, stored_at, tag_hash)
    lead = Lead(stream, None, key, None, sequence_at, flags_at)
    return Message(body, lead, sequence, flags_at, 0)


def _written_properties(draft: Draft) -> dict[str, str]:
    properties = dict(draft.properties)
    if draft.flag:
        properties[_FLAG] = str(draft.flag)
    if draft.system_flag:
        properties[_SYSTEM_FLAG] = str(draft.system_flag)
    if draft.born_host:
        properties[_BORN_HOST] = draft.born_host
    return properties


def _encoded_texts(properties: dict[str, str]) -> bytes:
    """Return what `encode_map` does, as quickly as short texts allow."""
    parts = [len(properties).to_bytes(4, "big")]
    for name, value in properties.items():
        key, text = encode_text(name), encode_text(value)
        if len(key) > _SHORT_BYTES_MAX or len(text) > _SHORT_BYTES_MAX:
            return encode_map(properties)
        parts.append(b"%b%b\x09%b%b" % (_SHORT(len(key)), key, _SHORT(len(text)), text))
    return b"".join(parts)


def _decoded_texts(data: bytes) -> Mapping[str, Value]:
    """Return what `decode_map` does, as quickly as short texts allow."""
    try:
        texts = _plain_texts(data)
        if texts is not None:
            return {decode_text(name): decode_text(text) for name, text in texts.items()}
    except (IndexError, ValueError):
        pass
    return decode_map(data)[0] or {}


class Parts:
    """Places of what a frame of `compose` holds: body and properties from one to another."""

    __slots__ = ("body", "born_at", "properties", "reconsumed")

    def __init__(self, frame: bytes) -> None:
        """Raises MalformedMessageError when the frame is laid out in another way."""
        at = _LEAD_BYTES
        try:
            at += 5 + int.from_bytes(frame[at + 3 : at + 5], "big")
            at += _MESSAGE_ID_BYTES + _IDS_BYTES
            times = at + len(_FLAGS)
            content = times + 8 + len(_CONTENT)
            if not (
                frame.startswith(_LEAD)
                and frame[at:times] == _FLAGS
                and frame[times + 8 : content] == _CONTENT
            ):
                raise MalformedMessageError("the message is laid out in another way")
            (self.born_at,) = _LONG.unpack_from(frame, times)
            start = content + 4
            end = start + _LENGTH.unpack_from(frame, content)[0]
            self.body = slice(start, end)
            start = end + 5
            end = start + _LENGTH.unpack_from(frame, start - 4)[0]
            self.properties = slice(start, end)
            (self.reconsumed,) = _LENGTH.unpack_from(frame, end + len(_AFTER_PROPERTIES))
        except (IndexError, struct.error) as error:
            raise MalformedMessageError(f"the message is cut short: {error}") from error


def read_draft(frame: bytes) -> Draft:
    """Return the message that *frame* holds, whoever wrote it. Raises MalformedMessageError."""
    try:
        parts = Parts(frame)
    except MalformedMessageError:
        return _read_any(frame)
    properties = _decoded_texts(frame[parts.properties])
    return _draft(frame[parts.body], properties, parts.born_at, parts.reconsumed)


class Plain(NamedTuple):
    """A draft whose texts are as the journal holds them, in modified UTF-8: nothing is decoded."""

    body: bytes
    properties: dict[bytes, bytes]
    flag: int
    system_flag: int
    born_at: int
    born_host: str
    reconsumed: int


def read_plain(frame: bytes) -> Plain | None:
    """Return what `read_draft` does, with texts in bytes; None for what only that can read."""
    try:
        parts = Parts(frame)
        texts = _plain_texts(frame[parts.properties])
    except (MalformedMessageError, IndexError):
        return None
    if texts is None:
        return None
    flag, system_flag, born_host = 0, 0, ""
    if not _HIDDEN.isdisjoint(texts):
        told = [texts.pop(name, b"").decode("latin-1") for name in _HIDDEN_NAMES]
        flag, system_flag, born_host = _number(told[0]), _number(told[1]), told[2]
    times = parts.born_at, born_host, parts.reconsumed
    return Plain(frame[parts.body], texts, flag, system_flag, *times)


def _plain_texts(data: bytes) -> dict[bytes, bytes] | None:
    """Return texts by their names; None where a value is something else. Raises IndexError."""
    at, texts = 4, {}
    for _ in range(int.from_bytes(data[:4], "big")):
        tag = at + 2 + (data[at] << 8 | data[at + 1])
        start = tag + 3
        end = start + (data[tag + 1] << 8 | data[tag + 2])
        if data[tag] != _TEXT or end > len(data):
            return None
        texts[data[at + 2 : tag]] = data[start:end]
        at = end
    return texts


def _read_any(frame: bytes) -> Draft:
    """Return the draft of a message that something else has written anew."""
    fields, _ = openwire.decode(frame)
    if not isinstance(fields, openwire.Message):
        raise MalformedMessageError(f"{type(fields).__name__} where a message must be")
    marshalled = fields.marshalled_properties
    properties = (decode_map(marshalled)[0] or {}) if marshalled else {}
    body, kind = plain_body(frame[0], fields)
    if kind:
        properties[BODY] = kind
    return _draft(body, properties, fields.timestamp, fields.redelivery_counter)


def _draft(body: bytes, properties: Mapping[str, Value], born_at: int, reconsumed: int) -> Draft:
    texts = {name: text_of(value) for name, value in properties.items()}
    flag, system_flag = texts.pop(_FLAG, "0"), texts.pop(_SYSTEM_FLAG, "0")
    born_host = texts.pop(_BORN_HOST, "")
    numbers = (_number(flag), _number(system_flag))
    return Draft(body, texts, *numbers, born_at, born_host, reconsumed)


def _number(text: str) -> int:
    """Return a number of 32 bits, 0 without a text or for one that is somebody else's."""
    if not text:
        return 0
    try:
        value = int(text) if len(text) < _NUMBER_DIGITS_MAX else 0
    except ValueError:
        return 0
    return value if -_NUMBER_END <= value < _NUMBER_END else 0


def key_hashes(drafts: Sequence[Draft], first: int) -> list[tuple[int, int]]:
    """Return the hashes of all keys, each with its message's offset, counted from *first*."""
    return [
        (key_hash_of(encode_text(key)), first + index)
        for index, draft in enumerate(drafts)
        for key in draft.keys
    ]


def offset_of(frame: bytes) -> int | None:
    """Return the offset of a message of a stream, None for another message."""
    at = _LEAD_BYTES
    if not frame.startswith(_LEAD):
        message = MessageReader().trust(frame, 0, len(frame), 0)
        return message.number if message.lead.producer.startswith(KEY_PREFIX) else None
    at += 5 + int.from_bytes(frame[at + 3 : at + 5], "big") + _MESSAGE_ID_BYTES + 16
    return int.from_bytes(frame[at : at + 8], "big")
