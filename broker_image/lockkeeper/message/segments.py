"""Streams in the journal: the names of their segments' queues, and the keys of their messages.

Each segment of a stream's partition is a queue, and its messages are those of the stream. What is
to be known of groups, declared streams and delays is a text each in the queue STATES.
"""

import zlib
from functools import lru_cache
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
LANE_BYTES: Final = len(KEY_PREFIX) + 8
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


@lru_cache(maxsize=4096)
def lane_of(stream: str, partition: int) -> bytes:
    """Return what the keys of a partition's messages begin with, LANE_BYTES of them.

    ActiveMQ takes it for the connection of a producer. Its audit of producers counts through all
    numbers between two of the same one, so partitions, whose offsets are far apart, must differ.
    """
    return b"%b%08x" % (KEY_PREFIX, zlib.crc32(f"{partition}.{stream}".encode()))


def parse_key(key: bytes, lane: bytes) -> tuple[int, int, int] | None:
    """Return offset, tag hash and time of a message of the partition that has this *lane*.

    None for another message's key: somebody sent it to the segment at ActiveMQ, or moved it there.
    """
    prefix, *numbers = key.rsplit(b":", 3)
    if prefix != lane or len(numbers) < 3 or not numbers[2].isdigit():
        return None
    stored_at, tag_hash, offset = numbers
    try:
        return int(offset), int(tag_hash), int(stored_at)
    except ValueError:
        return None
