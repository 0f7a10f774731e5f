"""Facts of messages as they are read from their bytes: what decoding every field says."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent / "message"))

from any_message import messages

from lockkeeper.message.broker_path import names_of
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.message import Message
from lockkeeper_analytics.reading.frames import FrameReader, Tail, _full_head, decode_message


@given(st.lists(messages(), min_size=1, max_size=5), st.binary(max_size=9))
def test_heads_and_tails_say_what_all_fields_say(found: list[Message], before: bytes) -> None:
    reader = FrameReader()
    data = before + b"".join(message.body for message in found)
    start = len(before)
    for message in [*found, *found]:
        start = data.index(message.body, len(before))
        end = start + len(message.body)
        fields = decode_message(data, start, end)
        head, tail_at = reader.head(data, start, end)
        assert head == _full_head(fields)
        assert reader.tail(data, (start, end), tail_at, with_content=True) == Tail(
            fields.type,
            fields.content,
            fields.marshalled_properties,
            fields.compressed,
            fields.redelivery_counter,
            fields.user_id,
            list(names_of(fields.broker_path)) or None,
        )


@given(messages(), st.data())
def test_a_message_that_is_cut_is_told(message: Message, data: st.DataObject) -> None:
    body = message.body
    end = data.draw(st.integers(1, len(body) - 1))
    reader = FrameReader()
    with pytest.raises(MalformedMessageError):
        _, tail_at = reader.head(body[:end], 0, end)
        reader.tail(body[:end], (0, end), tail_at, with_content=True)
