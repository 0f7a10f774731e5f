"""Files of the segments' indexes: derived, made anew whenever the journal is opened."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lockkeeper.store.base import StoreError
from lockkeeper.store.segment import MemoryOctets, Segment, SegmentName

DIRECTORY_PREFIX: Final = "streams-"
DIRECTORY_SUFFIX: Final = ".index"
BUFFER_BYTES: Final = 1 << 16


class FileOctets:
    """Bytes in a file that the page cache serves; the last of them wait for company.

    Nothing is synced. A sealed file is open only while it is read.
    """

    __slots__ = ("_buffer", "_descriptor", "_path", "_written")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._buffer = bytearray()
        self._descriptor = -1
        self._written = 0

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self._written + len(self._buffer)

    def append(self, data: bytes) -> None:
        """See `Octets.append`."""
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            self._flush()

    def read(self, start: int, size: int) -> bytes:
        """See `Octets.read`."""
        if start >= self._written:
            start -= self._written
            return bytes(self._buffer[start : start + size])
        if start + size > self._written:
            self._flush()
        try:
            return self._pread(start, size)
        except OSError as error:
            raise self._failure(error) from error

    def _pread(self, start: int, size: int) -> bytes:
        if self._descriptor >= 0:
            return os.pread(self._descriptor, size, start)
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, size, start)
        finally:
            os.close(descriptor)

    def write(self, start: int, data: bytes) -> None:
        """See `Octets.write`."""
        was_open = self._descriptor >= 0
        try:
            self._flush()
            self._open()
            os.pwrite(self._descriptor, data, start)
        except OSError as error:
            raise self._failure(error) from error
        if not was_open:
            self.seal()

    def _flush(self) -> None:
        """Write what waits. Raises StoreError."""
        if not self._buffer:
            return
        try:
            self._open()
            written = os.pwrite(self._descriptor, self._buffer, self._written)
        except OSError as error:
            raise self._failure(error) from error
        self._written += written
        del self._buffer[:written]
        if self._buffer:
            raise StoreError(f"{self._path}: no room for the index of a stream")

    def _open(self) -> None:
        if self._descriptor < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o600)

    def seal(self) -> None:
        """See `Octets.seal`."""
        self._flush()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def drop(self) -> None:
        """See `Octets.drop`."""
        self._buffer.clear()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._path.unlink(missing_ok=True)

    def _failure(self, error: OSError) -> StoreError:
        return StoreError(f"{self._path}: {error.strerror}")


class SegmentFiles:
    """Makes the files of indexes, in a directory beside the journal that only this process uses."""

    def __init__(self, directory: Path, check: Callable[[], None]) -> None:
        """*check* raises when this process may not change *directory*."""
        self._parent = directory
        self._check = check
        self._directory: Path | None = None
        self._count = 0

    def make(self, name: SegmentName) -> Segment:
        """Return an empty segment. Raises StoreError."""
        if self._directory is None:
            self._directory = self._begin()
        self._count += 1
        stem = self._directory / str(self._count)
        return Segment(
            name, FileOctets(stem.with_suffix(".entries")), FileOctets(stem.with_suffix(".keys"))
        )

    def _begin(self) -> Path:
        """Return a directory of our own; those of processes that were killed are deleted."""
        try:
            for left in self._parent.glob(f"{DIRECTORY_PREFIX}*{DIRECTORY_SUFFIX}"):
                self._check()
                shutil.rmtree(left, ignore_errors=True)
            return Path(tempfile.mkdtemp(DIRECTORY_SUFFIX, DIRECTORY_PREFIX, self._parent))
        except OSError as error:
            raise StoreError(f"{self._parent}: {error.strerror}") from error

    def close(self) -> None:
        """Delete the files."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None


def segment_in_memory(name: SegmentName) -> Segment:
    """Return an empty segment without files, for whoever reads a journal that is another's."""
    return Segment(name, MemoryOctets(), MemoryOctets())
