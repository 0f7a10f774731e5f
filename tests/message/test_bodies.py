"""Message bodies survive, compressed or not, and inflate only up to a limit."""

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockkeeper.message.bodies import MessageType, decode_body, encode_body
from lockkeeper.message.errors import MalformedMessageError

PRIMITIVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9)
BODIES = st.one_of(
    st.tuples(st.just(MessageType.TEXT), st.text()),
    st.tuples(st.just(MessageType.BYTES), st.binary()),
    st.tuples(st.just(MessageType.OBJECT), st.binary()),
    st.tuples(st.just(MessageType.MAP), st.dictionaries(st.text(), PRIMITIVES)),
    st.tuples(st.just(MessageType.STREAM), st.lists(PRIMITIVES)),
    st.tuples(st.sampled_from(MessageType), st.none()),
)


@given(typed=BODIES, compressed=st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_body_survives(typed: tuple[MessageType, Any], compressed: bool) -> None:
    kind, body = typed
    content = encode_body(kind, body, compressed)
    assert decode_body(kind, content, compressed) == body


def test_a_text_has_its_length_in_front() -> None:
    assert encode_body(28, "hé") == b"\x00\x00\x00\x03h\xc3\xa9"
    assert encode_body(28, "") == b"\x00\x00\x00\x00"


def test_padding_of_inflated_bytes_is_cut() -> None:
    content = struct.pack(">i", 3) + zlib.compress(b"abc\0\0\0")
    assert decode_body(24, content, True) == b"abc"


@pytest.mark.parametrize("kind", [24, 25, 26, 27, 28])
def test_a_body_may_inflate_to_the_limit_and_not_beyond(kind: int) -> None:
    bodies: dict[int, Any] = {
        24: b"x" * 100,
        25: {"k": "v"},
        26: b"x" * 100,
        27: ["v"],
        28: "x" * 96,
    }
    plain = encode_body(kind, bodies[kind])
    content = encode_body(kind, bodies[kind], compressed=True)
    assert plain is not None
    assert decode_body(kind, content, True, len(plain)) == bodies[kind]
    with pytest.raises(MalformedMessageError, match="inflates to"):
        decode_body(kind, content, True, len(plain) - 1)


@pytest.mark.parametrize("kind", [24, 25, 26, 27, 28])
def test_a_compressed_body_cut_short_anywhere_is_malformed(kind: int) -> None:
    bodies: dict[int, Any] = {24: b"abc", 25: {"k": "v"}, 26: b"abc", 27: ["v"], 28: "abc"}
    content = encode_body(kind, bodies[kind], compressed=True)
    assert content is not None
    # The last 4 bytes are zlib's checksum, which a bytes body of known length does not need.
    for end in range(len(content) - 4 if kind == 24 else len(content)):
        try:
            found = decode_body(kind, content[:end], True)
        except MalformedMessageError:
            continue
        assert kind == 24 and found == bodies[kind]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (28, b"\x00\x00"),
        (28, b"\x00\x00\x00\x05abc"),
        (28, b"\xff\xff\xff\xff"),
        (28, b"\x00\x00\x00\x01\xff"),
        (25, b"\x00"),
        (27, b"\x05\x00"),
    ],
)
def test_an_impossible_body_is_malformed(kind: int, content: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        decode_body(kind, content)


@given(kind=st.sampled_from(MessageType), content=st.binary(max_size=40), packed=st.booleans())
@settings(max_examples=500, deadline=None)
def test_noise_never_raises_anything_else(kind: MessageType, content: bytes, packed: bool) -> None:
    try:
        decode_body(kind, content, packed, 1000)
    except MalformedMessageError as error:
        assert str(error)


def test_a_body_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="int is not a body of a text message"):
        encode_body(28, 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="str is not a body of a blob message"):
        encode_body(29, "x")


def test_only_messages_have_bodies() -> None:
    with pytest.raises(MalformedMessageError, match="type 21 is not a message"):
        decode_body(21, b"")
