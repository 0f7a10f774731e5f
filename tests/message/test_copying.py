"""Copies of messages for other destinations, and wildcards that share a name."""

import pytest

from lockkeeper.message.copying import MessageCopier
from lockkeeper.message.destination import Destination, paths_overlap, queue, topic
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import ActiveMQTextMessage
from lockkeeper.message.primitives import encode_map
from lockkeeper.message.rewrite import decoded, encoded

PRODUCER = ProducerId("ID:p-1:1", 1, 1)
SENT_TO = topic("NEWS")


def made(
    number: int, original: Destination | None = None, producer: ProducerId = PRODUCER
) -> Message:
    """Return a message with something in most of its fields."""
    return encoded(
        ActiveMQTextMessage(
            producer_id=producer,
            destination=SENT_TO,
            original_destination=original,
            transaction_id=LocalTransactionId("ID:p-1:1", 9),
            message_id=MessageId(producer, number),
            reply_to=queue("REPLIES"),
            persistent=True,
            priority=7,
            expiration=99,
            redelivery_counter=2,
            group_id="g",
            content=b"hello",
            marshalled_properties=encode_map({"n": number}),
        ),
        number,
    )


@pytest.mark.parametrize("original", [None, queue("BEFORE")])
@pytest.mark.parametrize(
    ("destination", "new_original"),
    [(queue("A"), SENT_TO), (queue("A"), None), (None, SENT_TO), (None, None)],
)
def test_a_copy_differs_in_its_destinations_only(
    original: Destination | None, destination: Destination | None, new_original: Destination | None
) -> None:
    copier = MessageCopier(queue("A"), destination, new_original)
    for number in range(1, 4):
        message = made(number, original)
        copy = copier.copy(message, 100 + number)
        expected = decoded(message)
        expected.destination = destination or SENT_TO
        expected.original_destination = new_original or original
        assert copy.body == encoded(expected, 100 + number).body
        assert (copy.destination, copy.sequence) == (queue("A"), 100 + number)
        assert (copy.key, copy.persistent) == (message.key, True)
        assert (copy.expiration, copy.transaction_id) == (99, message.transaction_id)


def test_a_copier_learns_anew_when_messages_begin_otherwise() -> None:
    copier = MessageCopier(queue("A"), queue("A"), SENT_TO)
    other = ProducerId("ID:another-producer-2:1", 3, 4)
    for producer in (PRODUCER, other, PRODUCER):
        message = made(1, None, producer)
        assert decoded(copier.copy(message, 5)).producer_id == producer


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("A.B", "A.B", True),
        ("A.B", "A.C", False),
        ("A.*", "A.C", True),
        ("A.*", "*.C", True),
        ("A.*", "A.C.D", False),
        ("A.>", "A", True),
        ("A.>", "A.B.C", True),
        ("A.>", "B.>", False),
        (">", "A.B", True),
        ("A.*.C", "A.>", True),
        ("A", "A.B", False),
        ("A.*", "A.B.>", True),
        ("A", "A.*", False),
    ],
)
def test_wildcards_overlap_when_one_name_fits_both(one: str, other: str, overlap: bool) -> None:
    paths = tuple(one.split(".")), tuple(other.split("."))
    assert paths_overlap(*paths) is overlap
    assert paths_overlap(*reversed(paths)) is overlap
