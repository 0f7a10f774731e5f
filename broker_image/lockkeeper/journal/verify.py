"""A whole directory checked: every batch by its checksum, every record by reading it.

Memory holds one batch at a time beside the list of batches, however long the files are.
"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.errors import BadRecordError, JournalError
from lockkeeper.journal.files import DataFile, list_data_files
from lockkeeper.journal.records import Record
from lockkeeper.journal.scan import Batch, record_offsets, scan_file


class TornTailError(JournalError):
    """The last write of a file was cut off at `offset`; nothing sound follows."""

    def __init__(self, file_name: str, offset: int, reason: str) -> None:
        super().__init__(f"{file_name}: torn tail at offset {offset}: {reason}")
        self.file_name = file_name
        self.offset = offset


class StoredRecord(NamedTuple):
    """A record and where it stands; `size` in bytes with its header."""

    file_name: str
    offset: int
    size: int
    record: Record


@dataclass(slots=True)
class FileReport:
    """Report on a data file: `problems` are its damages, `torn_at` is where a write broke off.

    A torn tail of the last file is what a crash leaves, and nothing that was durable is lost; in
    any other file it is damage, and listed as a problem.
    """

    file_name: str
    size: int
    batches: int = 0
    records: int = 0
    unchecked_batches: int = 0
    end: int = 0
    torn_at: int | None = None
    problems: list[str] = field(default_factory=list)


def verify_directory(directory: Path) -> Iterator[FileReport]:
    """Yield a report on every data file of *directory*, in order; raises OSError.

    The last one with records may have a torn tail: that is an interrupted write. What ActiveMQ
    has preallocated for later may follow it.
    """
    files = list_data_files(directory)
    last = last_written(files)
    for data_file in files:
        yield _verify(data_file, data_file.file_id >= last)


def last_written(files: list[DataFile]) -> int:
    """Return the number of the last file with records, or with what is left of some; 0 for none.

    What follows was preallocated and never written.
    """
    for data_file in reversed(files):
        with _mapped(data_file) as data:
            scan = scan_file(data, data_file.path.name)
        if scan.batches or scan.problem is not None:
            return data_file.file_id
    return 0


def read_records(directory: Path) -> Iterator[StoredRecord | JournalError]:
    """Yield every record of every sound batch of *directory*, and an error for what is not."""
    for data_file in list_data_files(directory):
        with _mapped(data_file) as data:
            for found in _walk(data, data_file.path.name):
                if not isinstance(found, Batch):
                    yield found


def _mapped(data_file: DataFile) -> mmap.mmap:
    """Return the file's bytes, mapped; the caller closes them."""
    with data_file.path.open("rb") as handle:
        return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)


def _verify(data_file: DataFile, is_last: bool) -> FileReport:
    report = FileReport(data_file.path.name, data_file.size)
    with _mapped(data_file) as data:
        for found in _walk(data, report.file_name):
            if isinstance(found, Batch):
                report.batches += 1
                report.unchecked_batches += not found.checksum
                report.end = found.end
            elif isinstance(found, StoredRecord):
                report.records += 1
            elif isinstance(found, TornTailError) and is_last:
                report.torn_at = found.offset
            else:
                report.problems.append(str(found))
    return report


def _walk(data: mmap.mmap, file_name: str) -> Iterator[Batch | StoredRecord | JournalError]:
    """Yield each batch, then its records; an error where something is damaged, and go on."""
    position: int | None = 0
    while position is not None:
        scan = scan_file(data, file_name, position)
        for batch in scan.batches:
            yield batch
            yield from _records(data, batch, file_name)
        if scan.problem is not None:
            torn = TornTailError(file_name, scan.end, scan.problem.reason)
            yield torn if scan.is_torn else scan.problem
        position = scan.resumes_at


def _records(
    data: mmap.mmap, batch: Batch, file_name: str
) -> Iterator[StoredRecord | JournalError]:
    """Yield the records of a batch, an error for each that cannot be read."""
    try:
        for offset, size in record_offsets(data, batch, file_name):
            try:
                record = decode_record(data[offset : offset + size])
            except BadRecordError as error:
                yield BadRecordError(error.reason, file_name, offset)
            else:
                yield StoredRecord(file_name, offset, size, record)
    except BadRecordError as error:
        yield error
