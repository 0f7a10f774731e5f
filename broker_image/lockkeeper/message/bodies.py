"""Message bodies: the `content` field of each message type as a Python value and back.

openwire.md section 5. Text is a str, bytes are bytes, a map is a dict, a stream a list of values,
an object the raw Java serialization as a JavaObject; None is a message without a body. Compressed
bodies are inflated up to a limit, because a peer controls how much a few bytes inflate to.
"""

import zlib
from collections.abc import Mapping
from enum import IntEnum
from struct import Struct
from typing import TypeAlias

from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.primitives import (
    Value,
    decode_map,
    decode_value,
    encode_map,
    encode_value,
)
from lockkeeper.message.text import decode_text, encode_text

INFLATED_BYTES_MAX = 100 * 1024 * 1024
_INT = Struct(">i")


class MessageType(IntEnum):
    """The message types by their OpenWire type byte."""

    MESSAGE = 23
    BYTES = 24
    MAP = 25
    OBJECT = 26
    STREAM = 27
    TEXT = 28
    BLOB = 29


class JavaObject(bytes):
    """The body of an object message: a Java object, serialized; nothing here reads it."""

    __slots__ = ()


Body: TypeAlias = str | bytes | Mapping[str, Value] | list[Value] | None


def decode_body(
    message_type: int,
    content: bytes | None,
    compressed: bool = False,
    inflated_bytes_max: int = INFLATED_BYTES_MAX,
) -> Body:
    """Return the body that *content* of a message of *message_type* (23 to 29) holds.

    Raises MalformedMessageError, also when it inflates to more than *inflated_bytes_max* bytes.
    """
    kind = _message_type(message_type)
    if content is None:
        return None
    if compressed:
        inflate = _inflate_bytes if kind is MessageType.BYTES else _inflate
        content = inflate(content, inflated_bytes_max)
    if kind is MessageType.TEXT:
        return _decode_text(content)
    if kind is MessageType.MAP:
        return decode_map(content)[0]
    if kind is MessageType.STREAM:
        return _decode_stream(content)
    return JavaObject(content) if kind is MessageType.OBJECT else content


def encode_body(message_type: int, body: Body, compressed: bool = False) -> bytes | None:
    """Return the content of a message of *message_type* that holds *body*.

    None stays None, compressed or not. Raises ValueError when the body has the wrong type.
    """
    kind = _message_type(message_type)
    if body is None:
        return None
    content = _encode_plain(kind, body)
    return compressed_content(kind, content) if compressed else content


def compressed_content(message_type: int, content: bytes) -> bytes:
    """Return the *content* of a message of *message_type* as one that is compressed has it."""
    kind, deflated = _message_type(message_type), zlib.compress(content)
    return _INT.pack(len(content)) + deflated if kind is MessageType.BYTES else deflated


def _encode_plain(kind: MessageType, body: Body) -> bytes:
    if kind in (MessageType.BYTES, MessageType.OBJECT) and isinstance(body, bytes):
        return body
    if kind is MessageType.TEXT and isinstance(body, str):
        text = encode_text(body)
        return _INT.pack(len(text)) + text
    if kind is MessageType.MAP and isinstance(body, Mapping):
        return encode_map(body)
    if kind is MessageType.STREAM and isinstance(body, list):
        return b"".join(map(encode_value, body))
    raise ValueError(f"{type(body).__name__} is not a body of a {kind.name.lower()} message")


def _message_type(message_type: int) -> MessageType:
    if type(message_type) is MessageType:
        return message_type
    try:
        return MessageType(message_type)
    except ValueError as error:
        raise MalformedMessageError(f"type {message_type} is not a message") from error


def _decode_text(content: bytes) -> str:
    if len(content) < 4:
        raise MalformedMessageError(f"text body: {len(content)} bytes, too few for its length")
    (length,) = _INT.unpack_from(content)
    if length < 0 or length > len(content) - 4:
        text = f"text body: a length of {length} where {len(content) - 4} bytes follow"
        raise MalformedMessageError(text)
    try:
        return decode_text(content[4 : 4 + length])
    except UnicodeDecodeError as error:
        raise MalformedMessageError(f"text body: {error}") from error


def _decode_stream(content: bytes) -> list[Value]:
    position = 0
    values: list[Value] = []
    while position < len(content):
        value, position = decode_value(content, position)
        values.append(value)
    return values


def _inflate(content: bytes, bytes_max: int) -> bytes:
    """Return the whole of a deflated body."""
    inflated, whole = _inflate_up_to(content, bytes_max + 1)
    if len(inflated) > bytes_max:
        raise MalformedMessageError(f"the body inflates to more than {bytes_max} bytes")
    if not whole:
        raise MalformedMessageError("the compressed body is cut short")
    return inflated


def _inflate_bytes(content: bytes, bytes_max: int) -> bytes:
    """Return a deflated bytes body, cut to the length in front of it: Java may pad with zeros."""
    if len(content) < 4:
        raise MalformedMessageError(f"bytes body: {len(content)} bytes, too few for its length")
    (length,) = _INT.unpack_from(content)
    if not 0 <= length <= bytes_max:
        raise MalformedMessageError(f"bytes body: inflates to {length}, not 0 to {bytes_max}")
    inflated, _ = _inflate_up_to(content[4:], length + 1)
    if len(inflated) < length:
        raise MalformedMessageError(f"bytes body: {len(inflated)} bytes instead of {length}")
    return inflated[:length]


def _inflate_up_to(content: bytes, bytes_max: int) -> tuple[bytes, bool]:
    """Return at most *bytes_max* inflated bytes, and whether the deflated data is whole."""
    inflater = zlib.decompressobj()
    try:
        return inflater.decompress(content, bytes_max), inflater.eof
    except zlib.error as error:
        raise MalformedMessageError(f"the compressed body is damaged: {error}") from error
