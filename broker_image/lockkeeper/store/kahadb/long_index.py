"""The messages of a long queue by their ids, while the journal is read: 18 bytes for most of them.

The newest are in a dictionary. Of all others there are columns; an id is found by 79 bits that
are made of it, 47 of which depend on a secret of this process.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from lockkeeper.store.base import WRITTEN, Reference
from lockkeeper.store.kahadb.file_references import OFFSET_BITS
from lockkeeper.store.kahadb.places import Places
from lockkeeper.store.packed import (
    RUN_MESSAGES,
    Column,
    PackedReferences,
    PackedRun,
    column_of,
    each_of,
)

RECENT_MAX: Final = 50_000
_PLACE_BITS: Final = 17
"""A key in a column is a hash, and in its last bits the place of the message in the column."""
COLUMN_MAX: Final = 1 << _PLACE_BITS
_PLACE: Final = COLUMN_MAX - 1
_BITS: Final = 1 << 27
_MASK: Final = _BITS - 1


class _Column:
    """Messages that came one after the other; `ended` marks those that are gone."""

    __slots__ = (
        "_checks",
        "_is_sorted",
        "_keys",
        "_places",
        "_priorities",
        "_sizes",
        "ended",
        "left",
    )

    def __init__(self, identifiers: list[bytes], references: list[Reference]) -> None:
        self._places = Places(each.location for each in references)
        self._sizes = column_of([each.size for each in references])
        self._priorities = column_of([each.priority for each in references])
        self._keys = array(
            "q", [number & ~_PLACE | at for at, number in enumerate(map(hash, identifiers))]
        )
        self._checks = array("I", map(crc32, identifiers))
        self._is_sorted = False
        self.ended: bytearray | None = None
        self.left = len(references)

    def find(self, number: int, check: int) -> int:
        """Return where the message with this hash and this check is, -1 if it is not here."""
        if not self._is_sorted:
            self._keys = array("q", sorted(self._keys))
            self._is_sorted = True
        keys, least = self._keys, number & ~_PLACE
        for at in range(bisect_left(keys, least), len(keys)):
            found = keys[at] & _PLACE
            if keys[at] - found != least:
                break
            if self._checks[found] == check and not (self.ended and self.ended[found]):
                return found
        return -1

    def end(self, at: int) -> None:
        """Mark a message as gone."""
        if self.ended is None:
            self.ended = bytearray(len(self._places))
        self.ended[at] = 1
        self.left -= 1

    def move(self, at: int, location: int, size: int) -> None:
        """Let a message be elsewhere in the journal."""
        self._places[at] = location
        sizes = self._sizes
        if isinstance(sizes, int) or sizes.typecode != "i":
            # It may be larger than all others.
            sizes = self._sizes = array("i", each_of(sizes, len(self._places)))
        sizes[at] = size

    def reference(self, at: int) -> Reference:
        """Return a reference to a message."""
        sizes, priorities = self._sizes, self._priorities
        size = sizes if isinstance(sizes, int) else sizes[at]
        reference = Reference(None, size, self._places[at], WRITTEN)
        reference.priority = priorities if isinstance(priorities, int) else priorities[at]
        return reference

    def runs(self, counts: "Counter[int]") -> Iterator[PackedRun]:
        """Yield what is not gone, in runs, and count its bytes in each file."""
        locations, sizes, priorities = self._places.unpacked(), self._sizes, self._priorities
        if self.ended is not None:
            here = [at for at, is_gone in enumerate(self.ended) if not is_gone]
            locations = array("q", [locations[at] for at in here])
            sizes, priorities = _chosen(sizes, here), _chosen(priorities, here)
        for location, size in zip(locations, each_of(sizes, len(locations)), strict=True):
            counts[location >> OFFSET_BITS] += size
        for first in range(0, len(locations), RUN_MESSAGES):
            run = slice(first, first + RUN_MESSAGES)
            yield PackedRun.read(locations[run], _part(sizes, run), _part(priorities, run))


class LongIndex:
    """Used as a dictionary of messages in the order of their adds is."""

    def __init__(self, recent: dict[bytes, Reference]) -> None:
        self._recent = recent
        self._columns: list[_Column] = []
        self._last: _Column | None = None
        # Two bits for each id of an older message: mostly they tell that an id is none of them.
        self._bits = bytearray(_BITS >> 3)

    def compact(self) -> None:
        """Put what is in the dictionary into columns, if it is much."""
        recent = self._recent
        if len(recent) < RECENT_MAX:
            return
        bits = self._bits
        for number in map(hash, recent):
            first, second = number & _MASK, (number >> 32) & _MASK
            bits[first >> 3] |= 1 << (first & 7)
            bits[second >> 3] |= 1 << (second & 7)
        identifiers, references = list(recent), list(recent.values())
        self._recent = {}
        for at in range(0, len(identifiers), COLUMN_MAX):
            to = at + COLUMN_MAX
            self._columns.append(_Column(identifiers[at:to], references[at:to]))

    def _find(self, message_id: bytes) -> tuple[_Column, int] | None:
        number = hash(message_id)
        first, second = number & _MASK, (number >> 32) & _MASK
        bits = self._bits
        if not (bits[first >> 3] >> (first & 7) & 1 and bits[second >> 3] >> (second & 7) & 1):
            return None
        check = crc32(message_id)
        # As a rule messages end in their order.
        last = self._last
        if last is not None and (at := last.find(number, check)) >= 0:
            return last, at
        for column in self._columns:
            if column is not last and column.left and (at := column.find(number, check)) >= 0:
                self._last = column
                return column, at
        return None

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self._recent) + sum(column.left for column in self._columns)

    def __contains__(self, message_id: object) -> bool:
        """Tell whether a message is here."""
        if message_id in self._recent:
            return True
        number, bits = hash(message_id), self._bits
        first = number & _MASK
        if not bits[first >> 3] >> (first & 7) & 1:
            return False
        assert isinstance(message_id, bytes)
        return self._find(message_id) is not None

    def __getitem__(self, message_id: bytes) -> Reference:
        """Return a message; what is changed in it is lost unless it is set again."""
        reference = self._recent.get(message_id)
        if reference is not None:
            return reference
        found = self._find(message_id)
        if found is None:
            raise KeyError(message_id)
        return found[0].reference(found[1])

    def __setitem__(self, message_id: bytes, reference: Reference) -> None:
        """Add a message, which is not here, at the end."""
        self._recent[message_id] = reference

    def move(self, message_id: bytes, location: int, size: int) -> None:
        """Let a message be elsewhere in the journal; it keeps its turn."""
        found = self._find(message_id) if message_id not in self._recent else None
        if found is not None:
            column, at = found
            column.move(at, location, size)

    def pop(self, message_id: bytes, default: Reference | None = None) -> Reference | None:
        """Take a message out."""
        reference = self._recent.pop(message_id, None)
        if reference is not None:
            return reference
        found = self._find(message_id)
        if found is None:
            return default
        column, at = found
        column.end(at)
        return column.reference(at)

    def finish(self) -> tuple[PackedReferences, Counter[int]]:
        """Return all messages, in order, and their bytes in each file; nothing stays here."""
        counts: Counter[int] = Counter()
        runs: list[PackedRun] = []
        columns, self._columns, self._last = self._columns, [], None
        self._bits = bytearray()
        columns.reverse()
        while columns:
            # One column after the other gives its room to the runs.
            runs += columns.pop().runs(counts)
        rest, self._recent = list(self._recent.values()), {}
        for each in rest:
            counts[each.location >> OFFSET_BITS] += each.size
        return PackedReferences(runs, rest), counts


def _chosen(column: Column, places: list[int]) -> Column:
    if isinstance(column, int):
        return column
    return array(column.typecode, [column[at] for at in places])


def _part(column: Column, run: slice) -> Column:
    return column if isinstance(column, int) else column[run]
