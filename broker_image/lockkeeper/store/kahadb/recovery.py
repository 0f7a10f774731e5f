"""From the journal to what is live: the replay of kahadb.md section 4, in record order.

The loop over plain adds and removes is the broker's start-up time, so it is written for speed;
everything rarer is in `replay.py`.
"""

import gc
import os
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from lockkeeper.journal.batch import CONTROL_SIZE, EOF_RECORD, EOF_SIZE
from lockkeeper.journal.errors import CorruptBatchError, JournalError
from lockkeeper.journal.files import DataFile, data_file_id, list_data_files
from lockkeeper.journal.scan import Batch, FileScan, scan_file
from lockkeeper.journal.walk import walk_batch
from lockkeeper.store.base import Recovered, StoreError
from lockkeeper.store.kahadb.files import Tail
from lockkeeper.store.kahadb.ledger import FileLedger, Ledger
from lockkeeper.store.kahadb.replay import Replay, is_superseded

_SPAN_BYTES = 1 << 20


class Replayed(NamedTuple):
    """What the journal says.

    `rollbacks` are the records that end transactions which were open, with the files these are
    in. `last_file_id` is 0 without a file; `reusable_file_id` is the same if no batch is in it.
    """

    recovered: Recovered
    ledger: Ledger
    rollbacks: list[tuple[bytes, set[int]]]
    tail: Tail | None
    last_file_id: int
    reusable_file_id: int | None


def replay_directory(directory: Path) -> Replayed:
    """Read all data files of *directory*; blocks, about 4 microseconds a record.

    Raises StoreError, naming file and offset, for anything but a torn tail.
    """
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        return _Reader(directory).read()
    except JournalError as error:
        raise StoreError(f"{directory}: {error}") from error
    except OSError as error:
        raise StoreError(f"{error.filename or directory}: {error.strerror}") from error
    finally:
        if was_collecting:
            gc.enable()


class _Reader:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ledger = Ledger()
        self._replay = Replay(self._ledger)
        self._files = list_data_files(directory)
        self._torn: FileScan | None = None
        self._torn_path = directory
        self._unmarked: Tail | None = None

    def read(self) -> Replayed:
        present = {file.file_id for file in self._files}
        empty_file_id: int | None = None
        for file, data in _read_ahead(self._files):
            scan = scan_file(data, file.path.name)
            self._check(file, scan)
            if scan.batches:
                self._unmarked = None if _is_marked(data, scan) else Tail(file.path, scan.end)
            self._ledger.files[file.file_id] = FileLedger(file.size)
            empty_file_id = None if scan.end else file.file_id
            self._read_file(file, data, scan, present)
        torn = self._torn
        last_file_id = self._last_file_id()
        return Replayed(
            self._replay.finish(),
            self._ledger,
            self._replay.rollbacks(),
            self._unmarked if torn is None else Tail(self._torn_path, torn.end),
            last_file_id,
            empty_file_id if empty_file_id == last_file_id else None,
        )

    def _last_file_id(self) -> int:
        """Return the highest number in use, also by a file of length zero."""
        ids = (data_file_id(path.name) for path in self._directory.iterdir())
        return max((file_id for file_id in ids if file_id is not None), default=0)

    def _check(self, file: DataFile, scan: FileScan) -> None:
        """Accept a torn tail only where nothing was written behind it."""
        if self._torn is not None and (scan.batches or scan.problem is not None):
            raise _hopeless(self._torn.problem)
        if scan.problem is None:
            return
        if not scan.is_torn:
            raise _hopeless(scan.problem)
        self._torn, self._torn_path = scan, file.path

    def _read_file(self, file: DataFile, data: bytes, scan: FileScan, present: set[int]) -> None:
        for start, end in _spans(scan.batches):
            rows = walk_batch(data, start, end, scan.file_name)
            if start == CONTROL_SIZE and is_superseded(rows[0], data, present):
                return
            self._replay.apply_batch(rows, file.file_id, data, scan.file_name)


def _read_ahead(files: list[DataFile]) -> Iterator[tuple[DataFile, bytes]]:
    """Yield each file with its bytes, while the kernel reads the next one from a cold disk."""
    for file, following in zip_longest(files, files[1:]):
        if following is not None:
            with following.path.open("rb") as ahead:
                os.posix_fadvise(ahead.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
        yield file, file.path.read_bytes()


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


def _hopeless(problem: CorruptBatchError | None) -> StoreError:
    return StoreError(
        f"{problem}. What follows it in the journal is sound, so this is no interrupted write: "
        "restore the file from a copy, or move it away to go on without its messages"
    )
