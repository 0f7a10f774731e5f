"""One descriptor to wait on: readable when a sync is done or a short delay has passed.

Python has no timerfd before 3.13, so the C library's is called directly.
"""

import ctypes
import os
import select
import time
from typing import Final

_CLOCK_MONOTONIC: Final = 1


class Alarm:
    """A timer of the kernel (timerfd), set and cleared by hand. Raises OSError without one."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._timer: int = self._library.timerfd_create(
            _CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC
        )
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self.is_set = False
        # The timer turns readable no earlier: before that, nobody need ask the kernel.
        self._due = 0

    def set(self, delay: int) -> None:
        """Turn readable once, *delay* µs from now; an earlier delay is forgotten."""
        self._due = time.monotonic_ns() + delay * 1000
        self._set_timer(delay)
        self.is_set = True

    def cancel(self) -> None:
        """Forget the delay: the wake-up would cost more than this does."""
        if self.is_set:
            self._set_timer(0)
            self.is_set = False

    def _set_timer(self, delay: int) -> None:
        """Have the kernel's timer expire once, *delay* µs from now; never if it is 0."""
        seconds, microseconds = divmod(delay, 1_000_000)
        specification = (ctypes.c_long * 4)(0, 0, seconds, microseconds * 1000)
        if self._library.timerfd_settime(self._timer, 0, specification, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def has_rung(self) -> bool:
        """Tell whether the delay has passed; it can then be set again."""
        if not self.is_set or time.monotonic_ns() < self._due:
            return False
        try:
            os.read(self._timer, 8)
        except BlockingIOError:
            return False
        self.is_set = False
        return True

    def fileno(self) -> int:
        """Return the timer's descriptor."""
        return self._timer

    def close(self) -> None:
        """Let go of the timer."""
        if self._timer >= 0:
            os.close(self._timer)
            self._timer = -1


class EitherReadable:
    """A descriptor that is readable while one of two others is."""

    def __init__(self, first: int, second: int) -> None:
        self._poll = select.epoll()
        self._poll.register(first, select.EPOLLIN)
        self._poll.register(second, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._poll.fileno()

    def close(self) -> None:
        """Let go of the descriptor."""
        self._poll.close()
