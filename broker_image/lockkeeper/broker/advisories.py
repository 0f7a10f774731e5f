"""Advisory messages: what the broker tells clients of itself through topics."""

from lockkeeper.message.destination import Destination, Kind, topic
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import (
    ActiveMQMessage,
    ConnectionId,
    DestinationInfo,
    DestinationOperation,
)
from lockkeeper.message.primitives import encode_map
from lockkeeper.message.rewrite import encoded

PREFIX = "ActiveMQ.Advisory."
TEMP_QUEUE_TOPIC = topic(PREFIX + "TempQueue")
TEMP_TOPIC_TOPIC = topic(PREFIX + "TempTopic")


class Advisor:
    """Makes the broker's advisory messages, with ids of the broker's own."""

    def __init__(self, broker_id: str, broker_name: str) -> None:
        self._producer = ProducerId(f"{broker_id}-1:1", 1, 1)
        self._count = 0
        self._marks = encode_map(
            {"originBrokerId": broker_id, "originBrokerName": broker_name, "originBrokerURL": ""}
        )

    def temporary(
        self, destination: Destination, connection_id: str, removed: bool, sequence: int, now: int
    ) -> Message:
        """Return the news that a temporary destination came or went (openwire.md 7.2)."""
        self._count += 1
        operation = DestinationOperation.REMOVE if removed else DestinationOperation.ADD
        return encoded(
            ActiveMQMessage(
                producer_id=self._producer,
                destination=advisory_topic(destination),
                message_id=MessageId(self._producer, self._count, sequence),
                type="Advisory",
                timestamp=now,
                marshalled_properties=self._marks,
                data_structure=DestinationInfo(
                    connection_id=ConnectionId(connection_id),
                    destination=destination,
                    operation_type=operation,
                ),
            ),
            sequence,
        )


def advisory_topic(destination: Destination) -> Destination:
    """Return the topic that tells of temporary destinations of this kind."""
    return TEMP_QUEUE_TOPIC if destination.kind is Kind.TEMP_QUEUE else TEMP_TOPIC_TOPIC


def is_advisory(destination: Destination) -> bool:
    """Tell whether a destination is one of the broker's advisory topics."""
    return destination.name.startswith(PREFIX)
