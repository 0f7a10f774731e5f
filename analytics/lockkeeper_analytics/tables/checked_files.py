"""Rows that tell of data files whether all that was written to them can be read.

What cannot be read may be a message that waits: such a file is not to be removed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper.journal.errors import CorruptBatchError
from lockkeeper.journal.scan import scan_file
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.batches import DAMAGE_BYTES_MAX, last_batches, read_chunks
from lockkeeper_analytics.reading.partitions import counted_files
from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT
from lockkeeper_analytics.reading.storage import DataFile, name_of, open_file, sibling_in_archive
from lockkeeper_analytics.tables.data_files import plan_directories
from lockkeeper_analytics.tables.shape import Table, fields

TAIL_BYTES = 256 * 1024
"""So much of a file's end is looked at first: most files end there with a whole batch."""


class Unchecked(NamedTuple):
    """A data file; `following` is the name of the one behind it, if something is written there."""

    directory: str
    file_id: int
    path: str
    following: str | None


class Checked(NamedTuple):
    """What was found of a data file; see the meanings of the columns."""

    directory: str
    file_id: int
    batch_bytes: int | None
    is_damaged: bool
    is_open: bool


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.directory, "the journal directory, as it was named"),
    ("file_id", INT, lambda row: row.file_id, "number of the data file"),
    (
        "batch_bytes",
        LONG,
        lambda row: row.batch_bytes,
        "the records of its sound batches; null: none are skipped",
    ),
    ("is_damaged", FLAG, lambda row: row.is_damaged, "something in it is no sound batch"),
    ("is_open", FLAG, lambda row: row.is_open, "nothing is written behind it yet"),
)


def unchecked(directory: str) -> list[Unchecked]:
    """Return the data files of *directory* that count and are not archived.

    Raises NoJournalError.
    """
    files = [file for file in counted_files(directory) if not file.is_archived]
    last = next((index for index, file in _from_behind(files) if _is_written(file.path)), 0)
    names = [file.name for file in files[1 : last + 1]]
    following = [*names, *[None] * (len(files) - len(names))]
    return [
        Unchecked(directory, file.file_id, file.path, name)
        for file, name in zip(files, following, strict=True)
    ]


def _from_behind(files: Sequence[DataFile]) -> Iterator[tuple[int, DataFile]]:
    return reversed(list(enumerate(files)))


def _is_written(path: str) -> bool:
    """Tell whether there is a sound batch in the file at *path*."""
    try:
        return any(True for _ in read_chunks(path, skip_corrupt=True, chunk_bytes=TAIL_BYTES))
    except OSError:
        return False


def checked(files: Sequence[Unchecked], skip_corrupt: bool) -> Iterator[Checked]:
    """Yield what is found of *files*, but those that are gone.

    Raises CorruptBatchError for one that was cut off though something is written behind it, unless
    what is damaged is skipped.
    """
    for file in files:
        for path in (file.path, sibling_in_archive(file.path)):
            try:
                yield _checked(file, path, skip_corrupt)
            except FileNotFoundError:
                continue
            break


def _checked(file: Unchecked, path: str, skip_corrupt: bool) -> Checked:
    is_open = file.following is None
    if skip_corrupt:
        batch_bytes, is_damaged, end = _all_batches(path)
        is_damaged = is_damaged or (not is_open and bool(_torn(path, end)))
        return Checked(file.directory, file.file_id, batch_bytes, is_damaged, is_open)
    end = 0 if is_open else _last_end(path)
    if not is_open and (reason := _torn(path, end)):
        told = f"{reason}, and {file.following} was written behind it"
        raise CorruptBatchError(name_of(path), end, told)
    return Checked(file.directory, file.file_id, None, False, is_open)


def _all_batches(path: str) -> tuple[int, bool, int]:
    """Return the bytes in all sound batches, whether others lie between, and where they end."""
    total, end, has_others = 0, 0, False
    for chunk in read_chunks(path, skip_corrupt=True):
        for start, stop in chunk.batches:
            has_others = has_others or chunk.base + start - CONTROL_SIZE != end
            total += stop - start
            end = chunk.base + stop
    return total, has_others, end


def _last_end(path: str) -> int:
    """Return where the last sound batch ends, of a file without damage before it."""
    tail = last_batches(path, TAIL_BYTES)
    end = tail.base + tail.batches[-1][1] if tail else 0
    return end if tail and not _torn(path, end) else _all_batches(path)[2]


def _torn(path: str, end: int) -> str:
    """Return what is wrong with the bytes behind the last sound batch, or nothing."""
    with open_file(path) as file:
        file.seek(end)
        problem = scan_file(file.read(DAMAGE_BYTES_MAX), name_of(path)).problem
    return problem.reason if problem else ""


def arrow_rows(rows: Iterator[Checked], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield *rows* as Arrow batches of *columns*."""
    return _FIELDS.batches(rows, columns)


def _read(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    yield from arrow_rows(checked(unchecked(directory), options.skip_corrupt), options.columns)


CHECKED_FILES = Table(
    "checked_files",
    "the data files that are not archived, and whether all of them can be read",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    plan_directories,
    _read,
    has_destinations=False,
)
