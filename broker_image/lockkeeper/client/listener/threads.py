"""Sessions of an event loop as functions in threads use them."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from lockkeeper.client import aio
from lockkeeper.client.blocking.session import Session

T = TypeVar("T")


class RunningLoop:
    """An event loop in another thread; see `Caller`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    @property
    def is_own(self) -> bool:
        """Tell whether the event loop runs in the thread that asks."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns that is carried out in the event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def session_for_thread(session: aio.Session, loop: asyncio.AbstractEventLoop) -> Session:
    """Return the blocking face of a session."""
    return Session(RunningLoop(loop), session.runner, session)
