"""Files of the segments' indexes: derived, made anew whenever the journal is opened."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from lockkeeper.message.segments import SegmentName
from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.preallocation import NO_ROOM
from lockkeeper.store.segment import MemoryOctets, Segment

DIRECTORY_PREFIX: Final = "streams-"
DIRECTORY_SUFFIX: Final = ".index"
BUFFER_BYTES: Final = 1 << 16
OPEN_MAX: Final = 64
"""So many files of indexes stay open, of however many partitions there are."""

_Result = TypeVar("_Result")


class OpenFiles:
    """Files of indexes that stay open: those that were written to first are closed for others."""

    def __init__(self, most: int = OPEN_MAX) -> None:
        self._most = most
        self._files: dict[FileOctets, None] = {}

    def add(self, file: "FileOctets") -> None:
        """Note a file that was opened; another one may be closed for it."""
        self._files[file] = None
        if len(self._files) > self._most:
            next(iter(self._files)).close()

    def discard(self, file: "FileOctets") -> None:
        """Forget a file that is closed."""
        del self._files[file]

    def close(self) -> None:
        """Close them all."""
        for file in list(self._files):
            file.close()


class FileOctets:
    """Bytes in a file that the page cache serves; the last of them wait for company.

    Nothing is synced. A file that is sealed, or closed for others, is open only while it is read.
    """

    __slots__ = ("_among", "_buffer", "_descriptor", "_path", "_written")

    def __init__(self, path: Path, among: OpenFiles) -> None:
        self._path = path
        self._among = among
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
        written = max(0, min(size, self._written - start))
        found = self._pread(start, written) if written else b""
        begin = start + written - self._written
        return found + bytes(self._buffer[begin : begin + size - written])

    def _pread(self, start: int, size: int) -> bytes:
        if self._descriptor >= 0:
            return self._tried(lambda: os.pread(self._descriptor, size, start))
        descriptor = self._tried(lambda: os.open(self._path, os.O_RDONLY | os.O_CLOEXEC))
        try:
            return self._tried(lambda: os.pread(descriptor, size, start))
        finally:
            os.close(descriptor)

    def write(self, start: int, data: bytes) -> None:
        """See `Octets.write`."""
        inside = data[: max(0, self._written - start)]
        if inside:
            was_open = self._descriptor >= 0
            self._tried(self._open)
            self._tried(lambda: os.pwrite(self._descriptor, inside, start))
            if not was_open:
                self.close()
        begin = start + len(inside) - self._written
        if len(inside) < len(data):
            self._buffer[begin : begin + len(data) - len(inside)] = data[len(inside) :]

    def _flush(self) -> None:
        """Write what waits; where there is no room it waits on, in memory. Raises StoreError.

        The journal's own files have their room already: what is refused there is no more.
        """
        while self._buffer:
            try:
                self._open()
                written = os.pwrite(self._descriptor, self._buffer, self._written)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise self._failure(error) from error
                return
            self._written += written
            del self._buffer[:written]

    def _open(self) -> None:
        if self._descriptor < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o600)
            self._among.add(self)

    def close(self) -> None:
        """Let go of the file, until something is written."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._among.discard(self)

    def seal(self) -> None:
        """See `Octets.seal`."""
        self._flush()
        self.close()

    def drop(self) -> None:
        """See `Octets.drop`."""
        self._buffer.clear()
        self.close()
        self._path.unlink(missing_ok=True)

    def _tried(self, call: Callable[[], _Result]) -> _Result:
        """Return what *call* does. Raises StoreError."""
        try:
            return call()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> StoreError:
        return StoreError(f"{self._path}: {error.strerror}")


class SegmentFiles:
    """Makes the files of indexes, in a directory beside the journal that only this process uses."""

    def __init__(self, directory: Path, check: Callable[[], None]) -> None:
        """*check* raises when this process may not change *directory*."""
        self._parent = directory
        self._check = check
        self._directory: Path | None = None
        self._open_files = OpenFiles()
        self._count = 0

    def make(self, name: SegmentName) -> Segment:
        """Return an empty segment; without room for a directory in memory. Raises StoreError."""
        try:
            self._directory = self._directory or self._begin()
        except OSError as error:
            if error.errno in NO_ROOM:
                return segment_in_memory(name)
            raise StoreError(f"{self._parent}: {error.strerror}") from error
        self._count += 1
        stem = self._directory / str(self._count)
        return Segment(
            name,
            FileOctets(stem.with_suffix(".entries"), self._open_files),
            FileOctets(stem.with_suffix(".keys"), self._open_files),
        )

    def path_for(self, name: str) -> Path | None:
        """Return a path for a file of this process; None before there is a directory."""
        return None if self._directory is None else self._directory / name

    def _begin(self) -> Path:
        """Return a directory of our own; those of processes that were killed are deleted."""
        for left in self._parent.glob(f"{DIRECTORY_PREFIX}*{DIRECTORY_SUFFIX}"):
            self._check()
            shutil.rmtree(left, ignore_errors=True)
        return Path(tempfile.mkdtemp(DIRECTORY_SUFFIX, DIRECTORY_PREFIX, self._parent))

    def close(self) -> None:
        """Delete the files."""
        self._open_files.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None


def segment_in_memory(name: SegmentName) -> Segment:
    """Return an empty segment without files, for whoever reads a journal that is another's."""
    return Segment(name, MemoryOctets(), MemoryOctets())
