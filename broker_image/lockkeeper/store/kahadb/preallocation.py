"""The next data file, filled with zeros ahead of time by a thread of low priority.

Syncing a write into a file whose blocks exist costs a third of one that grows the file. Until it
is taken the spare has a name that no KahaDB reader takes for a data file, and that no other
process uses: the thread may have been stopped anywhere, and write into it long after another
process became the master. Everything goes through the descriptor that made the file.
"""

import errno
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.store.kahadb.placing import make_file, place, sync_directory, unique_path
from lockkeeper.store.locker import LockLostError

SPARE_PREFIX = "next-"
SPARE_SUFFIX = ".zeros"
NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))
_CHUNK = bytes(1 << 20)
_PAUSE_SECONDS = 0.001
_LOWEST_PRIORITY = 19


class SpareFile:
    """Prepares one file of *size* bytes at a time in *directory*.

    *check* raises LockLostError when this process may not write any more.
    """

    def __init__(self, directory: Path, size: int, check: Callable[[], None]) -> None:
        self.error: OSError | None = None
        self._directory = directory
        self._size = size
        self._check = check
        self._path = directory
        self._descriptor = -1
        self._thread: threading.Thread | None = None
        self._is_closing = self._is_reserved_only = False
        self._lost: LockLostError | None = None

    def prepare(self, is_reserved_only: bool = False) -> None:
        """Begin to prepare the file, unless that is under way.

        Its room is taken at once: whether there is any must be known before the next message.
        One that *is reserved only* has no zeros written: a few large batches will fill it.
        """
        if self._thread is not None and (self.error is None or self._thread.is_alive()):
            return
        self._check()
        self._drop()
        try:
            self._reserve()
        except OSError as error:
            self._give_up(error)
            return
        self.error = None
        self._is_reserved_only = is_reserved_only
        self._thread = threading.Thread(target=self._work, name="journal-spare", daemon=True)
        self._thread.start()

    def place_at(self, target: Path) -> int:
        """Give the prepared file its name, durably, and return its descriptor, now the caller's.

        Waits until it is prepared. Raises FileExistsError, leaving that file alone; OSError, also
        that of preparing it, which is tried again only by `prepare`; LockLostError.
        """
        if self._thread is None:
            self.prepare()
        if self._thread is not None and self.error is None:
            self._thread.join()
        if self._lost is not None:
            raise self._lost
        if self.error is not None:
            raise self.error
        self._check()
        if place(self._path, target):
            descriptor, self._descriptor = self._descriptor, -1
        else:
            descriptor = self._make_at(target)
        self._thread = None
        sync_directory(self._directory)
        return descriptor

    def close(self) -> None:
        """Stop preparing and delete the file."""
        self._is_closing = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._drop()

    def _reserve(self) -> None:
        """Make the file in its full length; never one that is there already."""
        self._path = unique_path(self._directory, SPARE_PREFIX, SPARE_SUFFIX)
        self._descriptor = make_file(self._path)
        os.posix_fallocate(self._descriptor, 0, self._size)

    def _make_at(self, target: Path) -> int:
        """Make the file under its name: as safe, but its blocks are slower to sync."""
        descriptor = make_file(target)
        try:
            os.posix_fallocate(descriptor, 0, self._size)
            os.pwrite(descriptor, EOF_RECORD, 0)
        except OSError:
            os.close(descriptor)
            target.unlink(missing_ok=True)
            raise
        self._drop()
        return descriptor

    def _drop(self) -> None:
        """Delete the file, if there is one."""
        if self._descriptor >= 0:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1

    def _work(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
        try:
            self._fill()
        except OSError as error:
            self._give_up(error)
        except LockLostError as error:
            self._lost = error

    def _give_up(self, error: OSError) -> None:
        self.error = error
        self._drop()

    def _fill(self) -> None:
        """Write zeros: blocks that are only reserved would make the first sync of each slow."""
        written = self._size if self._is_reserved_only else 0
        while written < self._size and not self._is_closing:
            self._check()
            chunk = memoryview(_CHUNK)[: self._size - written]
            written += os.pwrite(self._descriptor, chunk, written)
            time.sleep(_PAUSE_SECONDS)
        os.pwrite(self._descriptor, EOF_RECORD, 0)
        os.fsync(self._descriptor)
