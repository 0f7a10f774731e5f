"""One moment of a journal that a broker is writing: its files, held open, and where it ends.

A name of a data file is given once, taken away, or given to a compacted copy; never is it given
back. So when every file is opened, then the end is read, and every name is found to mean the same
file still, all of them were there, and no others, when the end was read.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lockkeeper.journal.errors import JournalError
from lockkeeper.journal.files import DataFile, list_data_files
from lockkeeper.journal.scan import scan_file
from lockkeeper.store.base import StoreError

ReadAt = Callable[[int, int, int], bytes]
"""`os.pread`, or what a test puts in its place."""


class Identity(NamedTuple):
    """Identity of a file, distinct from any other that bore its name or its inode."""

    name: str
    device: int
    inode: int
    modified_ns: int


class ChangedError(Exception):
    """The directory changed while it was looked at: look again."""


class HeldFile:
    """A data file, open: what it held can be read although its name is gone."""

    def __init__(self, file: DataFile, read_at: ReadAt) -> None:
        """Raises FileNotFoundError, OSError."""
        self.name = file.path.name
        self.file_id = file.file_id
        self._read_at = read_at
        self._descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def identity(self) -> Identity:
        """Tell which file this is. Raises OSError."""
        status = os.fstat(self._descriptor)
        return Identity(self.name, status.st_dev, status.st_ino, status.st_mtime_ns)

    def read(self) -> bytes:
        """Return all that is in the file now. Raises OSError."""
        parts = []
        left, position = os.fstat(self._descriptor).st_size, 0
        while left and (part := self._read_at(self._descriptor, left, position)):
            parts.append(part)
            position += len(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Let go of the file; safe to repeat."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Moment:
    """The files with batches, oldest first; the last one is in memory, up to where it ended.

    All that was durable at the time `at` (ms since the epoch) is in them.
    """

    def __init__(self, directory: Path, read_at: ReadAt = os.pread) -> None:
        """Raises ChangedError, CorruptBatchError, OSError."""
        self.files: list[HeldFile] = []
        self._last = b""
        try:
            for file in list_data_files(directory):
                self.files.append(HeldFile(file, read_at))
            if not self.files:
                raise StoreError(f"{directory}: no journal here, files db-N.log are expected")
            opened = {file.identity[:3] for file in self.files}
            self.at = time.time_ns() // 1_000_000
            self._find_end()
            if _present(directory) != opened:
                raise ChangedError(f"{directory}: files came and went")
        except FileNotFoundError as error:
            self.close()
            raise ChangedError(f"{error.filename}: gone") from error
        except BaseException:
            self.close()
            raise

    def _find_end(self) -> None:
        """Drop files that were only prepared, newest first; keep the sound part of the last one.

        In this order: what is written meanwhile begins a file that was found empty before.
        """
        while self.files:
            data = self.files[-1].read()
            scan = scan_file(data, self.files[-1].name)
            scan.require_uncorrupted()
            if scan.batches:
                self._last = data[: scan.end]
                return
            self.files.pop().close()

    def content(self, file: HeldFile) -> bytes:
        """Return the sound part of one of `files`. Raises OSError, CorruptBatchError."""
        if file is self.files[-1]:
            return self._last
        data = file.read()
        scan = scan_file(data, file.name)
        scan.require_whole()
        return data[: scan.end]

    def close(self) -> None:
        """Let go of all files."""
        for file in self.files:
            file.close()


def hold_moment(directory: Path, tries: int, read_at: ReadAt = os.pread) -> Moment:
    """Return a moment of *directory*'s journal, after so many *tries* at most.

    Raises JournalError for damage, StoreError when there is no journal, or when the directory
    changes faster than it can be read; OSError.
    """
    for left in reversed(range(tries)):
        try:
            return Moment(directory, read_at)
        except (ChangedError, JournalError) as error:
            # A batch that is being written looks damaged for as long as that takes.
            if left:
                continue
            if isinstance(error, JournalError):
                raise
            reason = f"{error}, {tries} times while it was looked at; try again"
            raise StoreError(reason) from error
    raise ValueError("at least one try is needed")


def _present(directory: Path) -> set[tuple[str, int, int]]:
    """Return which files the names of data files mean now. Raises OSError."""
    found = set()
    for file in list_data_files(directory):
        status = file.path.stat()
        found.add((file.path.name, status.st_dev, status.st_ino))
    return found
