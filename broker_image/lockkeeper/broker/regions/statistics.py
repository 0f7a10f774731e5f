"""What happened at one destination since the broker started: plain counters."""


class Statistics:
    """Counters of one destination, in messages; ActiveMQ's names."""

    __slots__ = ("dead_lettered", "dequeued", "dispatched", "enqueued", "expired", "redelivered")

    def __init__(self) -> None:
        self.enqueued = 0
        self.dequeued = 0
        self.dispatched = 0
        self.expired = 0
        self.dead_lettered = 0
        self.redelivered = 0

    def as_dict(self) -> dict[str, int]:
        """Return the counters by name."""
        return {name: getattr(self, name) for name in self.__slots__}
