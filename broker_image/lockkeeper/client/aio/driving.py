"""Driving procedures in an event loop."""

import asyncio
import threading
import time
from typing import TypeVar

from lockkeeper.client.core.waiting import Moment, Procedure, earliest
from lockkeeper.client.errors import RequestTimedOutError
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner

T = TypeVar("T")


class _Waiter:
    """A task that waits; see `Waiter`."""

    __slots__ = ("_loop", "_thread", "future")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.future: asyncio.Future[None] = self._loop.create_future()

    def wake(self) -> None:
        """Let it look again."""
        if threading.get_ident() == self._thread:
            self.settle()
        else:
            self._loop.call_soon_threadsafe(self.settle)

    def settle(self) -> None:
        """Let it look again; to be called in its event loop."""
        if not self.future.done():
            self.future.set_result(None)


async def drive(runner: Runner, procedure: Procedure[T], timeout: float | None = None) -> T:
    """Carry a procedure out, and return what it returns.

    After *timeout* seconds it is given up: RequestTimedOutError. Cancelling closes it; whatever
    it has taken or sent by then is whole.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    at: Moment | None = None
    try:
        while True:
            waiter = _Waiter()
            with runner.lock:
                try:
                    wait = next(procedure) if at is None else procedure.send(at)
                except StopIteration as stop:
                    result: T = stop.value
                    return result
                finally:
                    runner.flush(False)
                if deadline is not None and time.monotonic() >= deadline:
                    text = f"not done within {timeout:g} s"
                    raise RequestTimedOutError(runner.core.with_reason(text))
                wait.line.waiters.append(waiter)
            try:
                await _woken(waiter, earliest(wait.until, deadline))
            finally:
                with runner.lock:
                    wait.line.waiters.remove(waiter)
            at = moment()
    finally:
        with runner.lock:
            procedure.close()
            runner.flush(False)


async def _woken(waiter: _Waiter, until: float | None) -> None:
    """Wait until a waiter is woken, or the time has come."""
    if until is None:
        await waiter.future
        return
    seconds = max(0.0, until - time.monotonic())
    timer = asyncio.get_running_loop().call_later(seconds, waiter.settle)
    try:
        await waiter.future
    finally:
        timer.cancel()
