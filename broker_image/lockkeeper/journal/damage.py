"""Damage in a data file: the broken range, the sound rest, and all that can still be read.

Unlike the scan this goes on behind the first damage, and reads every record.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lockkeeper.journal.batch import CONTROL_SIZE, EOF_RECORD, control_record
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.records import Record
from lockkeeper.journal.scan import Batch, FileScan, record_offsets, scan_file

# A record's header and its command; the first byte of its size is 0 below 16 MiB.
_MAYBE_RECORD = re.compile(rb"(?s)(?=\x00...\x01[\x00-\x10])")


class Damage(NamedTuple):
    """Bytes of a data file that are not what was written: `length` of them at `offset`."""

    file_name: str
    offset: int
    length: int
    reason: str

    @property
    def end(self) -> int:
        """Offset of the damage's end."""
        return self.offset + self.length


class Inspection(NamedTuple):
    """A data file: its sound batches, and its damages in order, inside of batches, too."""

    batches: list[Batch]
    damages: list[Damage]


def _accept(_record: Record) -> None:
    """Find nothing wrong with a record that can be decoded."""


def inspect_file(
    data: bytes, file_name: str, is_last: bool, check: Callable[[Record], object] = _accept
) -> Inspection:
    """Look at all of a data file's *data*; a torn tail is damage unless the file *is last*.

    *check* raises BadRecordError for a record whose content is of no use.
    """
    batches: list[Batch] = []
    damages: list[Damage] = []
    position: int | None = 0
    while position is not None:
        scan = scan_file(data, file_name, position)
        batches += scan.batches
        for batch in scan.batches:
            damages += _bad_records(data, batch, file_name, check)
        if scan.problem is not None and not (scan.is_torn and is_last):
            damages.append(_damage(data, scan, scan.problem.reason))
        position = scan.resumes_at
    return Inspection(batches, damages)


def sound_pieces(data: bytes, inspection: Inspection) -> Iterator[bytes]:
    """Yield the bytes of a file without its damages: whole batches, and an EOF record."""
    for batch in inspection.batches:
        bad = [one for one in inspection.damages if batch.start <= one.offset < batch.end]
        if not bad:
            yield data[batch.offset : batch.end]
            continue
        start, records = batch.start, b""
        for one in bad:
            records += data[start : one.offset]
            start = one.end
        records += data[start : batch.end]
        if records:
            yield control_record(records) + records
    yield EOF_RECORD


def fragments(data: bytes, damage: Damage) -> Iterator[tuple[int, int, Record]]:
    """Yield offset, size and value of the records that can be read within a damage.

    Nobody vouches for them.
    """
    inside = data[damage.offset : damage.end]
    at = 0
    while (found := _MAYBE_RECORD.search(inside, at)) is not None:
        at = found.start()
        try:
            record = decode_record(inside, at)
        except BadRecordError:
            at += 1
            continue
        size = int.from_bytes(inside[at : at + 4], "big")
        yield damage.offset + at, size, record
        at += size


def _damage(data: bytes, scan: FileScan, reason: str) -> Damage:
    """Return the damage at which a scan ended; behind the last batch, to the last byte that is."""
    if scan.resumes_at is not None:
        end = scan.resumes_at
    else:
        end = max(scan.end + CONTROL_SIZE, len(data[scan.end :].rstrip(b"\0")) + scan.end)
    return Damage(scan.file_name, scan.end, min(end, len(data)) - scan.end, reason)


def _bad_records(
    data: bytes, batch: Batch, file_name: str, check: Callable[[Record], object]
) -> Iterator[Damage]:
    """Yield the records of a sound batch that cannot be read."""
    try:
        for offset, size in record_offsets(data, batch, file_name):
            try:
                check(decode_record(data[offset : offset + size]))
            except BadRecordError as error:
                yield Damage(file_name, offset, size, f"bad record: {error.reason}")
    except BadRecordError as error:
        length = batch.end - error.offset
        yield Damage(file_name, error.offset, length, f"bad record: {error.reason}")
