"""A bridge compresses bodies as ActiveMQ does, where it is asked to."""

from typing import cast

import pytest
from linked_brokers import Client, Link, Node

from lockkeeper.broker.outputs import Delivery
from lockkeeper.message.bodies import Body, decode_body, encode_body
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import (
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQMessage,
    ActiveMQTextMessage,
    Message,
)
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.network.settings import BridgeSettings

KINDS: tuple[tuple[type[Message], int, Body], ...] = (
    (ActiveMQTextMessage, 28, "text " * 100),
    (ActiveMQBytesMessage, 24, b"bytes" * 100),
    (ActiveMQMapMessage, 25, {"name": "value" * 100}),
    (ActiveMQMessage, 23, None),
)


def forwarded(client: Client, other: Client, message: Message, link: Link) -> Message:
    """Return a message as it comes to a consumer at the other broker."""
    broker = client.node.broker
    broker.send(client.connection, encoded(message, next(broker.sequences)), None)
    link.pump()
    outputs, other.connection.outbox = other.connection.outbox, []
    (found,) = (cast("Delivery", each)[1] for each in outputs if type(each) is tuple)
    (reference,) = found
    return decoded(reference.loaded)


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize(("kind", "number", "body"), KINDS)
def test_a_body_is_compressed_once(
    kind: type[Message], number: int, body: Body, is_compressed: bool
) -> None:
    a, b = Node("a"), Node("b")
    link = Link(a, b, BridgeSettings(use_compression=True))
    near, far = a.client(), b.client()
    far.consume("queue://Q")
    link.pump()
    producer = ProducerId(near.name, 1, 1)
    content = encode_body(number, body, is_compressed)
    message = forwarded(
        near,
        far,
        kind(
            producer_id=producer, destination=queue("Q"), message_id=MessageId(producer, 1, 1),
            content=content, compressed=is_compressed and body is not None, persistent=True,
        ),
        link,
    )  # fmt: skip
    assert message.compressed == (body is not None)
    assert len(message.content or b"") < 100
    assert decode_body(number, message.content, message.compressed) == body
    assert [each.value for each in message.broker_path or ()] == ["ID:a"]
