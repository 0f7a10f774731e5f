"""Streams of a KahaDB directory: their segments' messages, and the ends of segments."""

from collections.abc import Sequence
from typing import Final

from lockkeeper.journal.decode import decode_destination
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.walk import ADD, walk_batch
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import GoneError, StoreError
from lockkeeper.store.kahadb.appender import JournalAppender
from lockkeeper.store.kahadb.file_references import OFFSET_BITS, OFFSET_MASK, FileReferences
from lockkeeper.store.kahadb.paging import FRAME_PREFIX_BYTES, BodyReader
from lockkeeper.store.kahadb.segment_files import SegmentFiles
from lockkeeper.store.segment import Entry, Segment, SegmentName

_HEADER_BYTES: Final = 5
RECORD_BYTES_MAX: Final = 1 << 30


class KahaDBStreams:
    """Streams of one directory: a `StreamStore`."""

    def __init__(
        self,
        files: SegmentFiles,
        file_references: FileReferences,
        appender: JournalAppender,
        bodies: BodyReader,
    ) -> None:
        self._files = files
        self._file_references = file_references
        self._appender = appender
        self._bodies = bodies

    def begin(self, name: SegmentName) -> Segment:
        """See `StreamStore.begin`."""
        return self._files.make(name)

    def read_frames(self, entries: Sequence[Entry]) -> list[bytes]:
        """See `StreamStore.read_frames`."""
        return self._bodies.frames(entries)

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
        segment.forget()

    def release(self, entries: Sequence[Entry]) -> None:
        """See `StreamStore.release`."""
        for entry in entries:
            self._file_references.files[entry.location >> OFFSET_BITS].live -= entry.size
