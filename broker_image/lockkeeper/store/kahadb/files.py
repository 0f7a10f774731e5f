"""The data files of one directory: opened, rotated, repaired, deleted."""

import errno
import os
from pathlib import Path
from typing import NamedTuple

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.journal.files import FILE_ID_MAX, data_file_name
from lockkeeper.store.base import StoreError, StoreFullError
from lockkeeper.store.kahadb.guard import LockLostError
from lockkeeper.store.kahadb.index import IndexFiles, sync_directory
from lockkeeper.store.kahadb.spare import SpareFile

ARCHIVE_NAME = "data-archive"
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))


class Tail(NamedTuple):
    """A file that does not end properly, and where its sound part ends."""

    path: Path
    end: int


class JournalFiles:
    """Where the journal is written: the current file, its end, and the one after it.

    Nothing in the directory changes before the first write. `descriptor` is -1 until then.
    """

    def __init__(self, directory: Path, file_bytes_max: int, archive: bool = False) -> None:
        self.directory = directory
        self._archive = directory / ARCHIVE_NAME if archive else None
        self.file_bytes_max = file_bytes_max
        self.descriptor = -1
        self.file_id = 0
        self.end = 0
        self._reusable: int | None = None
        self._tail: Tail | None = None
        self._index = IndexFiles(directory)
        self._spare = SpareFile(directory, file_bytes_max)

    def path(self, file_id: int) -> Path:
        """Return where data file *file_id* is."""
        return self.directory / data_file_name(file_id)

    def resume(self, last_file_id: int, reusable_file_id: int | None, tail: Tail | None) -> None:
        """Go on behind the file *last_file_id*, or in the last one when it holds no batch.

        Before the first write ActiveMQ's index is deleted and a torn *tail* cut off.
        """
        self.file_id = last_file_id
        self._reusable = reusable_file_id
        self._tail = tail
        self._spare.prepare()

    def rotate(self) -> None:
        """Begin the next file. Raises StoreFullError without room, else StoreError."""
        self.discard_index()
        if self._tail is not None:
            self._repair(self._tail)
            self._tail = None
        try:
            self._open_next()
        except OSError as error:
            raise self.failure(error, self.path(self.file_id + 1)) from error
        self._spare.prepare()

    def check_full(self) -> None:
        """Raise StoreFullError while the file after the current one cannot be prepared."""
        error = self._spare.error
        if error is not None:
            raise self.failure(error, self.path(self.file_id + 1))

    def retry_spare(self) -> None:
        """Try again to prepare the next file, if that has failed."""
        if self._spare.error is not None:
            self._spare.prepare()

    def failure(self, error: OSError, path: Path) -> StoreError:
        """Return what the core is told about *error* at *path*."""
        if error.errno in _NO_ROOM:
            return StoreFullError(f"{path}: no room on the disk; free some and it goes on")
        return StoreError(f"{path}: {error.strerror}")

    def discard_index(self) -> None:
        """Delete ActiveMQ's index, if it is there. Raises StoreError."""
        if self._index.exist():
            self._index.delete()

    def delete(self, file_ids: list[int]) -> None:
        """Delete data files for good, or archive them; the index first. Raises StoreError."""
        self.discard_index()
        try:
            for file_id in file_ids:
                self._put_away(self.path(file_id))
            sync_directory(self.directory)
        except OSError as error:
            raise StoreError(f"{self.directory}: {error.strerror}") from error

    def _put_away(self, path: Path) -> None:
        if self._archive is None:
            path.unlink(missing_ok=True)
            return
        self._archive.mkdir(exist_ok=True)
        path.replace(self._archive / path.name)

    def close(self) -> None:
        """Let go of the current file and of the spare."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        self._spare.close()

    def _repair(self, tail: Tail) -> None:
        """Cut off what a torn write left, durably: ActiveMQ checks only the last file."""
        try:
            with tail.path.open("r+b") as file:
                file.truncate(tail.end)
                file.seek(tail.end)
                file.write(EOF_RECORD)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self.failure(error, tail.path) from error

    def _open_next(self) -> None:
        file_id = self._reusable
        if file_id is None:
            file_id = self.file_id + 1
            if file_id > FILE_ID_MAX:
                raise OSError(errno.EOVERFLOW, "the numbers of data files are used up")
            if self.path(file_id).exists():
                raise LockLostError(f"{self.path(file_id)} was written by another master")
            self._spare.take(self.path(file_id))
        descriptor = os.open(self.path(file_id), os.O_RDWR | os.O_CLOEXEC)
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self._reusable = None
        self.descriptor, self.file_id, self.end = descriptor, file_id, 0
