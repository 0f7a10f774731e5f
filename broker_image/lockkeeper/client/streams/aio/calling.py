"""Calls of a listener: a coroutine function in the event loop, another one in a thread."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeAlias

from lockkeeper.client.aio.within import ListenerCall
from lockkeeper.client.streams.core.groups import ConsumeLater
from lockkeeper.client.streams.core.messages import ReceivedMessage

_LOG = logging.getLogger(__name__)
Listener: TypeAlias = Callable[[ReceivedMessage], Awaitable[None] | None]
"""Consumes a message; it comes again when this raises, and ConsumeLater says when."""


class Caller:
    """Calls a listener on behalf of its *owner*; `running` counts those that are at work."""

    def __init__(self, owner: object, listener: Listener, concurrency: int) -> None:
        self.running = 0
        self._owner = owner
        self._listener = listener
        self._is_coroutine = asyncio.iscoroutinefunction(listener) or asyncio.iscoroutinefunction(
            getattr(listener, "__call__", None)  # noqa: B004
        )
        self._threads = (
            None
            if self._is_coroutine
            else ThreadPoolExecutor(concurrency, thread_name_prefix="lockkeeper-listener")
        )

    async def consume(self, message: ReceivedMessage) -> ConsumeLater | None:
        """Have a message consumed; returns None, or when it is to come again.

        A call that is cancelled has not consumed it, though a thread may be at it still.
        """
        try:
            if self._threads is None:
                await self._await_listener(message)
            else:
                call = asyncio.get_running_loop().run_in_executor(
                    self._threads, copy_context().run, self._call_listener, message
                )
                self.running += 1
                call.add_done_callback(self._note_end)
                await call
        except ConsumeLater as later:
            return later
        except Exception:
            _LOG.exception("a listener has not consumed %r", message)
            return ConsumeLater()
        return None

    async def _await_listener(self, message: ReceivedMessage) -> None:
        self.running += 1
        try:
            with ListenerCall(self._owner):
                answer = self._listener(message)
                assert answer is not None
                await answer
        finally:
            self.running -= 1

    def _call_listener(self, message: ReceivedMessage) -> None:
        with ListenerCall(self._owner):
            self._listener(message)

    def _note_end(self, _: object) -> None:
        self.running -= 1

    def close(self) -> None:
        """Begin no further call; threads end when theirs are done."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)
