"""Files that the broker compacted: by what they are known, and where they are whole.

A compacted file has its number, and a line at its beginning that tells which file it was
(`journal/compacted.py`). Records that nobody needed are gone from it; the others have moved.
"""

from collections.abc import Mapping
from contextlib import suppress

from lockkeeper.journal.compacted import HEAD_BYTES, Compaction, compaction_in, first_in
from lockkeeper_analytics.errors import NoJournalError
from lockkeeper_analytics.reading.storage import (
    ARCHIVE,
    DataFile,
    beside,
    list_folder,
    open_file,
    sibling_in_archive,
)


def head_of(path: str) -> bytes:
    """Return the first bytes of a file; none: it cannot be read."""
    with suppress(OSError), open_file(path, HEAD_BYTES) as file:
        return file.read(HEAD_BYTES)
    return b""


def first_of(path: str) -> str:
    """Return by what a file is known, compacted or not."""
    head = head_of(path)
    compaction = compaction_in(head)
    return first_in(head) if compaction is None else compaction.first


def compaction_of(file: DataFile) -> Compaction | None:
    """Return which file a compacted one was; None: it is whole."""
    return compaction_in(head_of(file.path))


def had_ended(path: str, position: int) -> bool:
    """Tell whether a file that was compacted since had nothing behind *position*."""
    compaction = compaction_in(head_of(path))
    return compaction is not None and compaction.end <= position


def shorter_by(path: str) -> int:
    """Return how many bytes a compacted file is shorter than it was, 0 for one that is whole."""
    with suppress(OSError), open_file(path) as file:
        compaction = compaction_in(file.read(HEAD_BYTES))
        return 0 if compaction is None else compaction.size - file.seek(0, 2)
    return 0


def whole_file(file: DataFile, compaction: Compaction) -> DataFile | None:
    """Return the file in the archive that was compacted to *file*; None: it is not there."""
    path = sibling_in_archive(file.path)
    if first_in(head_of(path)) != compaction.first:
        return None
    return DataFile(file.file_id, path, compaction.size, file.changed)


def whole_files(directory: str, files: Mapping[int, DataFile]) -> dict[int, DataFile]:
    """Return *files*, with whole ones from the archive for those that are compacted."""
    found = dict(files)
    with suppress(NoJournalError):
        for archived in list_folder(beside(directory, ARCHIVE)):
            compaction = compaction_of(files[archived.file_id])
            if compaction is not None and first_in(head_of(archived.path)) == compaction.first:
                found[archived.file_id] = archived
    return found
