"""Segments: the parts of a stream's partition, each a queue of the journal with an index beside it.

The index is derived: whoever opens the journal makes it anew. It holds, for each offset, where the
message is, how large its record is, the hash of its tag and when it was stored: ENTRY_BYTES each,
in files that the page cache serves, or in memory. A second one holds the hashes of its keys.
"""

import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple, Protocol

from lockkeeper.message.destination import Destination
from lockkeeper.message.segments import SegmentName

SEGMENT_BYTES_MAX: Final = 32 << 20
"""So many bytes of records fill a segment: those of a data file."""
SEGMENT_ENTRIES_MAX: Final = 1 << 20
GAP: Final = 0
"""The location of a message that is gone: somebody took it from the segment's queue."""

_ENTRY: Final = Struct(">qiiq")
_KEY: Final = Struct(">II")
_LOCATION: Final = Struct(">q")
ENTRY_BYTES: Final = _ENTRY.size
KEY_BYTES: Final = _KEY.size
_HASH_BYTES: Final = 4


class Entry(NamedTuple):
    """One message: `stored_at` is in ms since the epoch, `size` in bytes, that of its record."""

    offset: int
    location: int
    size: int
    tag_hash: int
    stored_at: int


def key_hash_of(key: bytes) -> int:
    """Return the hash that an index of keys holds, of a key in modified UTF-8: 32 bits."""
    return zlib.crc32(key)


def each_place(entries: bytes) -> Iterator[tuple[int, int]]:
    """Yield location and size of the messages in a piece of an index; see `Segment.piece_in`."""
    return ((location, size) for location, size, _, _ in _ENTRY.iter_unpack(entries))


class Octets(Protocol):
    """Bytes that only grow; where they are is the store's choice."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def append(self, data: bytes) -> None:
        """Add bytes at the end. Raises StoreError."""

    def read(self, start: int, size: int) -> bytes:
        """Return bytes. Raises StoreError."""

    def write(self, start: int, data: bytes) -> None:
        """Replace bytes. Raises StoreError."""

    def seal(self) -> None:
        """Expect no more bytes."""

    def drop(self) -> None:
        """Forget them all."""


class MemoryOctets:
    """Bytes in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self._data)

    def append(self, data: bytes) -> None:
        """See `Octets.append`."""
        self._data += data

    def read(self, start: int, size: int) -> bytes:
        """See `Octets.read`."""
        return bytes(self._data[start : start + size])

    def write(self, start: int, data: bytes) -> None:
        """See `Octets.write`."""
        self._data[start : start + len(data)] = data

    def seal(self) -> None:
        """See `Octets.seal`."""

    def drop(self) -> None:
        """See `Octets.drop`."""
        self._data.clear()


