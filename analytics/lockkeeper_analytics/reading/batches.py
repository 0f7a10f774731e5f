"""Read a data file that may be growing, chunk by chunk, up to its last whole batch.

Files are read, not mapped: a broker that repairs a torn tail cuts the file, and touching a
mapping beyond the cut would kill the process. kahadb.md section 2.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import adler32

from lockkeeper.journal.batch import (
    CONTROL,
    CONTROL_SIZE,
    CONTROL_START,
    EOF_OLD,
    EOF_RECORD,
    EOF_SIZE,
)
from lockkeeper.journal.errors import CorruptBatchError
from lockkeeper.journal.scan import scan_file
from lockkeeper_analytics.reading.storage import name_of, open_file

CHUNK_BYTES = 4 * 1024 * 1024
DAMAGE_BYTES_MAX = 64 * 1024 * 1024
"""How far behind a damaged batch sound ones are looked for."""


class Chunk(NamedTuple):
    """Whole, sound batches: records lie in `data[start:end]` of each; `base` is data's offset."""

    data: bytes
    base: int
    batches: list[tuple[int, int]]


def read_chunks(
    path: str | Path,
    start: int = 0,
    end: int | None = None,
    skip_corrupt: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Chunk]:
    """Yield the batches that begin at *start* or later and before *end*, in order.

    *start* must be where a batch begins. A torn tail ends the file like an end record. Raises
    CorruptBatchError for damage with sound batches behind it, unless *skip_corrupt*; OSError.
    """
    with open_file(path) as file:
        position: int | None = start
        want = chunk_bytes
        while position is not None and (end is None or position < end):
            data = _read(file, position, want)
            found = _split(data, None if end is None else end - position)
            if found.batches:
                yield Chunk(data, position, found.batches)
            if found.ended:
                return
            position += found.stop
            # A batch that the piece cuts is read again, whole; it may be longer than a chunk.
            want = max(chunk_bytes, found.missing)
            if not found.missing or _size(file) < position + found.missing:
                position = _behind_damage(file, position, name_of(str(path)), skip_corrupt)


class _Found(NamedTuple):
    """What one piece of a file holds: `stop` is behind its last whole batch.

    `missing` is how many bytes the batch at `stop` takes when the piece cuts it, else 0.
    """

    batches: list[tuple[int, int]]
    stop: int
    ended: bool
    missing: int = 0


def _split(data: bytes, end: int | None) -> _Found:
    """Find the sound batches at the start of *data* that begin before *end*."""
    batches: list[tuple[int, int]] = []
    position, size = 0, len(data)
    view = memoryview(data)
    while end is None or position < end:
        left = size - position
        header = data[position : position + EOF_SIZE]
        if header in (EOF_RECORD, EOF_OLD):
            return _Found(batches, position, ended=True)
        if left < CONTROL_SIZE:
            # At the end of the file this is a clean end or a torn control record.
            return _Found(batches, position, size == 0, CONTROL_SIZE)
        opening, length, checksum = CONTROL.unpack_from(data, position)
        if opening != CONTROL_START or length <= 0:
            return _Found(batches, position, ended=False)
        start = position + CONTROL_SIZE
        if start + length > size:
            return _Found(batches, position, False, CONTROL_SIZE + length)
        if checksum and adler32(view[start : start + length]) != checksum:
            return _Found(batches, position, ended=False)
        batches.append((start, start + length))
        position = start + length
    return _Found(batches, position, ended=True)


def _behind_damage(file: BinaryIO, position: int, name: str, skip: bool) -> int | None:
    """Return where reading goes on when no sound batch was seen at *position*, None: nowhere.

    The bytes are read once more, because a broker may have been writing them.
    """
    rest = _read(file, position, DAMAGE_BYTES_MAX)
    scan = scan_file(rest, name)
    if scan.batches:
        return position
    if scan.problem is None or scan.resumes_at is None:
        return None
    if not skip:
        raise CorruptBatchError(name, position, scan.problem.reason)
    return position + scan.resumes_at


def batch_offsets(path: str | Path, end: int | None) -> list[int]:
    """Return where the batches before *end* begin, from their control records alone."""
    offsets: list[int] = []
    position = 0
    with open_file(path) as file:
        while end is None or position < end:
            control = _read(file, position, CONTROL_SIZE)
            if len(control) < CONTROL_SIZE or not control.startswith(CONTROL_START):
                break
            offsets.append(position)
            position += CONTROL_SIZE + max(CONTROL.unpack(control)[1], 0)
    return offsets


def first_batch_from(path: str | Path, start: int) -> int | None:
    """Return where the first batch at *start* or behind it begins, or None.

    Batches are counted by their control records; at one that is damaged the sound ones behind
    it are looked for, so that each batch belongs to the same part whoever reads it.
    """
    position: int | None = 0
    with open_file(path) as file:
        while position is not None and position < start:
            control = _read(file, position, CONTROL_SIZE)
            if control[:EOF_SIZE] in (EOF_RECORD, EOF_OLD, b""):
                return None
            length = CONTROL.unpack(control)[1] if len(control) == CONTROL_SIZE else 0
            if length > 0 and control.startswith(CONTROL_START):
                position += CONTROL_SIZE + length
            else:
                position = _behind_damage(file, position, name_of(str(path)), skip=True)
    return position


def _read(file: BinaryIO, position: int, size: int) -> bytes:
    file.seek(position)
    return file.read(size)


def _size(file: BinaryIO) -> int:
    return file.seek(0, 2)
