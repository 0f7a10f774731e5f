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
from lockkeeper_analytics.errors import ForeignFileError
from lockkeeper_analytics.reading.storage import open_file

CHUNK_BYTES = 4 * 1024 * 1024
DAMAGE_BYTES_MAX = 64 * 1024 * 1024
"""How far behind a damaged batch sound ones are looked for."""
FIRST_BYTES = len(CONTROL_START)
"""So many bytes at its beginning tell that a file is one of a journal."""


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
    name: str = "",
) -> Iterator[Chunk]:
    """Yield the batches that begin at *start* or later and before *end*, in order.

    *start* must be where a batch begins. Each byte is read once, and few behind *end*. A torn tail
    ends the file like an end record. Raises CorruptBatchError for damage with sound batches
    behind it and ForeignFileError for a file that is none of a journal, unless *skip_corrupt*;
    both call the file *name* (by default, *path*). Raises OSError.
    """
    with open_file(path) as file:
        position: int | None = start
        missing, rest = 0, b""
        while position is not None and (end is None or position < end):
            # A batch that a chunk cuts may be longer than one.
            want = chunk_bytes if end is None else min(chunk_bytes, end - position)
            wanted = max(want, missing) - len(rest)
            fresh = _read(file, position + len(rest), wanted)
            data = rest + fresh
            found = _split(data, None if end is None else end - position)
            if found.batches:
                yield Chunk(data, position, found.batches)
            if found.ended:
                return
            position += found.stop
            missing, rest = found.missing, data[found.stop :]
            if not missing or len(fresh) < wanted:
                position = _behind_damage(file, position, name or str(path), skip_corrupt)
                missing, rest = 0, b""


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
    unpack = CONTROL.unpack_from
    while end is None or position < end:
        if size - position < CONTROL_SIZE:
            # At the end of the file this is a clean end or a torn control record.
            ended = size == 0 or _is_end(data, position)
            return _Found(batches, position, ended, CONTROL_SIZE)
        opening, length, checksum = unpack(data, position)
        if opening != CONTROL_START or length <= 0:
            return _Found(batches, position, _is_end(data, position))
        start = position + CONTROL_SIZE
        stop = start + length
        if stop > size:
            return _Found(batches, position, False, CONTROL_SIZE + length)
        if checksum and adler32(view[start:stop]) != checksum:
            return _Found(batches, position, ended=False)
        batches.append((start, stop))
        position = stop
    return _Found(batches, position, ended=True)


def _is_end(data: bytes, position: int) -> bool:
    return data[position : position + EOF_SIZE] in (EOF_RECORD, EOF_OLD)


def _behind_damage(file: BinaryIO, position: int, name: str, skip: bool) -> int | None:
    """Return where reading goes on when no sound batch was seen at *position*, None: nowhere.

    The bytes are read once more, because a broker may have been writing them.
    """
    rest = _read(file, position, DAMAGE_BYTES_MAX)
    scan = scan_file(rest, name)
    if scan.batches:
        return position
    if scan.problem is None or scan.resumes_at is None:
        if position == 0 and not skip and is_foreign(rest):
            raise ForeignFileError(name)
        return None
    if not skip:
        raise CorruptBatchError(name, position, scan.problem.reason)
    return position + scan.resumes_at


def is_foreign(beginning: bytes) -> bool:
    """Tell whether a file without a sound batch is none of a journal, by its *beginning*.

    A first write that was cut off has left a beginning of its control record, and zeros behind.
    """
    written = beginning[:FIRST_BYTES].rstrip(b"\0")
    return not (CONTROL_START.startswith(written) or _is_end(beginning, 0))


def last_batches(path: str | Path, size_max: int, end: int | None = None) -> Chunk | None:
    """Return the sound batches in the last *size_max* bytes before *end*; None: there are none.

    Where the first of them begins is searched for; *end* None is the file's. Raises OSError.
    """
    with open_file(path) as file:
        behind = file.seek(0, 2) if end is None else end
        start = max(behind - size_max, 0)
        data = _read(file, start, behind - start)
    found: Chunk | None = None
    position = data.find(CONTROL_START)
    while position >= 0:
        run = _split(data[position:], None)
        if run.batches:
            # The last run is the file's end; what looks like one may lie in a body before it.
            found = Chunk(data[position:], start + position, run.batches)
        position = data.find(CONTROL_START, position + max(run.stop, 1))
    return found


def _read(file: BinaryIO, position: int, size: int) -> bytes:
    file.seek(position)
    return file.read(size)