class Segment:
    """One segment and its index; `end` is the offset behind its last message.

    `bytes` are those of the records that are still there. Times do not go back within a partition
    that is searched by time: its owner sees to that. It also says by `begun_at` and `added_at`
    when the first and the last message came, in ms of its own clock, which nobody sets. It
    `is_plain` while every message is where it was first written.
    """

    __slots__ = (
        "_entries",
        "_files",
        "_keys",
        "added_at",
        "begun_at",
        "bytes",
        "end",
        "first_at",
        "is_dropped",
        "is_plain",
        "last_at",
        "name",
    )

    def __init__(self, name: SegmentName, entries: Octets, keys: Octets) -> None:
        self.name = name
        self.end = name.base
        self.bytes = 0
        self.first_at = self.last_at = 0
        self.begun_at = self.added_at = 0
        self.is_dropped = False
        self.is_plain = True
        self._entries = entries
        self._keys = keys
        self._files: dict[int, int] = {}

    @property
    def base(self) -> int:
        """The first offset."""
        return self.name.base

    @property
    def destination(self) -> Destination:
        """The queue that holds the messages."""
        return self.name.destination

    def __len__(self) -> int:
        """Return how many offsets it has, gaps among them."""
        return self.end - self.name.base

    def is_full(self) -> bool:
        """Tell whether the next message belongs into another segment."""
        return self.bytes >= SEGMENT_BYTES_MAX or len(self) >= SEGMENT_ENTRIES_MAX

    def append(self, entries: Sequence[Entry], keys: Iterable[tuple[int, int]] = ()) -> None:
        """Add messages in the order of their offsets; what is missing before one is a gap.

        *keys* are hashes (32 bits) with the offset of the message that has the key.
        """
        packed = []
        for offset, location, size, tag_hash, stored_at in entries:
            while self.end < offset:
                packed.append(_ENTRY.pack(GAP, 0, 0, self.last_at or stored_at))
                self.end += 1
                self.is_plain = False
            packed.append(_ENTRY.pack(location, size, tag_hash, stored_at))
            self.end += 1
            self._count(location, size)
            self.first_at = self.first_at or stored_at
            self.last_at = stored_at
        self._entries.append(b"".join(packed))
        hashes = b"".join([_KEY.pack(key, offset - self.base) for key, offset in keys])
        if hashes:
            self._keys.append(hashes)

    def append_piece(self, entries: bytes, keys: bytes, size: int) -> None:
        """Add what `piece_in` returned, of messages with *size* bytes that go on where this ends.

        They are all in one data file.
        """
        location, _, _, stored_at = _ENTRY.unpack_from(entries)
        self.end += len(entries) // ENTRY_BYTES
        self._count(location, size)
        self.first_at = self.first_at or stored_at
        self.last_at = _ENTRY.unpack_from(entries, len(entries) - ENTRY_BYTES)[3]
        self._entries.append(entries)
        self._keys.append(keys)

    def piece_in(self, file_id: int) -> tuple[int, bytes, bytes]:
        """Return the first offset in a data file, and what the index has of all messages in it.

        Only a plain segment has its messages in the order of the files. Raises StoreError.
        """
        first, behind = self._first_from(file_id), self._first_from(file_id + 1)
        entries = self._entries.read(
            (first - self.base) * ENTRY_BYTES, (behind - first) * ENTRY_BYTES
        )
        begin, end = (self._key_from(offset) * KEY_BYTES for offset in (first, behind))
        return first, entries, self._keys.read(begin, end - begin)

    def _first_from(self, file_id: int) -> int:
        """Return the first offset whose message is in a data file or a later one."""
        found = bisect_left(range(len(self)), file_id << 32, key=self._location)
        return self.base + found

    def _location(self, at: int) -> int:
        location: int = _LOCATION.unpack(self._entries.read(at * ENTRY_BYTES, _LOCATION.size))[0]
        return location

    def _key_from(self, offset: int) -> int:
        """Return the number of the first key of the message at *offset* or a later one."""
        count = self._keys.size // KEY_BYTES
        return bisect_left(range(count), offset - self.base, key=self._offset_of_key)

    def _offset_of_key(self, at: int) -> int:
        offset: int = _KEY.unpack(self._keys.read(at * KEY_BYTES, KEY_BYTES))[1]
        return offset

    def entries(self, offset: int, count: int) -> list[Entry]:
        """Return up to *count* messages from *offset* on, gaps among them. Raises StoreError."""
        start = max(offset, self.base)
        count = min(count, self.end - start)
        if count <= 0:
            return []
        data = self._entries.read((start - self.base) * ENTRY_BYTES, count * ENTRY_BYTES)
        return [Entry(start + at, *fields) for at, fields in enumerate(_ENTRY.iter_unpack(data))]

    def entry(self, offset: int) -> Entry | None:
        """Return the message at *offset*, None where there is none."""
        found = self.entries(offset, 1) if offset >= self.base else []
        return found[0] if found and found[0].location != GAP else None

    def move(self, offset: int, location: int, size: int) -> Entry | None:
        """Note that a message is elsewhere now, written anew; returns what it was."""
        entry = self.take_out(offset)
        if entry is not None:
            data = _ENTRY.pack(location, size, entry.tag_hash, entry.stored_at)
            self._entries.write((offset - self.base) * ENTRY_BYTES, data)
            self._count(location, size)
        return entry

    def _count(self, location: int, size: int) -> None:
        self.bytes += size
        file_id = location >> 32
        self._files[file_id] = self._files.get(file_id, 0) + size

    def take_out(self, offset: int) -> Entry | None:
        """Make a gap of a message; returns what it was, None if there was none."""
        entry = self.entry(offset)
        if entry is None:
            return None
        self.is_plain = False
        self._entries.write((offset - self.base) * ENTRY_BYTES, _LOCATION.pack(GAP))
        self._count(entry.location, -entry.size)
        return entry

    def offset_at(self, time: int) -> int:
        """Return the first offset whose message was stored at *time* (ms) or later, or `end`."""
        low, high = self.base, self.end
        while low < high:
            middle = (low + high) // 2
            if self.entries(middle, 1)[0].stored_at < time:
                low = middle + 1
            else:
                high = middle
        return low

    def offsets_of(self, key: int) -> list[int]:
        """Return the offsets of messages with a key of this hash, in order."""
        data, wanted = self._keys.read(0, self._keys.size), key.to_bytes(_HASH_BYTES, "big")
        found: list[int] = []
        at = data.find(wanted)
        while at >= 0:
            if at % _KEY.size == 0:
                found.append(self.base + _KEY.unpack_from(data, at)[1])
            at = data.find(wanted, at + 1)
        return sorted(set(found))

    def seal(self) -> None:
        """Expect no more messages: the next ones go into another segment."""
        self._entries.seal()
        self._keys.seal()

    def bytes_in(self, file_id: int) -> int:
        """Return how many bytes of messages lie in a data file."""
        return self._files.get(file_id, 0)

    def bytes_by_file(self) -> dict[int, int]:
        """Return how many bytes of messages lie in each data file."""
        return {file_id: size for file_id, size in self._files.items() if size}

    def forget(self) -> None:
        """Forget the index: the messages are gone."""
        self.is_dropped = True
        self._entries.drop()
        self._keys.drop()


class StreamStore(Protocol):
    """The part of a store that streams need besides adding messages to segments' queues."""

    def begin(self, name: SegmentName) -> Segment:
        """Return a new, empty segment."""

    def read_frames(self, entries: Sequence[Entry]) -> list[bytes]:
        """Return the messages of *entries*, none of them a gap; blocks.

        Each is a loose OpenWire message without its size prefix, as `Message.body` is; empty for
        one that is gone meanwhile. Raises StoreError.
        """

    def frame_at(self, location: int) -> tuple[Destination, bytes]:
        """Return the queue and the message of the add record at *location*; blocks.

        Raises GoneError, also for a location where no message is.
        """

    def drop(self, segment: Segment) -> None:
        """Forget a segment with all its messages: one record, and no removals.

        Messages of it that are being written are given to `release` once they are durable.
        """

    def release(self, entries: Sequence[Entry]) -> None:
        """Count messages as gone whose segment had been dropped before they were durable."""
