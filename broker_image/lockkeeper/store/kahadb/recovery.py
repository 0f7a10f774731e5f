"""From the journal to what is live: the replay of kahadb.md section 4, in record order.

The loop over plain adds and removes is the broker's start-up time, so it is written for speed;
everything rarer is in `replay.py`.
"""

import gc
import os
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from lockkeeper.journal.batch import CONTROL_SIZE, EOF_RECORD, EOF_SIZE
from lockkeeper.journal.errors import CorruptBatchError, JournalError
from lockkeeper.journal.files import DataFile, data_file_id, list_data_files
from lockkeeper.journal.rewritten import in_reading_order, is_superseded
from lockkeeper.journal.scan import Batch, FileScan, scan_file
from lockkeeper.journal.walk import walk_batch
from lockkeeper.store.base import DamagedError, Recovered, StoreError
from lockkeeper.store.kahadb.extracts import Extract, extract_path, read_others
from lockkeeper.store.kahadb.file_references import FileEntry, FileReferences
from lockkeeper.store.kahadb.files import Tail
from lockkeeper.store.kahadb.losses import DAMAGED_NAME, losses_of
from lockkeeper.store.kahadb.replay import Replay
from lockkeeper.store.kahadb.segment_files import segment_in_memory
from lockkeeper.store.kahadb.segment_replay import MakeSegment
from lockkeeper.store.kahadb.unsynced import LastBatch

FindExtract = Callable[[DataFile], Extract | None]
"""Finds the extract of a data file, if there is one that may be believed."""

ACCEPT_LOSS_ANNOTATION = "lockkeeper.dev/accept-loss"
_SPAN_BYTES = 1 << 20


def no_extract(_file: DataFile) -> None:
    """Find none: whoever wants to know of damage reads everything."""


class Replayed(NamedTuple):
    """State that the journal describes.

    `rollbacks` are the records that end transactions which were open, with the files these are
    in. `tails` are the files at the end of the journal that do not end properly; `last_file_id`
    is 0 without a file, `last_batch` None without a batch. `extracted` are the files of which only
    the extract was read, and what that leaves to read. `are_queues_told` says whether there are
    records that name queues.
    """

    recovered: Recovered
    file_references: FileReferences
    rollbacks: list[tuple[bytes, set[int]]]
    tails: list[Tail]
    last_file_id: int
    last_batch: LastBatch | None
    extracted: set[int]
    are_queues_told: bool


def replay_directory(
    directory: Path,
    make_segment: MakeSegment = segment_in_memory,
    extract_of: FindExtract = no_extract,
) -> Replayed:
    """Read all data files of *directory*; blocks, about 4 microseconds a record.

    *make_segment* makes the indexes of streams. A file that *extract_of* has an extract of is
    neither read nor checked as a whole. Raises DamagedError, which says what is lost, for anything
    but a torn tail; StoreError.
    """
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        return _Reader(directory, make_segment, extract_of).read()
    except JournalError as error:
        raise _damaged(directory, error) from error
    except OSError as error:
        raise StoreError(f"{error.filename or directory}: {error.strerror}") from error
    finally:
        if was_collecting:
            gc.enable()


