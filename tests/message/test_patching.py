"""Fields that are replaced where they lie: the same message as by decoding and encoding all."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination, Kind, queue, topic
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId, XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.patching import (
    patched,
    properties_in,
    redelivery_counter_of,
    timestamp_of,
)
from lockkeeper.message.primitives import Long, encode_map
from lockkeeper.message.rewrite import decoded, encoded, properties_of

TEXTS = st.text(max_size=12)
NAMES = st.text("abcXYZ.ü", min_size=1, max_size=12)
LONGS = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(0, 2**62)
DESTINATIONS = st.builds(Destination, st.sampled_from(list(Kind)), NAMES)
PRODUCERS = st.builds(ProducerId, NAMES, LONGS, LONGS)
MESSAGE_IDS = st.builds(MessageId, PRODUCERS, TIMES, TIMES, st.none() | NAMES)
TRANSACTIONS = st.builds(LocalTransactionId, NAMES, LONGS) | st.builds(
    XATransactionId, st.integers(0, 9), st.binary(max_size=8), st.binary(max_size=8)
)
PROPERTIES = st.dictionaries(NAMES, TEXTS | st.booleans() | LONGS.map(Long), max_size=4)
KINDS = (
    openwire.ActiveMQMessage,
    openwire.ActiveMQBytesMessage,
    openwire.ActiveMQTextMessage,
    openwire.ActiveMQMapMessage,
    openwire.ActiveMQBlobMessage,
)


@st.composite
def messages(draw) -> Message:
    """Return a message with any of the fields that stand before or behind those replaced."""
    properties = draw(st.none() | PROPERTIES)
    kind = draw(st.sampled_from(KINDS))
    fields = kind(
        producer_id=draw(PRODUCERS),
        destination=draw(DESTINATIONS),
        transaction_id=draw(st.none() | TRANSACTIONS),
        original_destination=draw(st.none() | DESTINATIONS),
        message_id=draw(MESSAGE_IDS),
        original_transaction_id=draw(st.none() | TRANSACTIONS),
        group_id=draw(st.none() | TEXTS),
        group_sequence=draw(st.integers(-1, 9)),
        correlation_id=draw(st.none() | TEXTS),
        persistent=draw(st.booleans()),
        expiration=draw(TIMES),
        priority=draw(st.integers(0, 9)),
        reply_to=draw(st.none() | DESTINATIONS),
        timestamp=draw(TIMES),
        type=draw(st.none() | TEXTS),
        content=draw(st.none() | st.binary(max_size=40)),
        marshalled_properties=None if properties is None else encode_map(properties),
        target_consumer_id=draw(st.none() | st.just(openwire.ConsumerId("c", 1, 2))),
        compressed=draw(st.booleans()),
        redelivery_counter=draw(st.integers(-3, 9)),
        user_id=draw(st.none() | TEXTS),
        broker_in_time=draw(TIMES),
    )
    return encoded(cast("Any", fields), draw(TIMES))


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "destination": DESTINATIONS,
        "transaction_id": TRANSACTIONS,
        "message_id": MESSAGE_IDS,
        "persistent": st.booleans(),
        "expiration": TIMES,
        "timestamp": TIMES,
        "properties": PROPERTIES,
    },
)


@given(messages())
def test_what_is_read_is_what_all_fields_say(message: Message) -> None:
    fields = decoded(message)
    assert properties_in(message) == properties_of(fields)
    assert timestamp_of(message) == fields.timestamp
    assert redelivery_counter_of(message) == fields.redelivery_counter


@given(messages(), TIMES, CHANGES)
def test_what_is_replaced_is_what_encoding_all_fields_gives(
    message: Message, sequence: int, changes: dict[str, Any]
) -> None:
    fields = decoded(message)
    for name, value in changes.items():
        if name == "properties":
            fields.marshalled_properties = encode_map(value)
        else:
            setattr(fields, name, value)
    expected = encoded(fields, sequence)
    found = patched(message, sequence, **changes)
    assert found.body == expected.body
    assert (found.destination, found.transaction_id) == (
        expected.destination,
        expected.transaction_id,
    )
    assert (found.persistent, found.expiration) == (expected.persistent, expected.expiration)
    assert (found.key, found.sequence) == (expected.key, sequence)


def plain(**more: Any) -> Message:
    producer = ProducerId("ID:a", 1, 1)
    identifier = MessageId(producer, 7)
    fields = openwire.ActiveMQTextMessage(
        producer_id=producer, destination=queue("orders"), message_id=identifier, **more
    )
    return encoded(fields, 1)


@pytest.mark.parametrize("read", [properties_in, timestamp_of, redelivery_counter_of])
def test_a_message_that_ends_within_its_fields_is_told(read: Any) -> None:
    whole = plain(content=b"x" * 100, marshalled_properties=encode_map({"a": 1}))
    cut = Message(whole.body[: whole.flags_at + 9], whole.lead, 1, whole.flags_at, 0)
    with pytest.raises(MalformedMessageError, match="orders"):
        read(cut)


def test_nothing_else_changes_its_size() -> None:
    message = plain(content=b"x" * 100)
    moved = patched(message, 2, destination=topic("longer.than.orders"))
    assert len(moved.body) == len(message.body) + len("longer.than.orders") - len("orders")
