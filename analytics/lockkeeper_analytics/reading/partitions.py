"""Partitions: the files that are read, in pieces, one Spark partition for each.

A piece is a file, or what a stream has yet to read of it: where a batch begins, and when it was
written, is told by what stands before it in its file.
"""

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.encode import RECORD_HEADER_SIZE
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper.journal.records import RewrittenDataFile
from lockkeeper_analytics.errors import NoJournalError
from lockkeeper_analytics.reading.histories import kept_files
from lockkeeper_analytics.reading.pins import Pinned, Pins
from lockkeeper_analytics.reading.ranges import ranges_of
from lockkeeper_analytics.reading.storage import ARCHIVE, DataFile, beside, list_folder, open_file

NEIGHBOURS_MAX = 4
FILE_HEAD_BYTES = 256
COMMAND_AT = CONTROL_SIZE + RECORD_HEADER_SIZE
REWRITTEN_COMMAND = b"\x10"


class Neighbour(NamedTuple):
    """A file beside another one, and where it ends; None: nobody has pinned that."""

    path: str
    end: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """The batches of one file from `start`, where one begins, to before `end` (None: to its end).

    `before` and `behind` name the neighbouring files, the nearest first: where to look for a time
    when the part has none at its edge. `there` are the numbers of the files of the journal: one
    that holds again what another of these holds does not count. With `must_exist` it is an error
    that the file is gone, or that a compacted one shorter than `size` is in its place; `held` is
    where it can be read even then, if anywhere. With `is_pinned`
    the journal ends with the part's files: nothing is read behind their ends.
    """

    directory: str
    file_id: int
    path: str
    start: int = 0
    end: int | None = None
    before: tuple[Neighbour, ...] = ()
    behind: tuple[Neighbour, ...] = ()
    there: str = ""
    must_exist: bool = False
    size: int = 0
    held: str = ""
    is_pinned: bool = False


def plan_parts(
    directories: tuple[str, ...],
    since: int = 0,
    numbers: tuple[int, int] = (0, FILE_ID_MAX),
    pinned: Pins | None = None,
) -> list[Part]:
    """Return the parts of all journals in *directories*, in journal order; files are only listed.

    Files last changed before *since* (ms) are left out, and those that have nothing of the data
    files between the two *numbers*. With *pinned* the files are those, as they were. Of a directory
    with a history of records, its files are the parts. Raises NoJournalError.
    """
    first, last = numbers
    parts: list[Part] = []
    for directory in directories:
        seen = seen_of(directory) if pinned is None else pinned.get(directory, Pinned())
        parts += [
            Part(directory, file.file_id, file.path, is_pinned=pinned is not None)
            for file in seen.kept
            if first <= file.last_id and file.file_id <= last
        ]
        there = str(ranges_of(file.file_id for file in seen.files))
        for index, file in enumerate(seen.files):
            if file.changed >= since and first <= file.file_id <= last:
                part = part_of(directory, seen.files, index, is_pinned=pinned is not None)
                parts.append(replace(part, there=there))
    return parts


def seen_of(directory: str) -> Pinned:
    """Return the files that *directory* has now. Raises NoJournalError."""
    return Pinned(tuple(journal_files(directory)), tuple(kept_files(directory)))


def journal_files(directory: str) -> list[DataFile]:
    """Return the data files of *directory*, archived ones too, in order.

    There are none where it has a history of records. Raises NoJournalError.
    """
    files = all_files(directory)
    if not files and not kept_files(directory):
        raise NoJournalError(f"{directory}: no journal file (db-1.log, db-2.log, …) in it")
    return list(files.values())


def counted_files(directory: str) -> list[DataFile]:
    """Return the data files of *directory* that count, by what stands at their beginnings.

    Raises NoJournalError.
    """
    files = journal_files(directory)
    there = {file.file_id for file in files}
    return [file for file in files if not is_held_elsewhere(_head(file.path), there)]


def is_held_elsewhere(head: bytes, there: Container[int]) -> bool:
    """Tell whether the file that begins with *head* holds what one of those *there* still holds.

    The numbers are those of the journal's files. Such a file does not count (kahadb.md section 4).
    """
    record = _rewritten(head)
    return (
        record is not None and record.skip_if_source_exists and record.source_data_file_id in there
    )


def all_files(directory: str) -> dict[int, DataFile]:
    """Return all data files of *directory* by their numbers, archived ones too, in order.

    Raises NoJournalError.
    """
    # In this order, or a file that is archived meanwhile would be in neither list.
    files = {file.file_id: file for file in list_folder(directory)}
    with suppress(NoJournalError):
        archived = list_folder(beside(directory, ARCHIVE))
        files = {file.file_id: file for file in archived} | files
    return dict(sorted(files.items()))


def part_of(
    directory: str,
    files: Sequence[DataFile],
    index: int,
    start: int = 0,
    end: int | None = None,
    is_pinned: bool = False,
) -> Part:
    """Return the part of the file at *index* of *files* from *start*, a boundary, to *end*.

    Files that are pinned end where their length says.
    """
    neighbours = [Neighbour(file.path, file.size if is_pinned else None) for file in files]
    file = files[index]
    return Part(
        directory,
        file.file_id,
        file.path,
        start,
        file.size if is_pinned else end,
        tuple(reversed(neighbours[max(0, index - NEIGHBOURS_MAX) : index])),
        tuple(neighbours[index + 1 : index + 1 + NEIGHBOURS_MAX]),
        is_pinned=is_pinned,
    )


def rewritten_from(path: str) -> RewrittenDataFile | None:
    """Return what the file at *path* says at its beginning about the file whose rest it holds.

    None: it says nothing, or cannot be read (kahadb.md section 4).
    """
    return _rewritten(_head(path))


def _head(path: str) -> bytes:
    """Return the bytes at the beginning of the file at *path*; none: it cannot be read."""
    with suppress(OSError), open_file(path, FILE_HEAD_BYTES) as opened:
        return opened.read(FILE_HEAD_BYTES)
    return b""


def _rewritten(head: bytes) -> RewrittenDataFile | None:
    if head[COMMAND_AT : COMMAND_AT + 1] != REWRITTEN_COMMAND:
        return None
    try:
        record = decode_record(head, CONTROL_SIZE, "")
    except BadRecordError:
        return None
    return record if isinstance(record, RewrittenDataFile) else None
