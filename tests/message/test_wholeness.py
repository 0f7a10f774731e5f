"""A message that cannot be read to its end is refused before anybody relies on it."""

from typing import Any

import pytest

from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.layout import read_lead
from lockkeeper.message.openwire import ActiveMQBlobMessage, ActiveMQTextMessage, BrokerId
from lockkeeper.message.primitives import encode_map
from lockkeeper.message.reader import MessageReader

PRODUCER = ProducerId("ID:p-1:1", 1, 1)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without content": {"content": None},
    "with properties": {"marshalled_properties": encode_map({"colour": "red"})},
    "with an answer's address": {"reply_to": queue("ANSWERS"), "correlation_id": "c-1"},
    "of a group": {"group_id": "g", "group_sequence": 3},
    "with a type and a user": {"type": "t\u00e4st", "user_id": "u\u00fc", "redelivery_counter": 2},
    "compressed": {"compressed": True, "arrival": 77},
    "from another broker": {"broker_path": (BrokerId("b"),), "cluster": (BrokerId("c"),)},
    "with a structure": {"data_structure": openwire.KeepAliveInfo()},
}


def frame(kind: type[Any] = ActiveMQTextMessage, **fields: Any) -> bytes:
    given = {"content": b"\0\0\0\5hello", "timestamp": 5, "expiration": 9, **fields}
    message = kind(
        producer_id=PRODUCER,
        destination=queue("Q"),
        message_id=MessageId(PRODUCER, 7),
        persistent=True,
        **given,
    )
    return openwire.encode(message)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", [ActiveMQTextMessage, ActiveMQBlobMessage])
def test_every_legal_message_is_whole(name: str, kind: type[Any]) -> None:
    body = frame(kind, **KINDS[name])
    # Neighbours in the buffer are nobody's business.
    for data, start in ((body, 0), (b"xyz" + body + body, 3)):
        for _ in range(2):
            read = MessageReader().receive(data, start, start + len(body), 99, bytes(8))
            assert (read.expiration, read.persistent, len(read.body)) == (9, True, len(body))
        assert MessageReader().restore(data, start, start + len(body), 99).expiration == 9


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", [ActiveMQTextMessage, ActiveMQBlobMessage])
def test_what_is_taken_can_be_decoded(name: str, kind: type[Any]) -> None:
    body = frame(kind, **KINDS[name])
    changed = 0
    for at in range(6, len(body)):
        for value in (0xFF, 0x00, 0x01, 0x80):
            bad = body[:at] + bytes((value,)) + body[at + 1 :]
            for data in (bad, bad[:at]):
                reader = MessageReader()
                try:
                    message = reader.receive(data, 0, len(data), 1, bytes(8))
                except MalformedMessageError:
                    changed += 1
                    continue
                openwire.decode(message.body)
                message.group, message.priority, message.identifier  # noqa: B018
    assert changed > 100


def test_a_garbled_tail_is_refused_behind_a_known_beginning() -> None:
    reader, body = MessageReader(), frame()
    good = reader.receive(body, 0, len(body), 1, bytes(8))
    at = good.flags_at + 10
    bad = body[:at] + b"\xff" * 40 + body[at + 40 :]
    with pytest.raises(MalformedMessageError):
        reader.receive(bad, 0, len(bad), 2, bytes(8))
    assert reader.receive(body, 0, len(body), 3, bytes(8)).sequence == 3


def test_a_first_message_that_begins_like_nothing_learnt_is_refused() -> None:
    data = frame()
    data = data[:6] + b"\xff\xff" + data[8:]
    reader = MessageReader()
    for _ in range(2):
        with pytest.raises(MalformedMessageError):
            reader.receive(data, 0, len(data), 1, bytes(8))
        with pytest.raises(MalformedMessageError):
            reader.restore(data, 0, len(data), 1)


def test_a_transaction_in_the_header_with_a_garbled_text_is_refused() -> None:
    whole = frame(original_transaction_id=LocalTransactionId("ID:x", 1))
    data = whole.replace(b"ID:x", b"ID\xff\xff")
    with pytest.raises(MalformedMessageError):
        MessageReader().receive(data, 0, len(data), 1, bytes(8))
    lead = read_lead(data, 0, len(data))
    with pytest.raises(MalformedMessageError):
        lead.find_group(data)
