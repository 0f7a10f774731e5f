"""One stream: its partitions and its settings."""

from collections.abc import Mapping
from typing import Any

from lockkeeper.broker.streams.errors import NoSuchPartitionError
from lockkeeper.broker.streams.partition import Partition
from lockkeeper.broker.streams.settings import Retention, StreamSettings
from lockkeeper.message.segments import PARTITIONS_MAX


class Stream:
    """Partitions by number."""

    def __init__(self, name: str, settings: StreamSettings) -> None:
        self.name = name
        self.settings = settings
        self.partitions: list[Partition] = []
        self._turn = 0

    def partition(self, number: int) -> Partition:
        """Return a partition. Raises NoSuchPartitionError."""
        if not 0 <= number < len(self.partitions):
            raise NoSuchPartitionError(
                f"stream {self.name} has the partitions 0 to {len(self.partitions) - 1}, "
                f"not {number}"
            )
        return self.partitions[number]

    def next_partition(self) -> Partition:
        """Return the partition whose turn it is, for a message that names none."""
        self._turn = (self._turn + 1) % len(self.partitions)
        return self.partitions[self._turn]

    def adopt(self, settings: StreamSettings) -> None:
        """Go by other settings from now on; the partitions are the caller's."""
        self.settings = settings
        for partition in self.partitions:
            partition.retention = settings.retention


def settings_state(settings: StreamSettings) -> dict[str, Any]:
    """Return settings as the journal keeps them."""
    retention = settings.retention
    return {
        "partitions": settings.partitions,
        "ordered": settings.ordered,
        "timeMs": retention.time,
        "bytes": retention.bytes,
        "messages": retention.messages,
        "fromTopics": list(settings.from_topics),
        "toQueues": list(settings.to_queues),
    }


def read_settings(state: Mapping[str, Any]) -> StreamSettings:
    """Return the settings that the journal keeps; what it does not tell is as usual."""
    usual = StreamSettings()

    def number(name: str, otherwise: int) -> int:
        value = state.get(name)
        return value if isinstance(value, int) and value >= 0 else otherwise

    def names(name: str) -> tuple[str, ...]:
        value = state.get(name)
        return tuple(map(str, value)) if isinstance(value, list) else ()

    return StreamSettings(
        min(max(1, number("partitions", usual.partitions)), PARTITIONS_MAX),
        Retention(
            number("timeMs", usual.retention.time),
            number("bytes", usual.retention.bytes),
            number("messages", usual.retention.messages),
        ),
        state.get("ordered") is True,
        names("fromTopics"),
        names("toQueues"),
    )
