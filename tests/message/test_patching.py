"""Fields that are replaced where they lie: the same message as by decoding and encoding all."""

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from any_message import (
    DESTINATIONS,
    MESSAGE_IDS,
    PROPERTIES,
    TIMES,
    TRANSACTIONS,
    messages,
)

from lockkeeper.message import openwire
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.patching import (
    patched,
    properties_in,
    redelivery_counter_of,
    timestamp_of,
)
from lockkeeper.message.primitives import encode_map
from lockkeeper.message.rewrite import decoded, encoded, properties_of

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
