"""The next data file, filled with zeros ahead of time by a thread of low priority.

Syncing a write into a file whose blocks exist costs a third of one that grows the file. The
spare has a name that no KahaDB reader takes for a data file: the last data file must be the one
written last, because only its tail is checked for a torn write.
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.store.kahadb.index import sync_directory

SPARE_NAME = "next.zeros"
_CHUNK = bytes(1 << 20)
_PAUSE_SECONDS = 0.001
_LOWEST_PRIORITY = 19


class SpareFile:
    """Prepares one file of *size* bytes at a time in *directory*."""

    def __init__(self, directory: Path, size: int) -> None:
        self.error: OSError | None = None
        self._path = directory / SPARE_NAME
        self._size = size
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def prepare(self) -> None:
        """Begin to prepare the file, unless that is under way.

        Its room is taken at once: whether there is any must be known before the next message.
        """
        if self._thread is not None and (self.error is None or self._thread.is_alive()):
            return
        try:
            self._reserve()
        except OSError as error:
            self._give_up(error)
            return
        self.error = None
        self._thread = threading.Thread(target=self._work, name="journal-spare", daemon=True)
        self._thread.start()

    def take(self, target: Path) -> None:
        """Give the prepared file its name, durably; waits until it is prepared.

        Raises OSError, also that of preparing it, which is tried again only by `prepare`.
        """
        if self._thread is None:
            self.prepare()
        if self._thread is not None and self.error is None:
            self._thread.join()
        if self.error is not None:
            raise self.error
        self._thread = None
        self._path.rename(target)
        sync_directory(target.parent)

    def close(self) -> None:
        """Stop preparing and delete the file."""
        self._is_closing = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._path.unlink(missing_ok=True)

    def _reserve(self) -> None:
        """Make the file in its full length; what an earlier process left is of no use."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, self._size)
        finally:
            os.close(descriptor)

    def _work(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
        try:
            self._fill()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.error = error
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _fill(self) -> None:
        """Write zeros: blocks that are only reserved would make the first sync of each slow."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            written = 0
            while written < self._size and not self._is_closing:
                chunk = memoryview(_CHUNK)[: self._size - written]
                written += os.pwrite(descriptor, chunk, written)
                time.sleep(_PAUSE_SECONDS)
            os.pwrite(descriptor, EOF_RECORD, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
