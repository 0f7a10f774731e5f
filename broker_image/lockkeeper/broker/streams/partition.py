"""One partition of a stream: segments in a row, the last of which is added to.

Offsets are given when messages come; readers see a message once it is durable. So a crash takes
back no offset that anybody has seen.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lockkeeper.broker.context import LOOK_BYTES, Context
from lockkeeper.broker.streams.drafts import (
    Draft,
    StreamRecord,
    compose,
    key_hashes,
    tag_hash_of,
)
from lockkeeper.broker.streams.filters import EVERYTHING, Filter
from lockkeeper.broker.streams.settings import Retention
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.message import Message
from lockkeeper.message.segments import SegmentName, lane_of
from lockkeeper.message.text import encode_text
from lockkeeper.store.base import Add, Reference
from lockkeeper.store.segment import GAP, Entry, Segment, key_hash_of

SCANNED_MAX: Final = 16_384
"""So many entries are looked at for one read, which may end before it has found anything."""
RECENT_BYTES_MAX: Final = 16 << 20
ENTRIES_AT_ONCE: Final = 512
LOADED_BYTES_MAX: Final = 8 << 20
"""So many bytes of messages are read for one read, LOOK_BYTES more for each, or a few more."""


class RecentFrames:
    """The messages that became durable last, of all partitions, for those who wait for them."""

    def __init__(self, bytes_max: int = RECENT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._frames: dict[int, bytes] = {}
        self._order: deque[int] = deque()

    def keep(self, location: int, frame: bytes) -> None:
        """Keep a message until enough others came."""
        if len(frame) > self._bytes_max // 4:
            return
        self._frames[location] = frame
        self._order.append(location)
        self._bytes += len(frame)
        while self._bytes > self._bytes_max:
            self._bytes -= len(self._frames.pop(self._order.popleft()))

    def find(self, location: int) -> bytes | None:
        """Return a message, if it is kept."""
        return self._frames.get(location)


@dataclass(slots=True)
class Scan:
    """Result of a read: messages, and the offset to go on from."""

    records: list[StreamRecord]
    next_offset: int


class Pending:
    """A run of messages that are not durable yet; the receipt of the last of them.

    `done` is called with their locations when they are.
    """

    __slots__ = (
        "_done",
        "_is_settled",
        "_partition",
        "bytes",
        "first",
        "keys",
        "references",
        "segment",
        "stored_at",
        "tag_hashes",
    )

    def __init__(
        self,
        partition: "Partition",
        segment: Segment,
        first: int,
        stored_at: int,
        drafts: Sequence[Draft],
        tag_hashes: Sequence[int],
        references: list[Reference],
        done: "Done",
    ) -> None:
        self._partition = partition
        self._done = done
        self._is_settled = False
        self.segment = segment
        self.first = first
        self.stored_at = stored_at
        self.references = references
        self.tag_hashes = tag_hashes
        self.keys = key_hashes(drafts, first)
        self.bytes = sum(reference.size for reference in references)

    def settle(self) -> None:
        """Show the messages to readers, and tell whoever waits: once, whoever calls again."""
        if self._is_settled:
            return
        self._is_settled = True
        locations = self._partition.publish(self)
        self._done(self, locations)


Done = Callable[[Pending, tuple[int, ...]], None]
"""Called with a run that is durable, and the locations of its records."""


class Partition:
    """Messages by offset, from `minimum` up to `maximum`; `next` is what the next one gets.

    Readers see less than `next` while messages are being written. `published` is called when
    they see more. What it keeps, and for how long, goes by the steady clock; messages tell the
    time of people, but those of a partition that `is_steady` tell the steady one.
    """

    __slots__ = (
        "_began",
        "_context",
        "_found",
        "_is_apart",
        "_lane",
        "_recent",
        "_segments",
        "_store",
        "_topic",
        "bytes",
        "is_steady",
        "maximum",
        "next",
        "number",
        "published",
        "retention",
        "stored_at",
        "stream",
    )

    def __init__(
        self,
        context: Context,
        recent: RecentFrames,
        stream: str,
        number: int,
        segments: Sequence[Segment],
        retention: Retention,
        published: "Callable[[Partition], None]",
        is_steady: bool = False,
    ) -> None:
        self._context = context
        self._store = context.store
        self._recent = recent
        self._topic: Destination = topic(stream)
        self._lane = lane_of(stream, number)
        self._segments = list(segments)
        self._is_apart = False
        self.stream = stream
        self.number = number
        self.retention = retention
        self.next = self.maximum = segments[-1].end if segments else 0
        self.stored_at = segments[-1].last_at if segments else 0
        # Bytes of the records that are kept.
        self.bytes = sum(segment.bytes for segment in segments)
        self.published = published
        self.is_steady = is_steady
        self._began, self._found = context.steady, self.maximum
        for segment in segments:
            segment.begun_at = self._not_to_come(segment.first_at)
            segment.added_at = self._not_to_come(segment.last_at)

    def _not_to_come(self, stored_at: int) -> int:
        """Return a time of a former life as one of this one: it was before it, at the latest now.

        All that tells how long ago it was is the clock of people, which may have been wrong.
        """
        return min(stored_at or self._began, self._began)

    @property
    def minimum(self) -> int:
        """The first offset that is kept."""
        return self._segments[0].base if self._segments else 0

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, oldest first."""
        return self._segments

    # Adding

    def prepare(self, drafts: Sequence[Draft], sequence: int, done: Done) -> Pending:
        """Give *drafts* their offsets; whoever calls hands them to the store, in this order.

        *sequence* is the first of as many brokerSequenceIds. Raises ValueError for a text that
        no message can hold, with nothing changed.
        """
        first, stored_at = self.next, max(self._context.now, self.stored_at)
        if self.is_steady:
            stored_at = self._context.steady
        hashes = [tag_hash_of(draft.tags) for draft in drafts]
        place = self._topic, self._lane
        references = [
            _reference(compose(draft, *place, first + at, stored_at, sequence + at, hashes[at]))
            for at, draft in enumerate(drafts)
        ]
        self.next += len(drafts)
        self.stored_at = stored_at
        segment = self._segment_for(first)
        return Pending(self, segment, first, stored_at, drafts, hashes, references, done)

    def add(self, pending: Pending) -> None:
        """Hand a run that was prepared to the store."""
        pending.references[-1].receipt = pending
        self._store.add_run(pending.segment.destination, pending.references)

    def addition(self, pending: Pending) -> Add:
        """Return a run that was prepared as a part of a transaction of the store."""
        return Add(pending.segment.destination, pending.references)

    def _segment_for(self, first: int) -> Segment:
        """Return the segment that takes messages from *first* on."""
        last = self._segments[-1] if self._segments else None
        if last is not None and not (last.is_full() or self._is_apart or self._is_old(last)):
            return last
        self._is_apart = False
        segment = self._store.streams.begin(SegmentName(self.stream, self.number, first))
        segment.begun_at = segment.added_at = self._context.steady
        self._segments.append(segment)
        return segment

    def _is_old(self, segment: Segment) -> bool:
        """Tell whether a segment has been added to for long enough."""
        return self._context.steady - segment.begun_at >= self.retention.segment_ms

    def publish(self, pending: Pending) -> tuple[int, ...]:
        """Let readers see messages that are durable; returns the locations of their records."""
        segment, first, stored_at = pending.segment, pending.first, pending.stored_at
        entries = [
            Entry(first + at, reference.location, reference.size, tag_hash, stored_at)
            for at, (reference, tag_hash) in enumerate(
                zip(pending.references, pending.tag_hashes, strict=True)
            )
        ]
        locations = tuple(entry.location for entry in entries)
        if segment.is_dropped:
            self._store.streams.release(entries)
            return locations
        if not len(segment) and len(self._segments) > 1:
            self._segments[self._segments.index(segment) - 1].seal()
        segment.append(entries, pending.keys)
        segment.added_at = self._context.steady
        self.bytes += pending.bytes
        for reference in pending.references:
            self._recent.keep(reference.location, reference.loaded.body)
        self.maximum = first + len(entries)
        self.published(self)
        return locations

    # Reading

    def scan(self, offset: int, count: int, bytes_max: int, wanted: Filter) -> Scan:
        """Return up to *count* messages, of *bytes_max* bytes, that the filter lets pass.

        The first one may be larger. Looks at SCANNED_MAX entries at most, and ends after
        LOADED_BYTES_MAX of messages that the filter looks into; blocks while they are read. Raises
        StoreError.
        """
        scan = Scan([], max(offset, self.minimum))
        loaded, is_full, end = 0, False, scan.next_offset + SCANNED_MAX
        # Whatever is chosen, each entry is fetched once.
        entries: Sequence[Entry] = ()
        while scan.next_offset < min(end, self.maximum) and len(scan.records) < count:
            if is_full or loaded >= LOADED_BYTES_MAX:
                break
            at_once = min(ENTRIES_AT_ONCE, count - len(scan.records), end - scan.next_offset)
            if wanted is not EVERYTHING:
                at_once = min(ENTRIES_AT_ONCE, end - scan.next_offset)
            entries = entries or self._entries(scan.next_offset, at_once)
            if not entries:
                # Nothing is left up to the end: groups have passed what others took away.
                scan.next_offset = self.maximum
                break
            size = sum(record.size for record in scan.records)
            chosen: list[Entry] = []
            passed = 0
            for entry in entries:
                if entry.location != GAP and wanted.accepts_hash(entry.tag_hash):
                    is_full = bool(size) and size + entry.size > bytes_max
                    if is_full or len(scan.records) + len(chosen) >= count:
                        break
                    size += entry.size
                    loaded += LOOK_BYTES + entry.size
                    chosen.append(entry)
                scan.next_offset = entry.offset + 1
                passed += 1
            entries = entries[passed:]
            before = len(scan.records)
            self._load(chosen, wanted, scan)
            # What was read in vain leaves room for more.
            is_full &= len(scan.records) - before == len(chosen)
        return scan

    def _load(self, entries: list[Entry], wanted: Filter, scan: Scan) -> None:
        """Add those of *entries* to a scan that the filter lets pass once they are read."""
        for record in self.records(entries):
            if wanted.accepts_frame(record.frame):
                scan.records.append(record)

    def records(self, entries: Sequence[Entry]) -> list[StreamRecord]:
        """Return the messages of *entries*, without those that are gone. Raises StoreError."""
        frames = [self._recent.find(entry.location) for entry in entries]
        missing = [entry for entry, frame in zip(entries, frames, strict=True) if frame is None]
        read = iter(self._store.streams.read_frames(missing) if missing else ())
        return [
            StreamRecord(entry.offset, entry.stored_at, entry.location, entry.size, content)
            for entry, frame in zip(entries, frames, strict=True)
            if (content := next(read) if frame is None else frame)
        ]

    def newest(self, count: int, bytes_max: int) -> list[StreamRecord]:
        """Return the last messages, in order: of *count* offsets, and of *bytes_max* bytes.

        The very last one may be larger. Blocks while they are read. Raises StoreError.
        """
        last: list[Entry] = []
        for segment in reversed(self._segments):
            if len(last) == count:
                break
            first = max(segment.base, segment.end - (count - len(last)))
            last[:0] = segment.entries(first, count - len(last))
        chosen: list[Entry] = []
        size = 0
        for entry in reversed(last):
            size += entry.size if entry.location != GAP else 0
            if chosen and size > bytes_max:
                break
            if entry.location != GAP:
                chosen.append(entry)
        return self.records(chosen[::-1])

    def _entries(self, offset: int, count: int) -> list[Entry]:
        """Return messages from *offset* on, or from the first after it that there is.

        There may be none: segments are empty while their first message is written, or when others
        took all messages away.
        """
        at = max(0, bisect_right(self._segments, offset, key=_base) - 1)
        while at < len(self._segments):
            segment = self._segments[at]
            if len(segment) and offset < segment.end:
                return segment.entries(offset, count)
            at += 1
        return []

    def record(self, offset: int) -> StreamRecord | None:
        """Return the message at *offset*, None when it is gone or not there yet."""
        if not self.minimum <= offset < self.maximum:
            return None
        entries = self._entries(offset, 1)
        if not entries or entries[0].offset != offset or entries[0].location == GAP:
            return None
        return next(iter(self.records(entries)), None)

    def offset_at(self, time: int) -> int:
        """Return the first offset that was stored at *time* (ms) or later, else `maximum`."""
        for segment in self._segments:
            if len(segment) and segment.last_at >= time:
                return segment.offset_at(time)
        return self.maximum

    def stored_at_offset(self, offset: int) -> int | None:
        """Return when the message at *offset* was stored, in ms; None where there is none."""
        if not self.minimum <= offset < self.maximum:
            return None
        entries = self._entries(offset, 1)
        return entries[0].stored_at if entries else None

    def steady_at(self, offset: int, stored_at: int) -> int:
        """Return since when a message of a steady partition is here, by this life's clock."""
        return stored_at if offset >= self._found else self._not_to_come(stored_at)

    def entries_of_key(self, key: str, begin: int, end: int) -> Iterator[Entry]:
        """Yield what may be messages with a key, stored from *begin* to *end* (ms), last first."""
        wanted = key_hash_of(encode_text(key))
        for segment in reversed(self._segments):
            if not len(segment) or segment.first_at > end:
                continue
            if segment.last_at < begin:
                break
            for offset in reversed(segment.offsets_of(wanted)):
                entry = segment.entry(offset)
                if entry is not None and begin <= entry.stored_at <= end:
                    yield entry

    # Ending

    def end_oldest(self) -> bool:
        """Forget the oldest segment if retention ends it; tells whether it did.

        The last one with a message stays: the offset of the next one is told by it.
        """
        if len(self._segments) < 2 or not len(self._segments[1]) or not self._is_over():
            return False
        self._drop()
        return True

    def end_before(self, offset: int) -> None:
        """Forget the segments that have nothing from *offset* on, but for the last one."""
        while len(self._segments) > 1 and len(self._segments[1]):
            if self._segments[0].end > offset:
                return
            self._drop()

    def _is_over(self) -> bool:
        """Tell whether the first segment is not to be kept any more."""
        oldest, retention = self._segments[0], self.retention
        if retention.time and oldest.added_at + retention.time < self._context.steady:
            return True
        if retention.bytes and self.bytes - oldest.bytes >= retention.bytes:
            return True
        kept = self.maximum - oldest.end
        return bool(retention.messages) and kept >= retention.messages

    def _drop(self) -> None:
        segment = self._segments.pop(0)
        self.bytes -= segment.bytes
        self._store.streams.drop(segment)

    def pass_over(self, offset: int) -> None:
        """Give messages offsets from *offset* on, if the next one is not beyond it already."""
        if offset > self.next:
            self.next = self.maximum = offset
            self._is_apart = True

    def end(self) -> None:
        """Forget everything: the stream is deleted."""
        while self._segments:
            self._drop()


def _base(segment: Segment) -> int:
    return segment.base


def _reference(message: Message) -> Reference:
    return Reference(message, len(message.body))
