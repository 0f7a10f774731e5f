"""Streams in the journal: the names of their segments' queues, and the keys of their messages.

Each segment of a stream's partition is a queue, and its messages are those of the stream. What is
to be known of groups, declared streams and delays is a text each in the queue STATES.
"""

from typing import Final, NamedTuple

from lockkeeper.message.destination import Destination, queue

SEGMENT_PREFIX: Final = "Lockkeeper.Stream."
STATES: Final = queue(f"{SEGMENT_PREFIX}States")
STATE_NAME: Final = "lockkeeperName"
"""The property of a text in STATES by whose value the broker finds it again."""
GROUP_PREFIX, STREAM_PREFIX = "group/", "stream/"
"""What the names of texts begin with: of consumer groups, and of declared streams."""
KEY_PREFIX: Final = b"ID:lockkeeper-stream-"
"""What the key of every message of a segment begins with: see `parse_key`."""
PARTITIONS_MAX: Final = 1_024
"""No stream has more partitions: a queue that is named like one of a later is any queue."""
_OFFSET_DIGITS: Final = 20
_OFFSET_MAX: Final = 1 << 62


class SegmentName(NamedTuple):
    """A segment: its stream, the number of its partition, and its first offset."""

    stream: str
    partition: int
    base: int

    @property
    def destination(self) -> Destination:
        """The queue that holds the segment's messages, in the journal and for ActiveMQ."""
        return queue(f"{SEGMENT_PREFIX}{self.partition}.{self.base:020d}.{self.stream}")


def parse_segment(destination: Destination) -> SegmentName | None:
    """Return the segment that a destination is, None for any other one.

    Somebody may have made a queue of such a name at ActiveMQ: it is a segment only if ours could
    be called so.
    """
    if not destination.name.startswith(SEGMENT_PREFIX) or not destination.is_queue:
        return None
    partition, _, rest = destination.name[len(SEGMENT_PREFIX) :].partition(".")
    base, _, stream = rest.partition(".")
    if not (partition.isdecimal() and base.isdecimal() and stream):
        return None
    if len(partition) >= len(base) or len(base) != _OFFSET_DIGITS:
        return None
    name = SegmentName(stream, int(partition), int(base))
    is_ours = name.partition < PARTITIONS_MAX and name.base < _OFFSET_MAX
    return name if is_ours and name.destination == destination else None


def parse_key(key: bytes) -> tuple[int, int, int] | None:
    """Return offset, tag hash and time of a segment's message; None for another message's key."""
    prefix, *numbers = key.rsplit(b":", 3)
    if not prefix.startswith(KEY_PREFIX) or len(numbers) < 3 or not numbers[2].isdigit():
        return None
    stored_at, tag_hash, offset = numbers
    try:
        return int(offset), int(tag_hash), int(stored_at)
    except ValueError:
        return None
