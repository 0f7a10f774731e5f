"""Temporary files for the bodies of messages that are not persistent (ActiveMQ's temp store).

The files have no names: they go with the process, however it ends. A file's room is given back
when none of its messages is left.
"""

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lockkeeper.message.message import Message
from lockkeeper.message.reader import MessageReader
from lockkeeper.store.base import VOLATILE, GoneError, Reference, StoreError

FILE_BYTES = 16 << 20
NAME_PREFIX = "spool-"
NAME_SUFFIX = ".bodies"
_OFFSET_BITS = 32
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))


class _File:
    """A file of *number*: where it ends, in bytes, and how many messages are left in it."""

    __slots__ = ("descriptor", "end", "left", "number")

    def __init__(self, directory: Path, number: int) -> None:
        self.descriptor, path = tempfile.mkstemp(NAME_SUFFIX, NAME_PREFIX, directory)
        Path(path).unlink(missing_ok=True)
        self.number = number
        self.end = 0
        self.left = 0


class Spool:
    """Bodies in temporary files below *directory*, up to *bytes_max* bytes (None: any).

    `used` is in bytes: what the files occupy, messages that are gone included. `is_full` from
    when there was no room for a message until some is given back.
    """

    def __init__(self, directory: Path, bytes_max: int | None) -> None:
        self._directory = directory
        self._bytes_max = bytes_max
        self._files: dict[int, _File] = {}
        self._current: _File | None = None
        self._count = 0
        self._messages = MessageReader()
        self.used = 0
        self.is_full = False

    def put(self, references: Sequence[Reference]) -> int:
        """Write the bodies of messages; see `Store.spool`. Raises StoreError."""
        for done, reference in enumerate(references):
            if not self._put(reference):
                self.is_full = True
                return done
        return len(references)

    def load(self, references: Sequence[Reference], next_sequence: int) -> None:
        """Read bodies back; see `Store.load`. Raises StoreError."""
        for index, reference in enumerate(references):
            if reference.message is None and reference.state == VOLATILE and reference.location:
                reference.message = self._read(reference, next_sequence + index)

    def forget(self, references: Sequence[Reference]) -> None:
        """Give the room of messages back that have ended."""
        for reference in references:
            file = self._files[reference.location >> _OFFSET_BITS]
            reference.location = 0
            file.left -= 1
            if not file.left:
                self._drop(file)

    def close(self) -> None:
        """Let go of all files."""
        for file in list(self._files.values()):
            self._drop(file)

    def _put(self, reference: Reference) -> bool:
        """Write one body; False without room for it."""
        body = reference.loaded.body
        size = len(body)
        if self._bytes_max is not None and self.used + size > self._bytes_max:
            return False
        try:
            file = self._file_for(size)
            written = os.pwrite(file.descriptor, body, file.end)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise self._failure(error.strerror) from error
            return False
        if written < size:
            return False
        reference.location = file.number << _OFFSET_BITS | file.end
        reference.size = size
        file.end += size
        file.left += 1
        self.used += size
        return True

    def _file_for(self, size: int) -> _File:
        """Return the file to write *size* bytes to."""
        file = self._current
        if file is None or (file.end and file.end + size > FILE_BYTES):
            self._count += 1
            file = self._current = self._files[self._count] = _File(self._directory, self._count)
        return file

    def _read(self, reference: Reference, sequence: int) -> Message:
        file = self._files.get(reference.location >> _OFFSET_BITS)
        if file is None:
            raise GoneError(f"temporary file in {self._directory}: it is gone")
        offset, size = reference.location & _OFFSET_MASK, reference.size
        try:
            body = os.pread(file.descriptor, size, offset)
        except OSError as error:
            raise self._failure(error.strerror) from error
        if len(body) < size:
            raise self._failure(f"ends before offset {offset + size}")
        return self._messages.restore(body, 0, size, sequence)

    def _failure(self, reason: str | None) -> StoreError:
        return StoreError(f"temporary file in {self._directory}: {reason}")

    def _drop(self, file: _File) -> None:
        self.used -= file.end
        os.close(file.descriptor)
        del self._files[file.number]
        self.is_full = False
        if file is self._current:
            self._current = None
