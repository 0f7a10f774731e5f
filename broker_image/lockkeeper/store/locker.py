"""Guards of a directory: proof that this process, and no other, may write; and until when.

A file lock says so until it is lost. A locker that must be renewed from outside also has a
deadline, past which another process may have been let in.
"""

import time
from typing import Final, Protocol

from lockkeeper.store.base import StoreError

LAPSED: Final = -1


class StoreLockedError(StoreError):
    """Another process is master of the directory."""


class LockLostError(StoreError):
    """The directory is no longer ours: this process must stop writing at once."""


class Locker(Protocol):
    """Something that at most one process holds at a time."""

    def try_acquire(self, now: int) -> bool:
        """Take it if nobody has it; *now* is in ms since the epoch. Raises StoreError."""

    def check_lock(self) -> None:
        """Raise LockLostError unless it is held still; may ask a disk, so about once a second."""

    def release(self) -> None:
        """Let another process have it."""


def boot_time() -> int:
    """Return ns since the machine was started; unlike other clocks it goes on while it sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def boot_milliseconds() -> int:
    """Return `boot_time` in ms."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Deadline:
    """Deadline for this process to write and answer; after it, the process never may again.

    To be looked at before every write and before answers leave: it is one comparison.
    """

    __slots__ = ("_reason", "_until")

    def __init__(self) -> None:
        self._until: int = LAPSED
        self._reason = "nothing was held yet"

    @property
    def remaining(self) -> int:
        """The ns that are left, 0 when none are."""
        return max(0, self._until - boot_time())

    def begin(self, until: int, reason: str) -> None:
        """Allow everything up to *until* (ns of `boot_time`); *reason* says why not for longer."""
        self._until, self._reason = until, reason

    def extend(self, until: int) -> None:
        """Move it on. Raises LockLostError when it has passed already."""
        self.check()
        self._until = max(self._until, until)

    def lapse(self, reason: str) -> None:
        """Allow nothing any more."""
        self._until, self._reason = LAPSED, reason

    def check(self) -> None:
        """Raise LockLostError when it has passed."""
        if boot_time() >= self._until:
            self._until = LAPSED
            raise LockLostError(self._reason)


class BothGuards:
    """Two lockers as one: the second is taken only by who has the first."""

    def __init__(self, first: Locker, second: Locker) -> None:
        self._first = first
        self._second = second

    def try_acquire(self, now: int) -> bool:
        """See `Locker.try_acquire`. Who waits for the second keeps the first."""
        return self._first.try_acquire(now) and self._second.try_acquire(now)

    def check_lock(self) -> None:
        """See `Locker.check_lock`."""
        self._second.check_lock()
        self._first.check_lock()

    def release(self) -> None:
        """See `Locker.release`."""
        self._second.release()
        self._first.release()
