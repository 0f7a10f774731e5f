"""Replay of streams' segments: records become entries of their indexes, not references."""

from collections.abc import Callable
from typing import Final

from lockkeeper.journal.records import AddMessage
from lockkeeper.journal.walk import ADD, QuickRecord
from lockkeeper.message.destination import Destination
from lockkeeper.store.kahadb.file_references import OFFSET_BITS, FileReferences
from lockkeeper.store.segment import (
    GAP,
    SEGMENT_ENTRIES_MAX,
    SEGMENT_PREFIX,
    Entry,
    Segment,
    SegmentName,
    key_hash_of,
    parse_key,
    parse_segment,
)

MakeSegment = Callable[[SegmentName], Segment]
SEGMENT_MARK: Final = SEGMENT_PREFIX.encode()
# Names of properties, each with the length before it.
_KEYS: Final = b"\x00\x04KEYS"
_UNIQUE_KEY: Final = b"\x00\x08UNIQ_KEY"
# The tags of texts, with the bytes that the length takes.
_TEXTS: Final = ((b"\x09", 2), (b"\x0d", 4))


class ReplayedKeys:
    """Keys of segments' messages whose adds have been seen and not applied yet, by message id."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, list[int]] = {}

    def note(self, row: QuickRecord, data: bytes) -> None:
        """Note the keys of an add whose destination has SEGMENT_MARK in its name."""
        destination = row[3]
        after = destination.find(SEGMENT_MARK) + len(SEGMENT_MARK)
        # A segment's name goes on with a number, those of states and half messages do not.
        if destination[after : after + 1].isdigit():
            start, end = row[5], row[5] + row[6]
            self._hashes[row[4]] = [key_hash_of(key) for key in keys_of(data, start, end) if key]

    def take_hashes(self, message_id: bytes) -> list[int]:
        """Return the hashes of a message's keys, and forget them."""
        return self._hashes.pop(message_id, [])


def keys_of(data: bytes, start: int, end: int) -> list[bytes]:
    """Return the keys of the message of a stream at data[start:end], its unique id first.

    Its properties stand behind its body, so what is found last is meant.
    """
    found = [_value(data, start, end, _UNIQUE_KEY)]
    found += _value(data, start, end, _KEYS).split(b" ")
    return found


def _value(data: bytes, start: int, end: int, name: bytes) -> bytes:
    at, length_bytes = max((data.rfind(name + tag, start, end), size) for tag, size in _TEXTS)
    if at < 0:
        return b""
    at += len(name) + 1
    begin = at + length_bytes
    return data[begin : begin + int.from_bytes(data[at:begin], "big")]


class SegmentReplays:
    """Begins the replay of segments; of each partition the index of one is open at a time."""

    def __init__(self, make: MakeSegment, file_references: FileReferences) -> None:
        self._make = make
        self._file_references = file_references
        self._last: dict[tuple[str, int], Segment] = {}

    def begin(self, destination: Destination) -> "SegmentReplay | None":
        """Return the replay of the segment that a destination is, None for any other one."""
        name = parse_segment(destination)
        if name is None:
            return None
        place = name.stream, name.partition
        if place in self._last:
            self._last[place].seal()
        self._last[place] = self._make(name)
        return SegmentReplay(self._last[place], self._file_references)


class SegmentReplay:
    """One segment, as the records applied so far leave it."""

    def __init__(self, segment: Segment, file_references: FileReferences) -> None:
        self.segment = segment
        self._file_references = file_references

    def operate(self, row: QuickRecord, file_id: int, keys: ReplayedKeys) -> None:
        """Apply an add or a removal whose record is in *file_id*."""
        command, offset, size, _, message_id, _, _, _, _, _ = row
        hashes = keys.take_hashes(message_id) if command == ADD else []
        parsed = parse_key(message_id)
        if parsed is None:
            return
        number, tag_hash, stored_at = parsed
        if command != ADD:
            self._take_out(number, file_id)
            return
        location = file_id << OFFSET_BITS | offset
        if number < self.segment.end:
            present = self.segment.entry(number)
            if present is not None:
                shadows = self._file_references.shadows
                shadows.setdefault(present.location, set()).add(file_id)
        elif number < self.segment.base + SEGMENT_ENTRIES_MAX * 2:
            entry = Entry(number, location, size, tag_hash, stored_at)
            self.segment.append([entry], [(each, number) for each in hashes])

    def _take_out(self, number: int, file_id: int) -> None:
        """Make a gap of a message that somebody consumed."""
        entry = self.segment.take_out(number)
        if entry is not None:
            refers = self._file_references.files[file_id].refers
            refers |= self._file_references.adds_of(entry.location)
            self._file_references.shadows.pop(entry.location, None)

    def update(self, add: AddMessage, size: int, location: int) -> None:
        """Note that a message was written anew at *location*."""
        parsed = parse_key(add.message_id.encode())
        moved = None if parsed is None else self.segment.move(parsed[0], location, size)
        if moved is not None and moved.location != GAP:
            refers = self._file_references.files[location >> OFFSET_BITS].refers
            refers.add(moved.location >> OFFSET_BITS)

    def finish(self) -> Segment:
        """Return the segment; its messages are counted for their files."""
        for file_id, size in self.segment.bytes_by_file().items():
            self._file_references.files[file_id].live += size
        return self.segment
