"""Replay of streams' segments: records become entries of their indexes, not references."""

from collections.abc import Callable, Sequence
from typing import Final

from lockkeeper.journal.records import AddMessage
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord
from lockkeeper.message.destination import Destination
from lockkeeper.message.segments import (
    SEGMENT_PREFIX,
    SegmentName,
    lane_of,
    parse_key,
    parse_segment,
)
from lockkeeper.store.base import WRITTEN, Reference
from lockkeeper.store.kahadb.extracts import Part
from lockkeeper.store.kahadb.file_references import OFFSET_BITS, FileReferences
from lockkeeper.store.segment import SEGMENT_ENTRIES_MAX, Entry, Segment, key_hash_of

MakeSegment = Callable[[SegmentName], Segment]
SEGMENT_MARK: Final = SEGMENT_PREFIX.encode()
# Names of properties, each with the length before it.
_KEYS: Final = b"\x00\x04KEYS"
_UNIQUE_KEY: Final = b"\x00\x08UNIQ_KEY"
# The tags of texts, with the bytes that the length takes.
_TEXTS: Final = ((b"\x09", 2), (b"\x0d", 4))
_LENGTH_BYTES: Final = {tag[0]: size for tag, size in _TEXTS}


class ReplayedKeys:
    """Keys of segments' messages in transactions without an outcome yet, by message id."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, list[int]] = {}

    def note(self, row: QuickRecord, data: bytes) -> None:
        """Note the keys of an add, if its destination is a segment."""
        destination = row[3]
        after = destination.find(SEGMENT_MARK) + len(SEGMENT_MARK)
        # A segment's name goes on with a number, those of states and half messages do not.
        if after >= len(SEGMENT_MARK) and destination[after : after + 1].isdigit():
            self._hashes[row[4]] = _hashes(row, data)

    def take_hashes(self, message_id: bytes) -> list[int]:
        """Return the hashes of a message's keys, and forget them."""
        return self._hashes.pop(message_id, [])


def _hashes(row: QuickRecord, data: bytes) -> list[int]:
    """Return the hashes of the keys of the message that an add has."""
    start, end = row[5], row[5] + row[6]
    return [key_hash_of(key) for key in keys_of(data, start, end) if key]


def keys_of(data: bytes, start: int, end: int) -> list[bytes]:
    """Return the keys of the message of a stream at data[start:end], its unique id first.

    Its properties stand behind its body, so what is found last is meant.
    """
    found = [_value(data, start, end, _UNIQUE_KEY)]
    found += _value(data, start, end, _KEYS).split(b" ")
    return found


def _value(data: bytes, start: int, end: int, name: bytes) -> bytes:
    # Most messages lack one of the two. To search forwards is quick, without the length's zero.
    if data.find(name[2:], start, end) < 0:
        return b""
    at = data.rfind(name, start, end) + len(name)
    length_bytes = _LENGTH_BYTES.get(data[at], 0)
    if at < len(name) or not length_bytes:
        at, length_bytes = max((data.rfind(name + tag, start, end), size) for tag, size in _TEXTS)
        if at < 0:
            return b""
        at += len(name)
    begin = at + 1 + length_bytes
    return data[begin : begin + int.from_bytes(data[at + 1 : begin], "big")]


class SegmentReplays:
    """Begins the replay of segments; of each partition the index of one is open at a time."""

    def __init__(self, make: MakeSegment, file_references: FileReferences) -> None:
        self._make = make
        self._file_references = file_references
        self._begun: dict[tuple[str, int], list[Segment]] = {}

    def begin(self, destination: Destination) -> "SegmentReplay | None":
        """Return the replay of the segment that a destination is, None for any other one."""
        name = parse_segment(destination)
        if name is None:
            return None
        siblings = self._begun.setdefault((name.stream, name.partition), [])
        if siblings:
            siblings[-1].seal()
        siblings[:] = [each for each in siblings if not each.is_dropped]
        siblings.append(self._make(name))
        return SegmentReplay(siblings[-1], siblings, self._file_references)


