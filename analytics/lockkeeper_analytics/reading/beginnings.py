"""Beginnings of journals: where the first record stands that is younger than a time.

A part knows the times around it only (`edges`). What stands behind a younger record is younger,
however far behind. A few files' heads tell in which files that record may be, and only these are
looked at whole.
"""

from collections.abc import Container, Iterable, Sequence

from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper_analytics.errors import OptionError
from lockkeeper_analytics.reading.batches import read_chunks
from lockkeeper_analytics.reading.edges import first_told
from lockkeeper_analytics.reading.histories import kept_files
from lockkeeper_analytics.reading.located import located
from lockkeeper_analytics.reading.partitions import Neighbour, is_held_elsewhere, journal_files
from lockkeeper_analytics.reading.pins import Pinned, Pins
from lockkeeper_analytics.reading.storage import DataFile, sibling_in_archive
from lockkeeper_analytics.reading.times import Known

CLOCKS_APART_MAX = 60_000
"""So many ms at most is a broker's clock behind that of the one before, or behind its own."""


def last_files(
    directories: Iterable[str], until: int, pinned: Pins | None = None
) -> dict[str, int]:
    """Return of each directory what `last_file_until` says of its files, or those *pinned*.

    Raises NoJournalError, OSError, GoneError, and OptionError for a history of records: there,
    records may tell no time, and the files beside them that did are gone.
    """
    directories = tuple(directories)
    for each in directories:
        if kept_files(each):
            raise OptionError(f"option until: {each} is a history of records, which is told whole")
    if pinned is None:
        return {each: last_file_until(journal_files(each), until) for each in directories}
    return {
        each: last_file_until(pinned.get(each, Pinned()).files, until, True) for each in directories
    }


def last_file_until(files: Sequence[DataFile], until: int, are_pinned: bool = False) -> int:
    """Return the number of the first of *files* that tells a time after *until* (ms).

    What of it was written before then only the file itself tells, so nobody looks at the last one
    here. FILE_ID_MAX: no other does. The files are a journal's, in order; those that are pinned
    end where their length says. Raises OSError, and GoneError for one that was pinned.
    """
    there = {file.file_id for file in files}
    places = [Neighbour(file.path, file.size if are_pinned else None) for file in files]
    first = _last_beginning_before(until - CLOCKS_APART_MAX, places)
    for index in range(first, len(files) - 1):
        if _tells_later(places[index], until, there):
            return files[index].file_id
    return FILE_ID_MAX


def _last_beginning_before(time: int, files: Sequence[Neighbour]) -> int:
    """Return the index of the last of *files* that tells at its head of *time* or before; or 0."""
    low, high = 0, len(files)
    while high - low > 1:
        middle = (low + high) // 2
        index, first = _next_told(files, middle, high)
        if 0 < first <= time:
            low = index
        else:
            high = middle
    return low


def _next_told(files: Sequence[Neighbour], start: int, end: int) -> tuple[int, int]:
    """Return which file from *start* on tells a time at its head, and which; 0: none does."""
    for index in range(start, end):
        if first := first_told(files[index]):
            return index, first
    return end, 0


def _tells_later(file: Neighbour, until: int, there: Container[int]) -> bool:
    """Tell whether *file* is there and tells a time after *until*."""
    for path in (file.path, sibling_in_archive(file.path)):
        try:
            return _is_later(path, file.end, until, there)
        except FileNotFoundError:
            continue
    return False


def _is_later(path: str, end: int | None, until: int, there: Container[int]) -> bool:
    """Tell whether a file tells a time after *until*; damage is told of by who reads its rows."""
    known = Known()
    for chunk in read_chunks(path, 0, end, skip_corrupt=True):
        if not chunk.base and is_held_elsewhere(chunk.data, there):
            return False
        known = located(chunk, path, skip_corrupt=True).passed_over(known).known
        if known.last > until:
            return True
    return False
