"""Questions about streams, answered at once."""

from collections.abc import Callable, Iterable, Iterator
from heapq import merge, nlargest
from typing import NamedTuple

from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import InvalidDestinationError
from lockkeeper.broker.streams.drafts import StreamRecord, offset_of
from lockkeeper.broker.streams.errors import NoSuchRecordError
from lockkeeper.broker.streams.groups import Group
from lockkeeper.broker.streams.partition import Partition
from lockkeeper.broker.streams.settings import StreamLimits
from lockkeeper.broker.streams.stream import Stream
from lockkeeper.message.segments import parse_segment
from lockkeeper.store.base import GoneError
from lockkeeper.store.segment import Entry


class Lag(NamedTuple):
    """Backlog of a group in one partition: messages, and ms since the oldest of them came.

    `offset` is where the group goes on: where it was, at the first message that is kept if
    retention has ended what came before, and there, too, in a partition that it never began.
    """

    stream: str
    partition: int
    offset: int
    maximum: int
    milliseconds: int

    @property
    def messages(self) -> int:
        """Number of messages that are to be consumed."""
        return self.maximum - self.offset


class Queries:
    """Answers; *get* finds a stream or raises NoSuchStreamError, as every method here does."""

    def __init__(
        self, context: Context, get: Callable[[str], Stream], limits: StreamLimits
    ) -> None:
        self._context = context
        self._get = get
        self._limits = limits

    def offsets(self, stream: str, partition: int) -> tuple[int, int]:
        """Return the first offset that is kept, and that behind the last message."""
        place = self._get(stream).partition(partition)
        return place.minimum, place.maximum

    def offset_at(self, stream: str, partition: int, time: int) -> int:
        """Return the first offset stored at *time* (ms since the epoch) or later, or the end."""
        return self._get(stream).partition(partition).offset_at(time)

    def record(self, stream: str, partition: int, offset: int) -> StreamRecord:
        """Return one message. Raises NoSuchRecordError."""
        record = self._get(stream).partition(partition).record(offset)
        if record is None:
            raise NoSuchRecordError(f"stream {stream}, partition {partition}: nothing at {offset}")
        return record

    def record_at(self, location: int) -> tuple[str, int, StreamRecord]:
        """Return a message by its location, with its stream and partition.

        Raises NoSuchRecordError, also for a location that is none.
        """
        try:
            destination, frame = self._context.store.streams.frame_at(location)
        except GoneError as error:
            raise NoSuchRecordError(str(error)) from error
        name = parse_segment(destination)
        offset = offset_of(frame)
        if name is None or offset is None:
            raise NoSuchRecordError(f"at {location} is no message of a stream")
        record = self.record(name.stream, name.partition, offset)
        if record.location != location:
            raise NoSuchRecordError(f"the message at {location} is gone")
        return name.stream, name.partition, record

    def find_key(
        self, stream: str, key: str, begin: int, end: int, count: int
    ) -> list[tuple[int, StreamRecord]]:
        """Return the last *count* messages with a key or unique id, each with its partition.

        They were stored from *begin* to *end*, in ms since the epoch. There are fewer when they
        are large: what is beyond `read_bytes` is not read, but for the first of them.
        """
        count, left = min(count, self._limits.query_messages), self._limits.read_bytes
        found: list[tuple[int, StreamRecord]] = []
        for entry, partition in merge(
            *(
                _with(each, each.entries_of_key(key, begin, end))
                for each in self._get(stream).partitions
            ),
            key=lambda candidate: -candidate[0].stored_at,
        ):
            left -= entry.size
            if len(found) >= count or (left < 0 and found):
                break
            found += [
                (partition.number, record)
                for record in partition.records([entry])
                if key in record.draft.keys
            ]
        return found

    def lag(self, group: Group) -> list[Lag]:
        """Return how far a group is behind, in each partition of the streams it has an offset of.

        These are the partitions of RocketMQ's consumerProgress, with offsets for messages there.
        """
        found = []
        for name in sorted({stream for stream, _ in group.offsets}):
            try:
                partitions = self._get(name).partitions
            except InvalidDestinationError:
                continue
            found += [self.lag_in(group, partition) for partition in partitions]
        return found

    def furthest_behind(
        self, groups: Iterable[Group], stream: str, count: int
    ) -> list[tuple[Group, list[Lag]]]:
        """Return the *count* of a stream's groups that have most to consume, most of all first.

        These are the groups with an offset of it, each with its lag in all partitions.
        """
        partitions = self._get(stream).partitions
        reading = [
            group
            for group in groups
            if any((stream, each.number) in group.offsets for each in partitions)
        ]

        def messages(group: Group) -> int:
            return sum(each.maximum - _next_offset(group, each) for each in partitions)

        furthest = nlargest(count, reading, key=messages)
        return [(group, [self.lag_in(group, each) for each in partitions]) for group in furthest]

    def lag_in(self, group: Group, partition: Partition) -> Lag:
        """Return how far a group is behind in one partition."""
        stream, number, maximum = partition.stream, partition.number, partition.maximum
        offset = _next_offset(group, partition)
        stored_at = partition.stored_at_offset(offset)
        waiting = 0 if stored_at is None else max(0, self._context.now - stored_at)
        return Lag(stream, number, offset, maximum, waiting)


def _next_offset(group: Group, partition: Partition) -> int:
    """Return the offset at which a group goes on in a partition."""
    known = group.offsets.get((partition.stream, partition.number), 0)
    return min(max(known, partition.minimum), partition.maximum)


def _with(partition: Partition, entries: Iterator[Entry]) -> Iterator[tuple[Entry, Partition]]:
    return ((entry, partition) for entry in entries)
