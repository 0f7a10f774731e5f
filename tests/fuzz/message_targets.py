"""Targets: structures and messages as they come over the wire."""

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from fuzzer import Target, WrongError
from mutations import Words, mutated
from recordings import frames
from structures import encodings, properties

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.message_properties import property_lookup
from lockkeeper.broker.scheduling.job import read_job
from lockkeeper.message import openwire
from lockkeeper.message.bodies import MessageType, decode_body, encode_body
from lockkeeper.message.copying import MessageCopier
from lockkeeper.message.destination import queue
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.layout import MESSAGE_TYPES
from lockkeeper.message.openwire import VERSION_MAX, codec_for
from lockkeeper.message.primitives import (
    decode_list,
    decode_map,
    decode_value,
    encode_list,
    encode_map,
    encode_value,
)
from lockkeeper.message.reader import MessageReader
from lockkeeper.message.rewrite import decoded, encoded, properties_of
from lockkeeper.protocols.openwire.codec import agree, offer
from lockkeeper.protocols.openwire.errors import ProtocolError
from lockkeeper.protocols.settings import ListenerSettings

INFLATED_BYTES_MAX = 1 << 20
MALFORMED = (MalformedMessageError,)
WORDS: Words = (
    b"\x01\x00\x00", b"\x00", b"\x01", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xc0\x80",
    b"\xed\xa0\x80", b"\x0b\x00\x00\x00\x01\x00\x00", b"\x0c\x00\x00\x00\x01", bytes(64),
)  # fmt: skip


def targets() -> list[Target]:
    """Return all of this theme."""
    return [
        Target("structures", _from(encodings()), _read_structure, MALFORMED, 8),
        Target("handshake", _from(_handshakes()), _shake_hands, (*MALFORMED, ProtocolError)),
        Target("messages", _from(_messages()), _read_message, MALFORMED, 4),
        Target("bodies", _from(_bodies()), _read_body, MALFORMED, 2, megabytes=32),
        Target("properties", _from(_primitives()), _read_primitives, MALFORMED, 3),
    ]


def _from(corpus: Sequence[bytes]) -> Callable[[Random], bytes]:
    return partial(mutated, corpus=corpus, words=WORDS)


def _read_structure(data: bytes) -> None:
    """Read a structure; what it was read as can be written, and read as the same again."""
    version = 1 + (data[0] - 1) % VERSION_MAX if data else 1
    codec = codec_for(version)
    structure, end = codec.decode(data, 1)
    if end > len(data):
        raise WrongError(f"read until {end} of {len(data)} bytes")
    written = codec.encode(structure)
    again, _ = codec.decode(written)
    if codec.encode(again) != written:
        raise WrongError(f"{structure} is {again} when written and read again")


def _handshakes() -> list[bytes]:
    found = [each for side in ("c2s", "s2c") for each in frames(side) if each[0] == 1]
    return [*found, openwire.encode(offer(ListenerSettings()))]


def _shake_hands(data: bytes) -> None:
    peer, _ = openwire.decode(data)
    if isinstance(peer, openwire.WireFormatInfo):
        agreed = agree(ListenerSettings(), peer)
        if agreed.inactivity_duration < 0 or not 1 <= agreed.codec.version <= VERSION_MAX:
            raise WrongError(f"agreed on {agreed}")


def _messages() -> list[bytes]:
    """Return messages of version 12 as they lie in frames."""
    recorded = [each for each in frames("c2s") if each[0] in MESSAGE_TYPES]
    made = [each[1:] for each in encodings() if each[0] >= 10 and each[1] in MESSAGE_TYPES]
    return [*recorded, *made]


_copier = MessageCopier(queue("COPIES"), queue("B"), queue("C"))


def _read_message(data: bytes) -> None:
    """Read a message as the core does when it comes in, and later on."""
    message = MessageReader().receive(data, 0, len(data), 5, bytes(8))
    for read in (str, repr):
        read(message.destination)
    assert isinstance(message.key, bytes)
    copy = _copier.copy(message, 6)
    lookup = property_lookup(copy)
    for name in ("JMSMessageID", "JMSXGroupID", "JMSDestination", "a"):
        lookup(name)
    fields = decoded(message)
    encoded(fields, 7)
    properties_of(fields)
    try:
        read_job(message)
    except BrokerError:
        return


def _bodies() -> list[bytes]:
    """Return bodies behind the byte of their type, and whether they are compressed."""
    told: dict[MessageType, Any] = {
        MessageType.TEXT: "grün", MessageType.BYTES: b"\0\1", MessageType.MAP: properties(),
        MessageType.STREAM: list(properties().values())[:10], MessageType.OBJECT: b"\xac\xed",
    }  # fmt: skip
    found = []
    for kind, body in told.items():
        for compressed in (False, True):
            content = encode_body(kind, body, compressed) or b""
            found.append(bytes([kind, compressed]) + content)
    bomb = zlib.compress(bytes(8 << 20))
    for kind in (MessageType.TEXT, MessageType.MAP, MessageType.STREAM, MessageType.OBJECT):
        found.append(bytes([kind, 1]) + bomb)
    return [*found, bytes([MessageType.BYTES, 1]) + (8 << 20).to_bytes(4, "big") + bomb]


def _read_body(data: bytes) -> None:
    if len(data) >= 2:
        decode_body(data[0], data[2:], bool(data[1]), INFLATED_BYTES_MAX)


def _primitives() -> list[bytes]:
    deep: list[Any] = []
    for _ in range(14):
        deep = [deep]
    found = [b"m" + encode_map(properties()), b"l" + encode_list([1, "a", deep])]
    return [*found, *(b"v" + encode_value(each) for each in properties().values())]


def _read_primitives(data: bytes) -> None:
    """Read a map, a list or a value; it can be written again."""
    if data[:1] == b"m":
        encode_map(decode_map(data, 1)[0])
    elif data[:1] == b"l":
        encode_list(decode_list(data, 1)[0])
    else:
        encode_value(decode_value(data, 1)[0])
