"""The lock that says which broker is master of a directory (kahadb.md section 8).

POSIX record locks belong to the process: closing *any* descriptor of the file drops the lock, so
it is opened once and kept. A standby only tries to lock; it never writes to or touches the file.
"""

import fcntl
import os
from pathlib import Path

from lockkeeper.store.base import StoreError
from lockkeeper.store.locker import LockLostError

LOCK_NAME = "lock"
_TIMESTAMP_BYTES = 8

# A process never conflicts with its own locks, so it must remember them (device and inode).
_HELD: set[tuple[int, int]] = set()


class DirectoryLock:
    """The exclusive lock of one KahaDB directory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOCK_NAME
        self._descriptor = -1
        self._identity: tuple[int, int, int] | None = None

    @property
    def is_held(self) -> bool:
        """Tell whether this object has acquired the lock and not released it."""
        return self._identity is not None

    def try_acquire(self, now: int) -> bool:
        """Take the lock if it is free; *now* is in ms since the epoch.

        Makes the directory if there is none. Raises StoreError when the file cannot be opened,
        or cannot be locked for another reason than that another process has it.
        """
        if self.is_held:
            return True
        if _inode(self.path) in _HELD:
            return False
        try:
            if self._descriptor < 0:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self.path, flags, 0o644)
            if not self._lock():
                return False
            os.pwrite(self._descriptor, now.to_bytes(_TIMESTAMP_BYTES, "big"), 0)
            os.fsync(self._descriptor)
            self._identity = _identity(os.fstat(self._descriptor))
            _HELD.add(self._identity[:2])
        except OSError as error:
            raise StoreError(f"cannot lock {self.path}: {error.strerror}") from error
        return True

    def check_lock(self) -> None:
        """Raise LockLostError unless the file is still the one that was locked, untouched.

        A changed time means that another process believed to be master and wrote into it.
        """
        if self._identity is None:
            raise LockLostError(f"{self.path} is not locked")
        try:
            found = _identity(self.path.stat())
        except OSError as error:
            raise LockLostError(f"{self.path} is gone: {error.strerror}") from error
        if found[:2] != self._identity[:2]:
            raise LockLostError(f"{self.path} was replaced by another file")
        if found != self._identity:
            raise LockLostError(f"{self.path} was written to by another process")

    def release(self) -> None:
        """Let another broker have the directory; the file stays, as it is."""
        if self._identity is not None:
            _HELD.discard(self._identity[:2])
            self._identity = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _lock(self) -> bool:
        """Lock the file; False when another process has it, or has replaced it meanwhile."""
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        if _is_same_file(self._descriptor, self.path):
            return True
        os.close(self._descriptor)
        self._descriptor = -1
        return False


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
