"""Extracts of finished data files, made one at a time by a thread of low priority.

The index of the streams tells where their messages are. So all that is looked for is what else is
in the file.
"""

import heapq
import logging
import mmap
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from lockkeeper.journal.decode import decode_destination, decode_record
from lockkeeper.journal.encode import encode_destination
from lockkeeper.journal.errors import JournalError
from lockkeeper.journal.records import RemoveDestination
from lockkeeper.journal.rewritten import rewritten_head
from lockkeeper.journal.scan import Batch, scan_file
from lockkeeper.journal.walk import ADD, REMOVE, walk_batch
from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.extracts import Extract, Part, Span, encode_extract, extract_path
from lockkeeper.store.kahadb.file_references import OFFSET_MASK, FileReferences
from lockkeeper.store.kahadb.files import JournalFiles
from lockkeeper.store.kahadb.paging import BodyReader
from lockkeeper.store.kahadb.segment_files import SegmentFiles
from lockkeeper.store.locker import LockLostError
from lockkeeper.store.segment import Segment, each_place

logger = logging.getLogger(__name__)

SHARE_MIN: Final = 0.25
"""Less of a file than that in streams' messages makes no extract."""
LOOKED_AT_ONCE: Final = 8
"""So many files are looked at in a turn: for each, whether a segment has something in it."""
_COMMAND_AT: Final = 5
_LOWEST_PRIORITY: Final = 19


class Extracting:
    """Makes the extracts of one directory, when it is told to look."""

    def __init__(
        self,
        segments: dict[Segment, None],
        segment_files: SegmentFiles,
        file_references: FileReferences,
        files: JournalFiles,
        bodies: BodyReader,
        extracted: set[int],
    ) -> None:
        """*segments* are those that are there, *extracted* the files with an extract already."""
        self._segments = segments
        self._segment_files = segment_files
        self._file_references = file_references
        self._files = files
        self._bodies = bodies
        self._looked_at = extracted
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Begin the next extract, unless one is being made."""
        if not self._segments or self._files.descriptor < 0 or self.is_busy():
            return
        everything = self._file_references.files
        self._looked_at &= everything.keys()
        # What is still written to comes later; what was copied is not where the index says.
        complete = (
            file_id
            for file_id in sorted(everything.keys() - self._looked_at - self._bodies.moved.keys())
            if file_id < self._files.file_id
        )
        for file_id in islice(complete, LOOKED_AT_ONCE):
            self._looked_at.add(file_id)
            parts = self._parts(file_id)
            if sum(part.size for part in parts) >= SHARE_MIN * everything[file_id].size:
                self._begin(self._files.path(file_id), parts)
                return

    def is_busy(self) -> bool:
        """Tell whether an extract is being made."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Wait for the extract that is being made: some ten milliseconds of work."""
        if self._thread is not None:
            self._thread.join()

    def _parts(self, file_id: int) -> list[Part]:
        """Return what the index has of the streams' messages in a file, oldest segments first."""
        segments = [each for each in self._segments if _has_part(each, file_id)]
        return [
            Part(
                encode_destination(segment.destination),
                first,
                segment.bytes_in(file_id),
                entries,
                keys,
            )
            for segment in sorted(segments, key=_name)
            for first, entries, keys in [segment.piece_in(file_id)]
        ]

    def _begin(self, path: Path, parts: list[Part]) -> None:
        made = self._segment_files.path_for(extract_path(path).name)
        if made is None:
            return
        work = (path, parts, made, self._files.check)
        self._thread = threading.Thread(
            target=_make, args=work, name="journal-extract", daemon=True
        )
        self._thread.start()


def _has_part(segment: Segment, file_id: int) -> bool:
    return segment.is_plain and not segment.is_dropped and segment.bytes_in(file_id) > 0


def _name(segment: Segment) -> tuple[str, int, int]:
    return segment.name


def _make(path: Path, parts: list[Part], made: Path, check: Callable[[], None]) -> None:
    """Write the extract of a file, and put it in its place; a start does without, if need be."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
    try:
        data = _extract(path, parts)
        if data is not None:
            made.write_bytes(data)
            check()
            made.replace(extract_path(path))
    except (JournalError, OSError, StoreError, LockLostError) as error:
        logger.info("%s has no extract: %s", path.name, error)


def _extract(path: Path, parts: list[Part]) -> bytes | None:
    """Return the extract of the file at *path*.

    None of one that may only repeat another; and of one in which a segment ended and another of its
    name began, as the order of their records counts.
    """
    if rewritten_head(path) is not None:
        return None
    with path.open("rb") as file:
        state = os.fstat(file.fileno())
        with mmap.mmap(file.fileno(), state.st_size, access=mmap.ACCESS_READ) as data:
            scan = scan_file(data, path.name)
            scan.require_whole()
            others: list[Span] = []
            checksum = 0
            for start, end in _others(data, scan.batches, parts):
                records = data[start:end]
                if _ends_one_of(parts, records):
                    return None
                checksum = zlib.crc32(records, checksum)
                others.append((start, end))
    return encode_extract(Extract(parts, others, checksum), state)


def _ends_one_of(parts: list[Part], records: bytes) -> bool:
    """Tell whether one of these *records* ends the segment of one of the *parts*, or a message.

    One that is added behind such a record is there, whatever that was about.
    """
    ended: set[bytes] = set()
    for command, offset, _, destination, *_ in walk_batch(records, 0, len(records)):
        if command == REMOVE:
            ended.add(destination)
        elif command != ADD:
            match decode_record(records, offset):
                case RemoveDestination(destination=removed):
                    ended.add(encode_destination(removed))
    # Two writers may encode the same name in two ways.
    encoded = {encode_destination(decode_destination(each)) for each in ended}
    return any(part.destination in encoded for part in parts)


def _others(data: mmap.mmap, batches: list[Batch], parts: list[Part]) -> Iterator[Span]:
    """Yield where the records are that no part has. Raises StoreError if the parts are wrong."""
    places = heapq.merge(*(each_place(part.entries) for part in parts))
    location, size = next(places, (OFFSET_MASK, 0))
    for batch in batches:
        at = batch.start
        while (place := location & OFFSET_MASK) < batch.end:
            if place < at or data[place + _COMMAND_AT] != ADD:
                raise StoreError(f"no message of a stream at offset {place}")
            if place > at:
                yield at, place
            at = place + size
            location, size = next(places, (OFFSET_MASK, 0))
        if at < batch.end:
            yield at, batch.end
    if location != OFFSET_MASK:
        raise StoreError(f"a message of a stream behind the end, at {location & OFFSET_MASK}")
