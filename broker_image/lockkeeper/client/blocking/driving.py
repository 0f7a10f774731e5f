"""Driving procedures in the thread that calls."""

import threading
import time
from typing import TypeVar

from lockkeeper.client.core.waiting import Moment, Procedure, earliest
from lockkeeper.client.errors import RequestTimedOutError
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner

T = TypeVar("T")


class _Waiter:
    """A thread that waits; see `Waiter`. Whoever wakes it holds the connection's lock."""

    __slots__ = ("_is_woken", "_lock")

    def __init__(self) -> None:
        self._is_woken = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> None:
        """Let it look again."""
        if not self._is_woken:
            self._is_woken = True
            self._lock.release()

    def wait(self, until: float | None) -> None:
        """Wait until it is woken, or the time has come."""
        if until is None:
            self._lock.acquire()
            return
        seconds = min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)
        self._lock.acquire(timeout=seconds)


def drive(runner: Runner, procedure: Procedure[T], timeout: float | None = None) -> T:
    """Carry a procedure out, and return what it returns.

    After *timeout* seconds it is given up: RequestTimedOutError.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    at: Moment | None = None
    runner.lock.acquire()
    try:
        while True:
            try:
                wait = next(procedure) if at is None else procedure.send(at)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if deadline is not None and time.monotonic() >= deadline:
                text = f"not done within {timeout:g} s"
                raise RequestTimedOutError(runner.core.with_reason(text))
            waiter = _Waiter()
            wait.line.waiters.append(waiter)
            runner.flush(True)
            runner.lock.release()
            try:
                waiter.wait(earliest(wait.until, deadline))
            finally:
                runner.lock.acquire()
                wait.line.waiters.remove(waiter)
            at = moment()
    finally:
        procedure.close()
        runner.flush(False)
        runner.lock.release()
