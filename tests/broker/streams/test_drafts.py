"""The bytes of a stream's message: what ActiveMQ reads, and what the index needs."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockkeeper.broker.streams.drafts import (
    RESERVED,
    Draft,
    Parts,
    compose,
    offset_of,
    read_draft,
    tag_hash_of,
)
from lockkeeper.message import openwire
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import decode_map, encode_map
from lockkeeper.message.reader import MessageReader
from lockkeeper.message.segments import lane_of, parse_key, parse_segment
from lockkeeper.store.kahadb.segment_replay import keys_of

ORDERS, LANE, AT = topic("orders"), lane_of("orders", 3), 1_700_000_000_123
DRAFT = Draft(b"x" * 40, {"TAGS": "TagA", "KEYS": "a b"}, 3, 8, AT - 9, "10.0.0.7:1", 2)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
NAMES = TEXTS.filter(lambda name: name not in RESERVED)


def composed(draft: Draft, offset: int = 42) -> Message:
    """Return a draft as a message."""
    return compose(draft, ORDERS, LANE, offset, AT, 999, tag_hash_of(draft.tags))


@given(st.binary(max_size=99), st.dictionaries(NAMES, TEXTS, max_size=4), st.integers(0, 2**62))
@settings(max_examples=15, deadline=None)
def test_any_message_is_whole_openwire_and_reads_back(
    body: bytes, properties: dict[str, str], offset: int
) -> None:
    draft = Draft(body, properties, 3, 8, AT - 9, "10.0.0.7:1", 2)
    message = composed(draft, offset)
    fields, end = openwire.decode(message.body)
    assert end == len(message.body)
    assert isinstance(fields, openwire.ActiveMQBytesMessage)
    assert openwire.encode(fields) == message.body
    marshalled = fields.marshalled_properties
    assert marshalled is not None
    assert marshalled == encode_map(decode_map(marshalled)[0])
    assert (fields.persistent, fields.destination, fields.content) == (True, ORDERS, body)
    assert (fields.timestamp, fields.broker_in_time) == (AT - 9, AT)
    restored = MessageReader().restore(message.body, 0, len(message.body), 999)
    assert (restored.body, restored.key, restored.flags_at) == (
        message.body,
        message.key,
        message.flags_at,
    )
    assert read_draft(message.body) == draft
    assert offset_of(message.body) == offset
    assert parse_key(message.key, LANE) == (offset, tag_hash_of(draft.tags), AT)


def test_a_message_that_was_written_anew_is_read_all_the_same() -> None:
    fields, _ = openwire.decode(composed(DRAFT).body)
    assert isinstance(fields, openwire.ActiveMQBytesMessage)
    fields.correlation_id = "other"
    body = openwire.encode(fields)
    with pytest.raises(MalformedMessageError):
        Parts(body)
    assert read_draft(body) == DRAFT


def test_a_message_that_is_cut_short_is_refused() -> None:
    body = composed(DRAFT).body
    for end in range(len(body) - 30):
        with pytest.raises(MalformedMessageError):
            read_draft(body[:end])


def test_the_hash_of_a_tag_is_javas() -> None:
    assert tag_hash_of("TagA") == 2_598_919
    assert tag_hash_of("") == 0
    assert tag_hash_of("polygenelubricants") == -(2**31)
    assert tag_hash_of("été") == 233 * 31 * 31 + 116 * 31 + 233
    assert tag_hash_of("𝄞") == 0xD834 * 31 + 0xDD1E


@pytest.mark.parametrize("characters", ["ab", "a\xe9\u4e2d", "a𝄞\ud800"])
def test_the_hash_of_a_long_tag_is_javas(characters: str) -> None:
    chosen = random.Random(len(characters))
    for length in (256, 257, 511, 512, 513, 640, 1_000, 32_767):
        tag = "".join(chosen.choices(characters, k=length))
        units = tag.encode("utf-16-be", "surrogatepass")
        expected = 0
        for at in range(0, len(units), 2):
            expected = expected * 31 + int.from_bytes(units[at : at + 2], "big")
        expected &= (1 << 32) - 1
        assert tag_hash_of(tag) == expected - (expected >> 31 << 32)


def test_keys_are_found_without_reading_a_message() -> None:
    draft = Draft(b"\x00\x04KEYS\x09\x00\x01?", {"UNIQ_KEY": "u", "KEYS": "été b"})
    body = composed(draft).body
    found = keys_of(body, 0, len(body))
    assert found == [b"u", "été".encode(), b"b"]
    assert keys_of(composed(Draft(b"")).body, 0, 10) == [b"", b""]


def test_other_keys_and_queues_are_none_of_a_stream() -> None:
    for key in (b"ID:producer-1:1:1:7", b"ID:lockkeeper-stream-1:2", b"x", b""):
        assert parse_key(key, LANE) is None
    for name in ("Lockkeeper.Stream.States", "Lockkeeper.Stream.1.x.orders", "A.1.2.B"):
        assert parse_segment(queue(name)) is None
