"""The thread of a connection, in which its event loop runs."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Generic, Protocol, TypeVar

from lockkeeper.client.aio.within import begin_outside
from lockkeeper.client.errors import IllegalStateError

JOIN_SECONDS = 5.0
_ENDED = "the connection is closed"
_OWN = (
    "this call would wait for the thread that makes it: a coroutine that is a "
    "listener uses `lockkeeper.client.aio`"
)
T = TypeVar("T")
make_loop = asyncio.new_event_loop


class Caller(Protocol):
    """An event loop that other threads have do something; see `LoopThread`."""

    @property
    def is_own(self) -> bool:
        """Tell whether the event loop runs in the thread that asks."""

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns that is carried out in the event loop."""


class _Call(Generic[T]):
    """A coroutine that another thread waits for."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self.ended = threading.Event()
        self.task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        """Begin, in the event loop."""
        self.task = asyncio.get_running_loop().create_task(self._coroutine)
        self.task.add_done_callback(lambda _: self.ended.set())

    def cancel(self) -> None:
        """Cancel it, in the event loop."""
        if self.task is not None:
            self.task.cancel()

    def result(self) -> T:
        """Return what it has returned. Raises IllegalStateError when the event loop has ended."""
        assert self.task is not None
        if self.task.cancelled():
            raise IllegalStateError(_ENDED)
        return self.task.result()


class LoopThread:
    """An event loop in a thread that does not keep the process from ending."""

    def __init__(self) -> None:
        self._is_ready = threading.Event()
        # What is called before the end is carried out or cancelled, nothing is forgotten.
        self._lock = threading.Lock()
        self._is_ending = False
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
        """Last until `stop` is called; whoever waits for something then learns of the end."""
        self._stopping = asyncio.Event()
        self._is_ready.set()
        await self._stopping.wait()
        with self._lock:
            self._is_ending = True
        # Calls that came before that begin now.
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=JOIN_SECONDS)

    @property
    def is_own(self) -> bool:
        """Tell whether the event loop runs in the thread that asks."""
        return threading.current_thread() is self._thread

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns that is carried out here; cancel it when interrupted.

        Raises IllegalStateError in this thread itself, which would wait for ever, and when the
        event loop has ended, or ends meanwhile.
        """
        call = _Call(coroutine)
        with self._lock:
            if self.is_own or self._is_ending:
                coroutine.close()
                raise IllegalStateError(_OWN if self.is_own else _ENDED)
            self._loop.call_soon_threadsafe(call.begin)
        try:
            call.ended.wait()
        except BaseException:
            with self._lock:
                if not self._is_ending:
                    self._loop.call_soon_threadsafe(call.cancel)
            raise
        return call.result()

    def begin(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Have a coroutine carried out here, within no listener, and do not wait for it."""
        with self._lock:
            if self._is_ending:
                coroutine.close()
            else:
                self._loop.call_soon_threadsafe(begin_outside, coroutine)

    def stop(self) -> None:
        """End the thread."""
        with self._lock:
            if not self._is_ending:
                self._loop.call_soon_threadsafe(self._stopping.set)
        if not self.is_own:
            self._thread.join(JOIN_SECONDS)