class _Reader:
    def __init__(self, directory: Path, make_segment: MakeSegment, find: FindExtract) -> None:
        self._directory = directory
        self._find = find
        self._file_references = FileReferences()
        self._replay = Replay(self._file_references, make_segment)
        self._files = in_reading_order(list_data_files(directory))
        self._present = {file.file_id for file in self._files}
        self._torn: CorruptBatchError | None = None
        self._tails: list[Tail] = []
        self._last_batch: LastBatch | None = None
        self._extracted: set[int] = set()

    def read(self) -> Replayed:
        # How the journal ends is seen in the last two files with something in them.
        *_, before, _ = 0, 0, *(at for at, file in enumerate(self._files) if _is_begun(file))
        for at, (file, following) in enumerate(zip_longest(self._files, self._files[1:])):
            self._file_references.files[file.file_id] = FileEntry(file.size)
            if at >= before or not self._read_extract(file):
                self._read_whole(file, following)
        return Replayed(
            self._replay.finish(),
            self._file_references,
            self._replay.rollbacks(),
            self._tails,
            self._last_file_id(),
            self._last_batch,
            self._extracted,
            self._replay.existing.are_told,
        )

    def _read_whole(self, file: DataFile, following: DataFile | None) -> None:
        _read_ahead(following)
        data = file.path.read_bytes()
        scan = scan_file(data, file.path.name)
        self._check_readable(file, scan)
        if scan.batches:
            self._tails.clear()
            self._last_batch = _last_batch(file.path, data, scan.batches[-1])
        if not _is_marked(data, scan):
            self._tails.append(Tail(file.path, scan.end))
        for start, end in _spans(scan.batches):
            rows = walk_batch(data, start, end, scan.file_name)
            if start == CONTROL_SIZE and is_superseded(rows[0], data, self._present):
                self._file_references.superseded.add(file.file_id)
                return
            self._replay.apply_batch(rows, file.file_id, data, scan.file_name)

    def _read_extract(self, file: DataFile) -> bool:
        """Read no more of a file than its extract leaves; False where that cannot be done."""
        extract = self._find(file)
        if extract is None:
            return False
        data = read_others(file.path, extract)
        if data is None or not self._replay.adopt(extract, file.file_id):
            return False
        if self._torn is not None:
            raise self._torn
        self._tails.clear()
        self._extracted.add(file.file_id)
        for start, end in extract.others:
            rows = walk_batch(data, start, end, file.path.name)
            self._replay.apply_batch(rows, file.file_id, data, file.path.name)
        return True

    def _last_file_id(self) -> int:
        """Return the highest number in use, also by a file of length zero."""
        ids = (data_file_id(path.name) for path in self._directory.iterdir())
        return max((file_id for file_id in ids if file_id is not None), default=0)

    def _check_readable(self, file: DataFile, scan: FileScan) -> None:
        """Accept a torn tail only where nothing was written behind it."""
        if self._torn is not None and (scan.batches or scan.problem is not None):
            raise self._torn
        if scan.problem is None:
            return
        if not scan.is_torn:
            raise scan.problem
        self._torn = scan.problem


def _is_begun(file: DataFile) -> bool:
    """Tell whether something was written to a file, and not only its place taken."""
    with file.path.open("rb") as begun:
        return any(begun.read(CONTROL_SIZE))


def _read_ahead(following: DataFile | None) -> None:
    """Have the kernel read the next file from a cold disk."""
    if following is not None and not extract_path(following.path).exists():
        with following.path.open("rb") as ahead:
            os.posix_fadvise(ahead.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def _last_batch(path: Path, data: bytes, batch: Batch) -> LastBatch:
    start = batch.start - CONTROL_SIZE
    return LastBatch(path, start, data[start : batch.end])


def _is_marked(data: bytes, scan: FileScan) -> bool:
    """Tell whether an EOF record, or nothing at all, follows the batches of a file.

    Zeros end a file too, but not every version of ActiveMQ takes them for an end.
    """
    return data[scan.end : scan.end + EOF_SIZE] in (EOF_RECORD, b"")


def _spans(batches: list[Batch]) -> Iterator[tuple[int, int]]:
    """Yield runs of batches, about a megabyte each, as where their insides start and end."""
    start = end = 0
    for batch in batches:
        if end - start > _SPAN_BYTES:
            yield start, end
            start = 0
        start, end = start or batch.start, batch.end
    if start:
        yield start, end


def _damaged(directory: Path, error: JournalError) -> DamagedError:
    """Return what the operator is told of a journal that cannot be read as a whole."""
    text = "\n".join(map(str, losses_of(directory)))
    return DamagedError(
        f"{directory}: {error}. This is no interrupted write: what follows it is sound, or it was "
        "durable once. Restore the file from a copy; or serve the rest, with the damaged bytes "
        f"set aside in {DAMAGED_NAME}/: lockkeeper broker or up with --accept-loss, the annotation "
        f'{ACCEPT_LOSS_ANNOTATION}: "true" of the Broker; or have a sound copy made: '
        f"lockkeeper journal salvage.\n{text}"
    )
