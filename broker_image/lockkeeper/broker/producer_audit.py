"""Which sequence number each producer has reached: a failover's resent messages are known."""

from lockkeeper.message.message import Message
from lockkeeper.message.rewrite import producer_of

PRODUCERS_MAX = 10_000


class ProducerAudit:
    """The last stored sequence number of each producer, the most recent producers only."""

    def __init__(self) -> None:
        self._last: dict[bytes, int] = {}

    def restore(self, producers: dict[bytes, int]) -> None:
        """Take over what the store found."""
        self._last = dict(list(producers.items())[-PRODUCERS_MAX:])

    def record(self, message: Message) -> None:
        """Note a message that has been handed to the store."""
        parts = producer_of(message.key)
        if parts is None:
            return
        self._last.pop(parts[0], None)
        self._last[parts[0]] = parts[1]
        if len(self._last) > PRODUCERS_MAX:
            del self._last[next(iter(self._last))]

    def is_duplicate(self, message: Message) -> bool:
        """Tell whether a message came again after a failover (openwire.md section 7.10)."""
        parts = producer_of(message.key)
        return parts is not None and parts[1] <= self._last.get(parts[0], -1)
