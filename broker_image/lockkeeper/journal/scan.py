"""Walk the batches of one data file: where each lies, where the sound part ends, and why.

Kept apart: a *torn tail* (the last write was cut off: nothing sound follows) and a *corrupt*
batch (sound batches follow, so something that was once durable is damaged). kahadb.md section 2.
"""

import mmap
from collections.abc import Iterator
from typing import NamedTuple
from zlib import adler32

from lockkeeper.journal.batch import (
    CONTROL,
    CONTROL_SIZE,
    CONTROL_START,
    EOF_OLD,
    EOF_RECORD,
    EOF_SIZE,
)
from lockkeeper.journal.encode import RECORD_HEADER_SIZE, USER_RECORD
from lockkeeper.journal.errors import BadRecordError, CorruptBatchError
from lockkeeper.journal.pieces import end_of_zeros, occurrences

Buffer = bytes | bytearray | memoryview | mmap.mmap


class Batch(NamedTuple):
    """A sound batch: its records are `data[start:end]`, its control record begins at `offset`."""

    offset: int
    start: int
    end: int
    checksum: int


class FileScan(NamedTuple):
    """Batches of a data file, and the end of its sound part.

    `end` is where the sound part ends and the next batch or an EOF record belongs. `problem` is
    None at a clean end; `resumes_at` is where sound batches go on behind a problem, or None.
    """

    file_name: str
    batches: list[Batch]
    end: int
    problem: CorruptBatchError | None = None
    resumes_at: int | None = None

    @property
    def is_torn(self) -> bool:
        """Tell whether the file ends in a write that was cut off."""
        return self.problem is not None and self.resumes_at is None

    def require_whole(self) -> None:
        """Raise CorruptBatchError unless the file ended cleanly."""
        if self.problem is not None:
            raise self.problem

    def require_uncorrupted(self) -> None:
        """Raise CorruptBatchError when sound batches follow a broken one."""
        if self.problem is not None and self.resumes_at is not None:
            raise self.problem


def scan_file(data: Buffer, file_name: str, start: int = 0) -> FileScan:
    """Return the sound batches of a data file's *data* from *start* to the first that is not.

    Every checksum is verified, but 0 means unchecked. A file ends cleanly at an EOF record, at
    a header of zeros, or where its bytes end; unless sound batches follow: then a sector has been
    zeroed, or has what stood there before the batch was written. Behind zeros nothing may follow.
    """
    batches: list[Batch] = []
    position = start
    with memoryview(data) as view:
        while True:
            position = _sound_batches(view, position, batches)
            if _is_end(view, position):
                resumes_at = _resume(view, position, file_name)
                end = _false_end(view, position, file_name, resumes_at)
                return FileScan(file_name, batches, position, end, resumes_at)
            try:
                batch = _batch(view, position, file_name)
            except CorruptBatchError as problem:
                resumes_at = _resume(view, position, file_name)
                return FileScan(file_name, batches, position, problem, resumes_at)
            batches.append(batch)
            position = batch.end


def _sound_batches(view: memoryview, position: int, batches: list[Batch]) -> int:
    """Append the checksummed batches from *position* on, quickly; returns where they end.

    What stands there, an end, an unchecked batch or a broken one, is for others to say.
    """
    unpack, size = CONTROL.unpack_from, len(view)
    # A NamedTuple's own constructor costs as much as everything else in this loop.
    new, checksum_of = tuple.__new__, adler32
    while position + CONTROL_SIZE <= size:
        opening, length, checksum = unpack(view, position)
        start = position + CONTROL_SIZE
        end = start + length
        if opening != CONTROL_START or length <= 0 or end > size:
            break
        if checksum_of(view[start:end]) != checksum:
            break
        batches.append(new(Batch, (position, start, end, checksum)))
        position = end
    return position


def record_offsets(data: Buffer, batch: Batch, file_name: str = "") -> Iterator[tuple[int, int]]:
    """Yield the offset and size of each record of *batch*, in order.

    Raises BadRecordError for a header that does not fit into the batch.
    """
    position = batch.start
    while position < batch.end:
        header = bytes(data[position : position + RECORD_HEADER_SIZE])
        size = int.from_bytes(header[:4], "big")
        fits = RECORD_HEADER_SIZE < size <= batch.end - position
        if not fits or header[4] != USER_RECORD:
            raise BadRecordError(f"its header is {header.hex()}", file_name, position)
        yield position, size
        position += size


