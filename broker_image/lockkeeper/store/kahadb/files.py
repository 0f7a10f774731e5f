"""The data files of one directory: opened, rotated, repaired, deleted."""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.journal.files import FILE_ID_MAX, data_file_name
from lockkeeper.store.base import StoreError, StoreFullError
from lockkeeper.store.kahadb.extracts import delete_extract, delete_strays
from lockkeeper.store.kahadb.index import IndexFiles
from lockkeeper.store.kahadb.leftovers import delete_leftovers
from lockkeeper.store.kahadb.placing import NO_LINKS, place, sync_directory, unique_path
from lockkeeper.store.kahadb.preallocation import NO_ROOM, SpareFile
from lockkeeper.store.locker import LockLostError

ARCHIVE_NAME: Final = "data-archive"
FEW_BATCHES: Final = 128
"""A file that so few fill is not filled with zeros first: that takes longer than slow syncs."""


class Tail(NamedTuple):
    """A file that does not end properly, and where its sound part ends."""

    path: Path
    end: int


class JournalFiles:
    """End of the journal, where it is written: the current file, its end, and the next file.

    Each file has one writer for its whole life: the process that made it, through the descriptor
    that made it. `descriptor` is -1 until the first write; nothing that anybody reads changes in
    the directory before. `batches` counts what was written into the current file. Files from
    `kept_from` on are neither deleted nor compacted: they tell what no later file does.
    """

    def __init__(
        self,
        directory: Path,
        file_bytes_max: int,
        archive: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """*check* raises LockLostError when this process may not change the directory any more.

        It is asked before every change of a name, and of a file that another process made.
        """
        self.directory = directory
        self._archive = directory / ARCHIVE_NAME if archive else None
        self.file_bytes_max = file_bytes_max
        self.kept_from = FILE_ID_MAX
        self.descriptor = -1
        self.file_id = 0
        self.end = 0
        self.batches = 0
        # Why the last write was refused, if there was no room for it.
        self.refusal = ""
        self.check = check
        self._tails: Sequence[Tail] = ()
        self._index = IndexFiles(directory)
        self._spare = SpareFile(directory, file_bytes_max, check)

    def path(self, file_id: int) -> Path:
        """Return where data file *file_id* is."""
        return self.directory / data_file_name(file_id)

    def resume(self, last_file_id: int, tails: Sequence[Tail]) -> None:
        """Go on behind the file *last_file_id*: never in it, whose maker may write still.

        Before the first write ActiveMQ's index is deleted and the *tails* get an end. Raises
        StoreError.
        """
        self.file_id = last_file_id
        self._tails = tails
        try:
            delete_leftovers(self.directory, self.check)
            delete_strays(self.directory, self.check)
        except OSError as error:
            raise self.failure(error, self.directory) from error
        self._spare.prepare()

    def rotate(self, is_early: bool = False) -> None:
        """Begin the next file. Raises StoreFullError without room, else StoreError.

        One that is begun *early*, before the current one is full, may be left as early: the one
        behind it has to be ready soon.
        """
        self.discard_index()
        for tail in self._tails:
            self._repair(tail)
        self._tails = ()
        # The next file will be like the one that is full, as a rule.
        is_reserved_only = is_early or 0 < self.batches < FEW_BATCHES
        try:
            self._open_next()
        except OSError as error:
            raise self.failure(error, self.path(self.file_id + 1)) from error
        self._spare.prepare(is_reserved_only)

    def check_full(self) -> None:
        """Raise StoreFullError while there is no room for what waits, or for the next file."""
        if self.refusal:
            raise StoreFullError(self.refusal)
        error = self._spare.error
        if error is not None and error.errno in NO_ROOM:
            raise self.failure(error, self.path(self.file_id + 1))

    def retry_spare(self) -> None:
        """Try again to prepare the next file, if there was no room. Raises StoreError."""
        error = self._spare.error
        if error is None:
            return
        if error.errno not in NO_ROOM:
            # The disk fails: nothing more is trusted to it.
            raise self.failure(error, self.path(self.file_id + 1))
        self._spare.prepare()

    def failure(self, error: OSError, path: Path) -> StoreError:
        """Return what the core is told about *error* at *path*."""
        if error.errno in NO_ROOM:
            return StoreFullError(f"{path}: no room on the disk; free some and it goes on")
        return StoreError(f"{path}: {error.strerror}")

    def discard_index(self) -> None:
        """Delete ActiveMQ's index, if it is there. Raises StoreError."""
        if self._index.exist():
            self.check()
            self._index.delete()

    def delete(self, file_ids: list[int]) -> None:
        """Delete data files for good, or archive them; the index first.

        Raises StoreFullError where the archive has no room; files that are gone already may be
        named again. StoreError.
        """
        self.discard_index()
        try:
            for file_id in file_ids:
                self._put_away(self.path(file_id))
            if self._archive is not None:
                sync_directory(self._archive)
            sync_directory(self.directory)
        except OSError as error:
            raise self.failure(error, self._archive or self.directory) from error

    def replace(self, copy: Path, file_id: int) -> bool:
        """Let *copy* take the place of a data file, durably; the index goes first.

        False when the copy is gone, or the file cannot be kept in the archive. Raises OSError
        while everything is as it was; StoreError.
        """
        self.discard_index()
        path = self.path(file_id)
        self.check()
        if self._archive is not None and not self._keep_in_archive(path):
            return False
        self.check()
        try:
            delete_extract(path)
            copy.rename(path)
        except FileNotFoundError:
            return False
        try:
            sync_directory(self.directory)
        except OSError as error:
            raise StoreError(f"{self.directory}: {error.strerror}") from error
        return True

    def _keep_in_archive(self, path: Path) -> bool:
        """Give a data file a second name in the archive; False where files have only one."""
        target = self._name_in_archive(path)
        try:
            os.link(path, target)
        except FileExistsError:
            # It has that name since it was tried before.
            if not target.samefile(path):
                raise
        except OSError as error:
            if error.errno in NO_LINKS:
                return False
            raise
        sync_directory(target.parent)
        return True

    def _put_away(self, path: Path) -> None:
        self.check()
        delete_extract(path)
        if self._archive is None:
            path.unlink(missing_ok=True)
        elif path.exists():
            target = self._name_in_archive(path)
            if not place(path, target) and path.exists():
                path.rename(target)

    def _name_in_archive(self, path: Path) -> Path:
        """Return the name that a data file has in the archive, or one that no other file has."""
        assert self._archive is not None
        self._archive.mkdir(exist_ok=True)
        target = self._archive / path.name
        if target.exists() and not target.samefile(path):
            target = unique_path(self._archive, f"{path.name}.", "")
        return target

    def close(self) -> None:
        """Let go of the current file and of the spare."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        self._spare.close()

    def _repair(self, tail: Tail) -> None:
        """Have a file end where its sound part ends, durably: ActiveMQ checks only the last one.

        What follows the mark is never read. Whoever repairs the same file writes the same bytes.
        """
        self.check()
        try:
            descriptor = os.open(tail.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(descriptor, EOF_RECORD, tail.end)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self.failure(error, tail.path) from error

    def _open_next(self) -> None:
        file_id = self.file_id + 1
        if file_id > FILE_ID_MAX:
            raise OSError(errno.EOVERFLOW, "the numbers of data files are used up")
        path = self.path(file_id)
        try:
            descriptor = self._spare.place_at(path)
        except FileExistsError:
            raise LockLostError(f"{path} was written by another master") from None
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor, self.file_id, self.end, self.batches = descriptor, file_id, 0, 0
