"""Beginnings of journals: where the first record stands that is younger than a time.

A part knows the times around it only (`edges`). What stands behind a younger record is younger,
however far behind: so each file is looked at whole, once, up to the first such record.
"""

from collections.abc import Container

from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper_analytics.reading.batches import read_chunks
from lockkeeper_analytics.reading.located import located
from lockkeeper_analytics.reading.partitions import is_held_elsewhere, journal_files
from lockkeeper_analytics.reading.pins import Pins
from lockkeeper_analytics.reading.storage import sibling_in_archive
from lockkeeper_analytics.reading.times import Known


def last_file_until(directory: str, until: int, pinned: Pins | None = None) -> int:
    """Return the number of the first file of *directory* that tells a time after *until* (ms).

    What of it was written before then only the file itself tells. FILE_ID_MAX: no file does. With
    *pinned* the files are those, as they were. Raises NoJournalError, OSError.
    """
    files = journal_files(directory) if pinned is None else pinned.get(directory, ())
    there = {file.file_id for file in files}
    for file in files:
        end = None if pinned is None else file.size
        for path in (file.path, sibling_in_archive(file.path)):
            try:
                if _tells_later(path, end, until, there):
                    return file.file_id
            except FileNotFoundError:
                continue
            break
    return FILE_ID_MAX


def _tells_later(path: str, end: int | None, until: int, there: Container[int]) -> bool:
    """Tell whether a file tells a time after *until*; damage is told of by who reads its rows."""
    known = Known()
    for chunk in read_chunks(path, 0, end, skip_corrupt=True):
        if not chunk.base and is_held_elsewhere(chunk.data, there):
            return False
        known = located(chunk, path, skip_corrupt=True).passed_over(known).known
        if known.last > until:
            return True
    return False