class SegmentReplay:
    """One segment, as the records applied so far leave it.

    `strays` are messages in its queue that have no place in the stream, by their ids: somebody
    sent them at ActiveMQ, or moved them there, perhaps out of another segment. Of this one are
    those in the lane of its partition, with offsets before the next one of its *siblings*; at an
    offset that it has already, only the very message that is there.
    """

    def __init__(
        self, segment: Segment, siblings: Sequence[Segment], file_references: FileReferences
    ) -> None:
        self.segment = segment
        self._siblings = siblings
        self._lane = lane_of(segment.name.stream, segment.name.partition)
        self.strays: dict[bytes, Reference] = {}
        self._file_references = file_references

    def goes_on_with(self, part: Part) -> bool:
        """Tell whether the messages of *part* come next."""
        return part.first == self.segment.end and bool(part.entries)

    def adopt(self, part: Part) -> None:
        """Take over messages, as they are in the extract of a file."""
        self.segment.append_piece(part.entries, part.keys, part.size)

    def operate(
        self, rows: Sequence[QuickRecord], file_id: int, data: bytes, keys: ReplayedKeys
    ) -> None:
        """Apply adds and removals whose records are in *file_id*.

        *data* are its bytes, or nothing for records that were read before and have *keys*.
        """
        entries: list[Entry] = []
        hashes: list[tuple[int, int]] = []
        lead, tag_hash, stored_at = b"", 0, 0
        base, following = file_id << OFFSET_BITS, self.segment.end
        is_last = self._siblings[-1] is self.segment
        for row in rows:
            command, offset, size, _, message_id, _, _, _, _, _ = row
            found = _hashes(row, data) if data else keys.take_hashes(message_id)
            # Messages that came together differ by their offsets alone.
            ahead, _, number = message_id.rpartition(b":")
            if ahead != lead or not number.isdigit():
                parsed = parse_key(message_id, self._lane)
                if parsed is None:
                    self._operate_stray(command, message_id, base | offset, size)
                    continue
                lead, (_, tag_hash, stored_at) = ahead, parsed
            entry = Entry(int(number), base | offset, size, tag_hash, stored_at)
            if command == ADD and entry.offset == following and is_last:
                following += 1
                entries.append(entry)
                hashes += [(each, entry.offset) for each in found]
                continue
            self.segment.append(entries, hashes)
            entries, hashes = [], []
            self._operate_one(command, message_id, entry, found)
            following = self.segment.end
        self.segment.append(entries, hashes)

    def _operate_one(
        self, command: int, message_id: bytes, entry: Entry, hashes: list[int]
    ) -> None:
        """Apply what is no add of the next message: *entry* has its offset, and where this is."""
        present = self.segment.entry(entry.offset)
        is_another = present is not None and not _is_same(present, entry)
        if message_id in self.strays or is_another:
            self._operate_stray(command, message_id, entry.location, entry.size)
        elif command != ADD:
            self._take_out(entry.offset, entry.location >> OFFSET_BITS)
        elif present is not None:
            # Which of two adds counts is told by the order of all records.
            self.segment.is_plain = False
            self._shadow(present.location, entry.location)
        elif self.segment.end <= entry.offset < self._limit():
            self.segment.append([entry], [(each, entry.offset) for each in hashes])
        else:
            self._operate_stray(command, message_id, entry.location, entry.size)

    def _limit(self) -> int:
        """Return the offset from which on messages belong into other segments."""
        base = self.segment.base
        behind = [each.base for each in self._siblings if each.base > base and len(each)]
        return min([*behind, base + SEGMENT_ENTRIES_MAX * 2])

    def _operate_stray(self, command: int, message_id: bytes, location: int, size: int) -> None:
        """Apply an add or a removal of a message that has no place in the stream."""
        if command != ADD:
            stray = self.strays.pop(message_id, None)
            if stray is not None:
                self._end(stray.location, location >> OFFSET_BITS)
        elif message_id in self.strays:
            self._shadow(self.strays[message_id].location, location)
        else:
            self.strays[message_id] = Reference(None, size, location, WRITTEN)

    def _shadow(self, present: int, location: int) -> None:
        """Note a second add, at *location*, of the message at *present*."""
        shadows = self._file_references.shadows
        shadows.setdefault(present, set()).add(location >> OFFSET_BITS)

    def _end(self, location: int, file_id: int) -> None:
        """Note that a record in *file_id* ended the message at *location*."""
        refers = self._file_references.files[file_id].refers
        refers |= self._file_references.adds_of(location)
        self._file_references.shadows.pop(location, None)

    def _take_out(self, number: int, file_id: int) -> None:
        """Make a gap of a message that somebody consumed."""
        entry = self.segment.take_out(number)
        if entry is not None:
            self._end(entry.location, file_id)

    def update(self, add: AddMessage, size: int, location: int) -> None:
        """Note that a message was written anew at *location*."""
        message_id = add.message_id.encode()
        parsed = parse_key(message_id, self._lane)
        moved = None
        if parsed is not None and message_id not in self.strays:
            entry = Entry(parsed[0], location, size, *parsed[1:])
            if _is_same(self.segment.entry(entry.offset), entry):
                moved = self.segment.move(entry.offset, location, size)
        if moved is not None:
            self._file_references.files[location >> OFFSET_BITS].refers.add(
                moved.location >> OFFSET_BITS
            )
            return
        self._operate_stray(REMOVE, message_id, location, size)
        self._operate_stray(ADD, message_id, location, size)

    def finish(self) -> Segment:
        """Return the segment; its messages are counted for their files."""
        for file_id, size in self.segment.bytes_by_file().items():
            self._file_references.files[file_id].live += size
        return self.segment


def _is_same(present: Entry | None, entry: Entry) -> bool:
    """Tell whether there is a message at an offset, and its key is that of *entry*."""
    if present is None:
        return False
    return (present.tag_hash, present.stored_at) == (entry.tag_hash, entry.stored_at)
