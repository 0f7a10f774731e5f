"""Streams of a KahaDB directory: their segments' messages, and the ends of segments."""

from collections.abc import Iterator, Sequence
from typing import Final

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper.journal.decode import decode_destination
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.walk import ADD, walk_batch
from lockkeeper.message.destination import Destination
from lockkeeper.message.segments import SegmentName
from lockkeeper.store.base import GoneError, StoreError
from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.extracting import Extracting
from lockkeeper.store.kahadb.file_references import OFFSET_BITS, OFFSET_MASK
from lockkeeper.store.kahadb.files import JournalFiles
from lockkeeper.store.kahadb.paging import FRAME_PREFIX_BYTES, PAGE_BYTES, BodyReader
from lockkeeper.store.kahadb.recovery import Replayed
from lockkeeper.store.kahadb.segment_files import SegmentFiles
from lockkeeper.store.segment import Entry, Segment

_HEADER_BYTES: Final = 5
RECORD_BYTES_MAX: Final = 1 << 30


class KahaDBStreams:
    """Streams of one directory: a `StreamStore`. `segments` are those that are there."""

    def __init__(
        self,
        made: SegmentFiles,
        replayed: Replayed,
        files: JournalFiles,
        appender: JournalAppender,
        bodies: BodyReader,
    ) -> None:
        self.segments = dict.fromkeys(replayed.recovered.segments)
        self._made = made
        self._file_references = replayed.file_references
        self._appender = appender
        self._bodies = bodies
        extracted = replayed.extracted
        self._extracting = Extracting(
            self.segments, made, self._file_references, files, bodies, extracted
        )

    def maintain(self) -> None:
        """Do what makes the next start quick; called every now and then. Raises StoreError."""
        self._extracting.run()

    def wait(self) -> None:
        """Wait until what `maintain` has begun is done."""
        self._extracting.wait()

    def close(self) -> None:
        """Delete the index."""
        self.wait()
        self._made.close()

    def begin(self, name: SegmentName) -> Segment:
        """See `StreamStore.begin`."""
        segment = self._made.make(name)
        self.segments[segment] = None
        return segment

    def read_frames(self, entries: Sequence[Entry]) -> list[bytes]:
        """See `StreamStore.read_frames`."""
        found: list[bytes] = []
        for run in _runs(entries):
            found += self._read_row(run) or self._bodies.frames(run)
        return found

    def _read_row(self, run: Sequence[Entry]) -> list[bytes]:
        """Return messages that lie one behind the other; nothing where anything is odd."""
        start, end = run[0].location, run[-1].location + run[-1].size
        between = end - start - sum(entry.size for entry in run)
        if self._bodies.moved or not 0 <= between <= CONTROL_SIZE * len(run):
            return []
        try:
            data, _ = self._bodies.read_at(start, end - start)
            rows = walk_batch(data, 0, len(data))
        except (BadRecordError, StoreError):
            return []
        expected = [(ADD, entry.location - start) for entry in run]
        if [row[:2] for row in rows] != expected:
            return []
        return [data[row[5] + FRAME_PREFIX_BYTES : row[5] + row[6]] for row in rows]

    def frame_at(self, location: int) -> tuple[Destination, bytes]:
        """See `StreamStore.frame_at`."""
        file_id, offset = location >> OFFSET_BITS, location & OFFSET_MASK
        nothing = GoneError(f"{data_file_name(file_id)}: no message at offset {offset}")
        if file_id not in self._file_references.files:
            raise nothing
        try:
            header, _ = self._bodies.read_at(location, _HEADER_BYTES)
            size = int.from_bytes(header[:4], "big")
            if not _HEADER_BYTES < size <= RECORD_BYTES_MAX:
                raise nothing
            data, _ = self._bodies.read_at(location, size)
            row = walk_batch(data, 0, size)[0]
            if row[0] != ADD:
                raise nothing
            start = row[5] + FRAME_PREFIX_BYTES
            return decode_destination(row[3]), data[start : row[5] + row[6]]
        except (BadRecordError, StoreError, IndexError):
            raise nothing from None

    def drop(self, segment: Segment) -> None:
        """See `StreamStore.drop`."""
        for file_id, size in segment.bytes_by_file().items():
            self._file_references.files[file_id].live -= size
        self._appender.remove_destination(segment.destination)
        self._appender.answer(None)
        self.segments.pop(segment, None)
        segment.forget()

    def release(self, entries: Sequence[Entry]) -> None:
        """See `StreamStore.release`."""
        for entry in entries:
            self._file_references.files[entry.location >> OFFSET_BITS].live -= entry.size


def _runs(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Yield pieces of *entries*, a mebibyte each at most, or one."""
    begin, size = 0, 0
    for at, entry in enumerate(entries):
        if size and size + entry.size > PAGE_BYTES:
            yield entries[begin:at]
            begin, size = at, 0
        size += entry.size
    if entries:
        yield entries[begin:]
