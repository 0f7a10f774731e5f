"""The face for asyncio as if it were blocking, so that one test tries both.

Every call is made in an event loop of its own thread, and awaited there.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

from lockkeeper.client import aio

OF_THE_CLIENT = (
    aio.Connection,
    aio.Session,
    aio.Producer,
    aio.Consumer,
    aio.DestinationSource,
    aio.Requestor,
)


class EventLoopThread:
    """A thread with an event loop, for as long as the block runs."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def run(self, call: Callable[[], Any]) -> Any:
        """Call something in the event loop, await what it returns, and wrap that."""

        async def called() -> Any:
            result = call()
            return await result if inspect.isawaitable(result) else result

        return self._wrap(asyncio.run_coroutine_threadsafe(called(), self.loop).result())

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, and waits for it."""
        return lambda *arguments, **options: self.run(lambda: function(*arguments, **options))

    def _wrap(self, result: Any) -> Any:
        if isinstance(result, OF_THE_CLIENT):
            return Awaiting(self, result)
        if isinstance(result, asyncio.Future):
            return asyncio.run_coroutine_threadsafe(_awaited(result), self.loop)
        return self._iterate(result) if inspect.isasyncgen(result) else result

    def _iterate(self, generator: Any) -> Iterator[Any]:
        try:
            while True:
                yield self.run(generator.__anext__)
        except StopAsyncIteration:
            return
        finally:
            self.run(generator.aclose)

    def __enter__(self) -> "EventLoopThread":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


async def _awaited(future: "asyncio.Future[Any]") -> Any:
    return await future


class Awaiting:
    """An object of the client whose methods await by themselves."""

    def __init__(self, thread: EventLoopThread, real: Any) -> None:
        self.__dict__.update(_thread=thread, _real=real)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._thread.wrapped(found) if inspect.ismethod(found) else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def __iter__(self) -> Iterator[Any]:
        iterator: Iterator[Any] = self._thread.run(self._real.__aiter__)
        return iterator

    def __enter__(self) -> Any:
        return self._thread.run(self._real.__aenter__)

    def __exit__(self, *error: Any) -> None:
        self._thread.run(lambda: self._real.__aexit__(*error))
