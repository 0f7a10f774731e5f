"""Acknowledgements as they come from the wire, odd ones among them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from largest_frames import NAME
from served import Served

from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import AckType, ConsumerId

PRODUCER, CONSUMER = ProducerId(NAME, 1, 1), ConsumerId(NAME, 1, 1)


@pytest.mark.parametrize("kind", list(AckType))
def test_a_negative_count_is_refused(kind: AckType) -> None:
    served = Served().introduced()
    served.tell(
        openwire.ConsumerInfo(consumer_id=CONSUMER, destination=queue("Q"), prefetch_size=2)
    )
    for number in range(1, 4):
        served.tell(message(number))
    (consumer,) = served.broker.connections[NAME].consumers.values()
    before = list(consumer.dispatched)
    assert len(before) == 2
    served.session.data_to_send()
    ack = openwire.MessageAck(
        command_id=9,
        response_required=True,
        destination=queue("Q"),
        consumer_id=CONSUMER,
        ack_type=kind,
        message_count=-1000,
        first_message_id=MessageId(PRODUCER, 1, before[0]),
        last_message_id=MessageId(PRODUCER, 2, before[-1]),
    )
    served.tell(ack)
    assert list(consumer.dispatched) == before
    assert consumer.extension == 0
    # Who acknowledges as it should gets the next one.
    served.tell(
        openwire.MessageAck(
            destination=queue("Q"),
            consumer_id=CONSUMER,
            ack_type=AckType.STANDARD,
            message_count=2,
            first_message_id=MessageId(PRODUCER, 1, before[0]),
            last_message_id=MessageId(PRODUCER, 2, before[-1]),
        )
    )
    assert len(consumer.dispatched) == 1


def message(number: int) -> openwire.ActiveMQBytesMessage:
    return openwire.ActiveMQBytesMessage(
        producer_id=PRODUCER,
        destination=queue("Q"),
        message_id=MessageId(PRODUCER, number),
        content=b"x",
    )
