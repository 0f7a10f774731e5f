"""What the core writes and reads by bytes is what the codec makes of the same."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockkeeper.client.core.acknowledge import ack_frame, make_ack, runs
from lockkeeper.client.core.delivery import Delivery, DispatchReader
from lockkeeper.client.core.encoding import (
    COMPRESSED_TAIL,
    PLAIN_TAIL,
    Headers,
    MessageEncoder,
    blob_tail,
    reencoded,
)
from lockkeeper.message import openwire
from lockkeeper.message.bodies import MessageType
from lockkeeper.message.destination import Destination, Kind, queue
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.openwire import LAYOUTS, AckType, ConsumerId, codec_for

LONG = st.integers(0, 2**62)
TEXT = st.text(max_size=20)
PRODUCER, CONSUMER = ProducerId("ID:x:1", 3, 2), ConsumerId("ID:x:1", 2, 9)
DESTINATIONS = st.builds(Destination, st.sampled_from(Kind), st.text(min_size=1, max_size=20))
BLOBS = st.tuples(TEXT, TEXT, st.booleans())


@settings(deadline=None)
@given(
    type_id=st.sampled_from(MessageType),
    destination=DESTINATIONS,
    numbers=st.tuples(st.integers(1, 2**31 - 1), LONG, LONG, LONG),
    priority=st.integers(0, 9),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    content=st.none() | st.binary(max_size=50),
    properties=st.none() | st.binary(max_size=50),
    headers=st.none()
    | st.builds(
        Headers,
        st.none() | TEXT,
        st.none() | DESTINATIONS,
        st.none() | TEXT,
        st.none() | TEXT,
        st.integers(-1, 9),
    ),
    transaction=st.none() | st.builds(LocalTransactionId, st.just("ID:x:1"), LONG),
    blob=BLOBS,
)
def test_a_message_is_written_as_the_codec_writes_it(
    type_id: MessageType,
    destination: Destination,
    numbers: tuple[int, int, int, int],
    priority: int,
    flags: tuple[bool, bool, bool],
    content: bytes | None,
    properties: bytes | None,
    headers: Headers | None,
    transaction: LocalTransactionId | None,
    blob: tuple[str, str, bool],
) -> None:
    number, sequence, expiration, timestamp = numbers
    persistent, wants_answer, compressed = flags
    rest: dict[str, Any] = {}
    tail = COMPRESSED_TAIL if compressed else PLAIN_TAIL
    if type_id is MessageType.BLOB:
        compressed, tail = False, blob_tail(*blob)
        rest = dict(zip(("remote_blob_url", "mime_type", "deleted_by_broker"), blob, strict=True))
    frame = MessageEncoder(PRODUCER).encode(
        type_id, number, wants_answer, destination, transaction, sequence,
        (persistent, priority, expiration, timestamp, content, properties, headers, tail),
    )  # fmt: skip
    if headers is not None:
        names = ("correlation_id", "reply_to", "type", "group_id", "group_sequence")
        rest |= {name: getattr(headers, name) for name in names}
    message = LAYOUTS[type_id].structure(
        command_id=number,
        response_required=wants_answer,
        producer_id=PRODUCER,
        destination=destination,
        transaction_id=transaction,
        message_id=MessageId(PRODUCER, sequence),
        persistent=persistent,
        expiration=expiration,
        priority=priority,
        timestamp=timestamp,
        content=content,
        marshalled_properties=properties,
        compressed=compressed,
        **rest,
    )
    expected = codec_for(12, False).encode(message)
    assert frame == len(expected).to_bytes(4, "big") + expected
    older = codec_for(6, False)
    assert reencoded(frame, codec_for(12, False), older)[4:] == older.encode(message)


def delivery(number: int, version: int = 12, **fields: Any) -> Delivery:
    message = openwire.ActiveMQTextMessage(
        producer_id=PRODUCER,
        message_id=MessageId(PRODUCER, number, 100 + number),
        destination=queue("Q"),
        content=b"\x00\x00\x00\x01x",
        **fields,
    )
    dispatch = openwire.MessageDispatch(
        consumer_id=CONSUMER, destination=queue("Q"), message=message, redelivery_counter=number
    )
    codec = codec_for(version, False)
    found = DispatchReader(codec).read(codec.encode(dispatch))
    found.arrival = number
    return found


@pytest.mark.parametrize("kind", [AckType.STANDARD, AckType.DELIVERED, AckType.INDIVIDUAL])
@pytest.mark.parametrize("count", [1, 3])
def test_an_acknowledgement_is_written_as_the_codec_writes_it(kind: AckType, count: int) -> None:
    deliveries = [delivery(number) for number in range(1, count + 1)]
    codec = codec_for(12, False)
    consumer = b"\x01" + codec.encode(CONSUMER)
    ack = make_ack(kind, CONSUMER, deliveries)
    ack.command_id = 77
    assert ack_frame(codec, 77, kind, consumer, deliveries)[4:] == codec.encode(ack)


@pytest.mark.parametrize("version", range(1, 13))
def test_a_delivery_is_read_by_every_version(version: int) -> None:
    found = delivery(
        7, version, expiration=5, priority=9, correlation_id="c", reply_to=queue("R"), type="t"
    )
    assert (found.consumer_id, found.destination) == (CONSUMER, queue("Q"))
    assert found.message_id == MessageId(PRODUCER, 7, 107)
    assert (found.expiration, found.priority, found.redelivery_counter) == (5, 9, 7)
    assert found.content() == (b"\x00\x00\x00\x01x", False)
    assert found.message.correlation_id == "c"


def test_a_dispatch_without_a_message_ends_a_pull() -> None:
    codec = codec_for(12, False)
    found = DispatchReader(codec).read(codec.encode(openwire.MessageDispatch(consumer_id=CONSUMER)))
    assert (found.has_message, found.destination) == (False, None)


@pytest.mark.parametrize(
    ("handed", "waiting", "ranges"),
    [
        ([1, 2, 3], [], [[1, 2, 3]]),
        ([1, 2, 3], [4, 5], [[1, 2, 3]]),
        ([3, 1, 2], [4], [[1, 2, 3]]),
        ([5, 1], [2, 3, 4], [[1], [5]]),
        ([2, 3, 6], [1, 4, 5, 7], [[2, 3], [6]]),
        ([1, 4], [6], [[1, 4]]),
    ],
)
def test_no_range_spans_what_waits(
    handed: list[int], waiting: list[int], ranges: list[list[int]]
) -> None:
    found = runs([delivery(number) for number in handed], waiting)
    assert [[each.arrival for each in run] for run in found] == ranges