def _is_end(view: memoryview, position: int) -> bool:
    header = view[position : position + EOF_SIZE]
    return header in (EOF_RECORD, EOF_OLD) or len(header) == 0


def _batch(view: memoryview, offset: int, file_name: str) -> Batch:
    """Return the batch at *offset*; raise CorruptBatchError when it is not sound."""
    start = offset + CONTROL_SIZE
    if start > len(view):
        raise CorruptBatchError(file_name, offset, "the file ends inside its control record")
    opening, length, checksum = CONTROL.unpack_from(view, offset)
    if opening != CONTROL_START:
        raise CorruptBatchError(file_name, offset, "no control record here")
    end = start + length
    if length <= 0 or end > len(view):
        raise CorruptBatchError(file_name, offset, f"its {length} bytes do not fit into the file")
    if checksum and adler32(view[start:end]) != checksum:
        raise CorruptBatchError(file_name, offset, "its Adler-32 does not match")
    batch = Batch(offset, start, end, checksum)
    if not checksum:
        _require_records(view, batch, file_name)
    return batch


def _require_records(view: memoryview, batch: Batch, file_name: str) -> None:
    """Without a checksum, the records' own lengths must at least fill the batch."""
    try:
        for _offset, _size in record_offsets(view, batch, file_name):
            pass
    except BadRecordError as error:
        reason = f"record at offset {error.offset}: {error.reason}"
        raise CorruptBatchError(file_name, batch.offset, reason) from None


def _false_end(
    view: memoryview, offset: int, file_name: str, resumes_at: int | None
) -> CorruptBatchError | None:
    """Return what is wrong with the end at *offset*, or None.

    Behind an EOF record a write that was given up may stand. Where zeros are the end, nothing
    does but the EOF records that ActiveMQ prepares files with.
    """
    if resumes_at is not None:
        reason = "an end stands here, but sound batches follow"
        return CorruptBatchError(file_name, offset, reason)
    if view[offset : offset + EOF_SIZE] == EOF_OLD and not _is_unused(view, offset):
        return CorruptBatchError(file_name, offset, "zeros stand here, but something follows")
    return None


def _is_unused(view: memoryview, offset: int) -> bool:
    """Tell whether nothing but zeros and EOF records stands from *offset* on."""
    while offset < len(view):
        offset = end_of_zeros(view, offset)
        rest = view[offset : offset + EOF_SIZE]
        if len(rest) and rest != EOF_RECORD:
            return False
        offset += EOF_SIZE
    return True


def _resume(view: memoryview, offset: int, file_name: str) -> int | None:
    """Return where sound batches go on after what is broken at *offset*, or None.

    A message may itself carry journal bytes: what lies inside an intact-looking record of the
    broken batch is not a batch of this file.
    """
    broken = _BrokenBatch(view[offset:])
    for at in occurrences(view, CONTROL_START, offset + 1):
        if not broken.has_record_over(at - offset):
            try:
                _batch(view, at, file_name)
            except CorruptBatchError:
                pass
            else:
                return at
    return None


class _BrokenBatch:
    """Records of a batch at the start of *data* that is not sound, as far as their sizes fit.

    Where the batch was given up, an EOF record stands over the first bytes of its header.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = self._end = 0
        opens = data[EOF_SIZE : len(CONTROL_START)] == CONTROL_START[EOF_SIZE:]
        if opens and len(data) >= CONTROL_SIZE:
            _opening, length, _checksum = CONTROL.unpack_from(data)
            self._position, self._end = CONTROL_SIZE, CONTROL_SIZE + length

    def has_record_over(self, target: int) -> bool:
        """Tell whether a record spans *target*, which is never less than the one before."""
        data, position = self._data, self._position
        while position < target and data[position + 4] == USER_RECORD:
            size = int.from_bytes(data[position : position + 4], "big")
            if size <= RECORD_HEADER_SIZE or position + size > self._end:
                break
            position += size
        self._position = position
        return position > target
