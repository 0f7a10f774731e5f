"""Extracts of data files: what a start needs to know of one without reading its streams' messages.

An extract stands beside its file, `db-7.streams` beside `db-7.log`. It has the index entries of the
streams' messages, and says where all other records are. It is derived, and believed only while its
file has the length and the time of change that it names (ADR 0037).
"""

import os
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from struct import Struct, error
from typing import Final, NamedTuple

from lockkeeper.journal.files import DataFile
from lockkeeper.store.segment import ENTRY_BYTES, KEY_BYTES

EXTRACT_SUFFIX: Final = ".streams"
DATA_SUFFIX: Final = ".log"
EXTRACT_PATTERN: Final = f"db-*{EXTRACT_SUFFIX}"
_MAGIC: Final = b"Lockkeeper extract 1"
_HEAD: Final = Struct(">QqIII")
_PART: Final = Struct(">HQQII")
_SPAN: Final = Struct(">II")
_CHECK: Final = Struct(">I")

Span = tuple[int, int]
"""Where records begin and end in a data file."""


class Part(NamedTuple):
    """The messages of one segment in one data file: those from offset *first* on, without a gap.

    *destination* is the segment's queue, a KahaDestination; *size* the bytes of their records.
    *entries* and *keys* are pieces of the segment's index as they are.
    """

    destination: bytes
    first: int
    size: int
    entries: bytes
    keys: bytes


class Extract(NamedTuple):
    """All records of a data file: those of the *parts*, and those between the *others*' bounds.

    *checksum* is the CRC-32 of the bytes of *others*, one behind the other.
    """

    parts: list[Part]
    others: list[Span]
    checksum: int


def extract_path(path: Path) -> Path:
    """Return where the extract of the data file at *path* is."""
    return path.with_suffix(EXTRACT_SUFFIX)


def delete_extract(path: Path) -> None:
    """Delete the extract of the data file at *path*, if there is one. Raises OSError."""
    extract_path(path).unlink(missing_ok=True)


def encode_extract(extract: Extract, state: os.stat_result) -> bytes:
    """Return the bytes of an extract of a file in this *state*."""
    sizes = len(extract.parts), len(extract.others), extract.checksum
    pieces = [_MAGIC, _HEAD.pack(state.st_size, state.st_mtime_ns, *sizes)]
    for destination, first, size, entries, keys in extract.parts:
        counts = len(entries) // ENTRY_BYTES, len(keys) // KEY_BYTES
        pieces.append(_PART.pack(len(destination), first, size, *counts))
        pieces += [destination, entries, keys]
    pieces += [_SPAN.pack(*span) for span in extract.others]
    data = b"".join(pieces)
    return data + _CHECK.pack(zlib.crc32(data))


def read_extract(file: DataFile) -> Extract | None:
    """Return the extract of a data file; None where there is none that may be believed."""
    try:
        data = extract_path(file.path).read_bytes()
        state = file.path.stat()
    except OSError:
        return None
    end = len(data) - _CHECK.size
    if not data.startswith(_MAGIC) or data[max(0, end) :] != _CHECK.pack(zlib.crc32(data[:end])):
        return None
    try:
        size, changed_at, parts, others, checksum = _HEAD.unpack_from(data, len(_MAGIC))
        if (size, changed_at) != (state.st_size, state.st_mtime_ns):
            return None
        at = len(_MAGIC) + _HEAD.size
        found = Extract([], [], checksum)
        for _ in range(parts):
            part, at = _part_at(data, at)
            found.parts.append(part)
        spans = data[at:end]
        if len(spans) != others * _SPAN.size:
            return None
    except error:
        return None
    found.others.extend(_SPAN.iter_unpack(spans))
    return found


def _part_at(data: bytes, at: int) -> tuple[Part, int]:
    length, first, size, entries, keys = _PART.unpack_from(data, at)
    bounds = [at + _PART.size]
    for part in (length, entries * ENTRY_BYTES, keys * KEY_BYTES):
        bounds.append(bounds[-1] + part)
    destination, packed, hashes = (data[begin:end] for begin, end in pairwise(bounds))
    return Part(destination, first, size, packed, hashes), bounds[-1]


def read_others(path: Path, extract: Extract) -> bytes | None:
    """Return a data file up to its last record that is no stream's, zeros for what is not needed.

    None when these records are not those that the extract was made of. Raises OSError.
    """
    pieces: list[bytes] = []
    at = checksum = 0
    with path.open("rb") as file:
        for start, end in extract.others:
            records = os.pread(file.fileno(), end - start, start)
            pieces += [bytes(start - at), records]
            checksum = zlib.crc32(records, checksum)
            at = end
    data = b"".join(pieces)
    return data if (len(data), checksum) == (at, extract.checksum) else None


def delete_strays(directory: Path, check: Callable[[], None]) -> None:
    """Delete extracts whose data file is gone; *check* raises when this is no master.

    Raises OSError.
    """
    for path in directory.glob(EXTRACT_PATTERN):
        if not path.with_suffix(DATA_SUFFIX).exists():
            check()
            path.unlink(missing_ok=True)
