"""Locations in the journal, in order, in 4 bytes each while most neighbours are in one file."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from lockkeeper.store.kahadb.file_references import OFFSET_BITS

_OFFSET: Final = (1 << OFFSET_BITS) - 1


class Places:
    """Used as a list of locations is; one that is set costs more than the others."""

    __slots__ = ("_bounds", "_files", "_moved", "_offsets")

    def __init__(self, locations: Iterable[int]) -> None:
        self._offsets = array("I")
        # The file at `_files[i]` is that of the locations from `_bounds[i]` on.
        self._bounds: list[int] = []
        self._files: list[int] = []
        self._moved: dict[int, int] = {}
        for file_id, group in groupby(locations, _file_of):
            self._bounds.append(len(self._offsets))
            self._files.append(file_id)
            self._offsets.extend([location & _OFFSET for location in group])

    def __len__(self) -> int:
        """Return how many locations there are."""
        return len(self._offsets)

    def __getitem__(self, at: int) -> int:
        """Return the location at a place."""
        moved = self._moved.get(at)
        if moved is not None:
            return moved
        file_id = self._files[bisect_right(self._bounds, at) - 1]
        return file_id << OFFSET_BITS | self._offsets[at]

    def __setitem__(self, at: int, location: int) -> None:
        """Replace the location at a place."""
        self._moved[at] = location

    def unpacked(self) -> "array[int]":
        """Return all of them, in 8 bytes each."""
        found = array("q")
        for file_id, first, end in zip(
            self._files, self._bounds, [*self._bounds[1:], len(self)], strict=True
        ):
            base = file_id << OFFSET_BITS
            found.extend([base | offset for offset in self._offsets[first:end]])
        for at, location in self._moved.items():
            found[at] = location
        return found


def _file_of(location: int) -> int:
    return location >> OFFSET_BITS
