"""The bridge's consumer of advisories at the other broker, and its acknowledgements."""

from lockkeeper.message import openwire
from lockkeeper.message.openwire import AckType, ConsumerId, ConsumerInfo, MessageAck
from lockkeeper.network.inclusion import advisory_topics
from lockkeeper.network.settings import BridgeSettings

SESSION = 1


def advisory_consumer(settings: BridgeSettings, identifier: str) -> ConsumerInfo:
    """Return the consumer of advisories; *identifier* is the connection's at the other broker."""
    return ConsumerInfo(
        consumer_id=ConsumerId(identifier, SESSION, 1),
        destination=advisory_topics(settings),
        prefetch_size=settings.advisory_prefetch_size or settings.prefetch_size,
        dispatch_async=True,
    )


class AdvisoryWindow:
    """Counts advisories, and has many of them acknowledged at a time."""

    def __init__(self, settings: BridgeSettings, identifier: str) -> None:
        consumer = advisory_consumer(settings, identifier)
        self._consumer_id = consumer.consumer_id
        self._most = consumer.prefetch_size * settings.advisory_ack_percentage / 100
        self._count = 0

    def heard(self, message: openwire.Message) -> MessageAck | None:
        """Count one more; returns an acknowledgement of all when it is time for one."""
        self._count += 1
        if self._count <= self._most:
            return None
        count, self._count = self._count, 0
        return MessageAck(
            destination=message.destination,
            consumer_id=self._consumer_id,
            ack_type=AckType.STANDARD,
            last_message_id=message.message_id,
            message_count=count,
        )
