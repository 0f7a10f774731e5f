"""Which parts of which files are read together: one Spark partition for each."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lockkeeper.journal.batch import CONTROL_SIZE
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.encode import RECORD_HEADER_SIZE
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.files import DataFile, list_data_files
from lockkeeper.journal.records import RewrittenDataFile
from lockkeeper_analytics.errors import NoJournalError

PART_BYTES = 16 * 1024 * 1024
ARCHIVE = "data-archive"
"""Where a broker moves files that it no longer needs, when it is told to keep them."""

NEIGHBOURS_MAX = 4
FILE_HEAD_BYTES = 256
COMMAND_AT = CONTROL_SIZE + RECORD_HEADER_SIZE
REWRITTEN_COMMAND = b"\x10"


@dataclass(frozen=True, slots=True)
class Part:
    """The batches of one file that begin from `start` to before `end` (None: to the end).

    `before` and `behind` name the neighbouring files, the nearest first: where to look for a
    known time when the part has none at its edge.
    """

    directory: str
    file_id: int
    path: str
    start: int
    end: int | None
    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


def plan_parts(directories: tuple[str, ...], since: int = 0) -> list[Part]:
    """Return the parts of all journals in *directories*, in journal order.

    Files last changed before *since* (ms) are left out. Raises NoJournalError.
    """
    parts: list[Part] = []
    for directory in directories:
        files = journal_files(directory)
        for index, file in enumerate(files):
            if _last_change(file.path) >= since:
                parts += _parts_of(directory, files, index)
    return parts


def journal_files(directory: str) -> list[DataFile]:
    """Return the data files of *directory* that count, archived ones too, in order.

    Raises NoJournalError.
    """
    path = Path(directory)
    if not path.exists():
        raise NoJournalError(f"{directory}: no such directory")
    if not path.is_dir():
        raise NoJournalError(f"{directory}: not a directory; name the one that holds db-1.log")
    try:
        files = {file.file_id: file for file in list_data_files(path)}
        if (path / ARCHIVE).is_dir():
            files = {file.file_id: file for file in list_data_files(path / ARCHIVE)} | files
    except OSError as error:
        raise NoJournalError(f"{directory}: {error.strerror}") from error
    if not files:
        raise NoJournalError(f"{directory}: no journal file (db-1.log, db-2.log, …) in it")
    ordered = [files[file_id] for file_id in sorted(files)]
    return [file for file in ordered if _rewritten_from(file) not in files]


def _last_change(path: Path) -> float:
    """Return when *path* was last changed, in ms; 0 when a broker has just deleted it."""
    try:
        return path.stat().st_mtime * 1000
    except FileNotFoundError:
        return 0


def _parts_of(directory: str, files: list[DataFile], index: int) -> Iterator[Part]:
    file = files[index]
    nearest = [str(each.path) for each in reversed(files[max(0, index - NEIGHBOURS_MAX) : index])]
    behind = tuple(str(each.path) for each in files[index + 1 : index + 1 + NEIGHBOURS_MAX])
    last = (file.size - 1) // PART_BYTES
    for number in range(last + 1):
        start = number * PART_BYTES
        end = None if number == last else start + PART_BYTES
        path = str(file.path)
        yield Part(directory, file.file_id, path, start, end, tuple(nearest), behind)


def _rewritten_from(file: DataFile) -> int | None:
    """Return the id of the file whose rest *file* holds, when it begins by saying so.

    While that file still exists the rewritten one does not count (kahadb.md section 4).
    """
    try:
        with file.path.open("rb") as opened:
            head = opened.read(FILE_HEAD_BYTES)
        if head[COMMAND_AT : COMMAND_AT + 1] != REWRITTEN_COMMAND:
            return None
        record = decode_record(head, CONTROL_SIZE, file.path.name)
    except (OSError, BadRecordError):
        return None
    if isinstance(record, RewrittenDataFile) and record.skip_if_source_exists:
        return record.source_data_file_id
    return None
