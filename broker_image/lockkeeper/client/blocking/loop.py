"""The thread of a connection, in which its event loop runs."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from lockkeeper.client.errors import IllegalStateError

JOIN_SECONDS = 5.0
T = TypeVar("T")
make_loop = asyncio.new_event_loop


class Caller(Protocol):
    """An event loop that other threads have do something; see `LoopThread`."""

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns that is carried out in the event loop."""


class LoopThread:
    """An event loop in a thread that does not keep the process from ending."""

    def __init__(self) -> None:
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lockkeeper-client", daemon=True)
        self._thread.start()
        self._is_ready.wait()

    def _run(self) -> None:
        self._loop = make_loop()
        try:
            self._loop.run_until_complete(self._last())
        finally:
            self._loop.close()

    async def _last(self) -> None:
        """Last until `stop` is called."""
        self._stopping = asyncio.Event()
        self._is_ready.set()
        await self._stopping.wait()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns that is carried out here; cancel it when interrupted.

        Raises IllegalStateError in this thread itself, which would wait for ever.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise IllegalStateError(
                "this call would wait for the thread that makes it: a coroutine that is a "
                "listener uses `lockkeeper.client.aio`"
            )
        done = threading.Event()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(self._loop.create_task(coroutine))
            tasks[0].add_done_callback(lambda _: done.set())

        self._loop.call_soon_threadsafe(begin)
        try:
            done.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise
        return tasks[0].result()

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(JOIN_SECONDS)
