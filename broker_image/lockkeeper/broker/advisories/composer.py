"""Advisory messages, with ids of the broker's own."""

from collections.abc import Mapping

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import ActiveMQMessage, ConsumerId, Structure
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.message.rewrite import decoded, encoded


class Composer:
    """Makes the advisory messages of one broker."""

    def __init__(self, broker_id: str, broker_name: str) -> None:
        self._producer = ProducerId(f"{broker_id}-1:1", 0, 0)
        self._count = 0
        self.broker_id = broker_id
        self._origin: dict[str, Value] = {"originBrokerName": broker_name, "originBrokerURL": ""}

    def compose(
        self,
        target: Destination,
        content: Structure | None,
        properties: Mapping[str, Value],
        sequence: int,
        now: int,
        reader: ConsumerId | None = None,
    ) -> Message:
        """Return an advisory (openwire.md section 7.2), for one *reader* alone if there is one.

        *sequence* becomes its brokerSequenceId; *now* is in ms since the epoch.
        """
        self._count += 1
        return encoded(
            ActiveMQMessage(
                producer_id=self._producer,
                destination=target,
                message_id=MessageId(self._producer, self._count, sequence),
                type="Advisory",
                priority=0,
                marshalled_properties=encode_map(
                    {"originBrokerId": self.broker_id, **self._origin, **properties}
                ),
                data_structure=content,
                target_consumer_id=reader,
                broker_in_time=now,
            ),
            sequence,
        )


def unwanted(message: Message, target: Destination, sequence: int) -> Message:
    """Return a message that nobody wanted, as those get it who want to know of such."""
    fields = decoded(message)
    fields.transaction_id = None
    fields.destination = target
    return encoded(fields, sequence)
