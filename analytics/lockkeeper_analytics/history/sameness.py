"""Marks by which a journal is known again, also when files of it are gone or compacted."""

from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reading.compacted import compaction_of, first_of
from lockkeeper_analytics.reading.storage import open_file
from lockkeeper_analytics.streams.offsets import JournalOffset
from lockkeeper_analytics.streams.tail import Tail

OTHERS_MAX = 64
"""So many files before the one where a run ended are noted: half the oldest, half the newest.

The oldest may stay longest, for messages that nobody takes.
"""
_CHECKED_BYTES = 4096
"""So much before the place where a run ended tells whether the journal is still the same."""


NOTED = ("checksum", "identity", "others")
"""The names of what is noted: of the file where a run ended, and of some before it."""


class Marks:
    """What a run notes about the journal of *tail*, and the next one compares.

    Errors name the *place* in the history where its records are.
    """

    def __init__(self, tail: Tail, place: str) -> None:
        self._tail = tail
        self._place = place
        self._firsts: dict[int, str] = {}

    def noted_at(self, offset: JournalOffset) -> dict[str, Any]:
        """Return what is to be noted where a run ends."""
        return {
            "checksum": self._checksum(offset),
            "identity": self._first(offset.file),
            "others": {str(number): self._first(number) for number in self._others(offset)},
        }

    def is_compacted(self, offset: JournalOffset, noted: Mapping[str, Any]) -> bool:
        """Tell whether the file where the last run ended was compacted since.

        Raises AnalyticsError where the journal is another one. Nothing tells where none of the
        files is left that were noted.
        """
        others = noted.get("others", {})
        is_another = offset.file > max(self._tail.files) or any(
            int(number) in self._tail.files and self._first(int(number)) != first
            for number, first in others.items()
        )
        is_compacted = self._differs(offset, noted["checksum"])
        if is_another or (is_compacted and not self._was(offset.file, noted.get("identity", ""))):
            raise AnalyticsError(
                f"{self._tail.directory}: it is not the journal of which {self._place} has the "
                f"records before byte {offset.position} of db-{offset.file}.log, or a copy was put "
                "back; keep its records under another name (NAME=DIR), or in another folder"
            )
        return is_compacted

    def _differs(self, offset: JournalOffset, checksum: int) -> bool:
        """Tell whether the file of *offset* is there with other bytes before it, or fewer."""
        file = self._tail.files.get(offset.file)
        return file is not None and (
            file.size < offset.position or self._checksum(offset) != checksum
        )

    def _was(self, number: int, first: str) -> bool:
        """Tell whether a file is what was left of the one that is known by *first*."""
        compaction = compaction_of(self._tail.files[number])
        return compaction is not None and compaction.first == first

    def _others(self, offset: JournalOffset) -> Iterator[int]:
        before = [number for number in self._tail.files if number < offset.file]
        half = OTHERS_MAX // 2
        for number in before if len(before) <= OTHERS_MAX else (*before[:half], *before[-half:]):
            if self._first(number):
                yield number

    def _first(self, number: int) -> str:
        """Return by what a file is known, compacted or not; empty: it is not there."""
        if number not in self._firsts:
            file = self._tail.files.get(number)
            self._firsts[number] = "" if file is None else first_of(file.path)
        return self._firsts[number]

    def _checksum(self, offset: JournalOffset) -> int:
        """Return a checksum over what stands before *offset* in its file."""
        if offset.file not in self._tail.files:
            return 0
        start = max(offset.position - _CHECKED_BYTES, 0)
        with open_file(self._tail.files[offset.file].path) as file:
            file.seek(start)
            return crc32(file.read(offset.position - start))
