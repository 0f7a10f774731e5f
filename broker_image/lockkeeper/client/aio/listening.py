"""Listeners: functions that are called with each message, one after the other in a session.

A function runs in a thread of its session, as long as there are messages; a coroutine function in
the event loop. Neither keeps the connection from giving its signs of life.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from lockkeeper.client.aio.driving import drive
from lockkeeper.client.aio.within import ListenerCall, is_within
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.consumer import ConsumerCore
from lockkeeper.client.core.delivery import Delivery
from lockkeeper.client.errors import MessagingError
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner
from lockkeeper.client.messages import ReceivedMessage, Settlement

_LOG = logging.getLogger(__name__)
_REDELIVERED = (Acknowledge.AUTO, Acknowledge.DUPS_OK, Acknowledge.INDIVIDUAL)
Listener: TypeAlias = Callable[[ReceivedMessage], Any] | Callable[[ReceivedMessage], Awaitable[Any]]


def is_for_others(error: BaseException) -> bool:
    """Tell whether what a coroutine has raised is not about its message.

    That is so when its own task is cancelled, and for what ends the program. Something that the
    coroutine awaited may have been cancelled by anybody: then it has just failed.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    is_ending = isinstance(error, KeyboardInterrupt | SystemExit)
    return is_ending and threading.current_thread() is threading.main_thread()


class Line:
    """Shared by the listeners of one session: one message at a time, and one thread."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._executor: ThreadPoolExecutor | None = None

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The thread of the session, made at its first use."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "lockkeeper-listener")
        return self._executor

    def end(self) -> None:
        """Let the thread end after what it does just now."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)


class Listening:
    """A listener at work; `stop` ends it after the message in hand, and then *ended* is called."""

    def __init__(
        self,
        runner: Runner,
        core: ConsumerCore,
        settlement: Settlement,
        listener: Listener,
        line: Line,
        ended: Callable[[], None],
    ) -> None:
        self._runner = runner
        self._core = core
        self._settlement = settlement
        self._listener = listener
        self._line = line
        self._is_stopping = False
        self._task = asyncio.get_running_loop().create_task(self._run(), name="lockkeeper-listener")
        self._task.add_done_callback(lambda _: ended())

    async def _run(self) -> None:
        is_coroutine = inspect.iscoroutinefunction(self._listener) or inspect.iscoroutinefunction(
            getattr(self._listener, "__call__", None)  # noqa: B004
        )
        loop = asyncio.get_running_loop()
        try:
            while not self._is_stopping:
                await drive(self._runner, self._core.arrival(moment()))
                if self._core.is_closed:
                    break
                async with self._line.turn:
                    if is_coroutine:
                        await self._handle_all()
                    else:
                        await asyncio.shield(
                            loop.run_in_executor(self._line.executor, self._call_all)
                        )
        except MessagingError as error:
            _LOG.warning("a listener ends: %s", error)

    def _take_delivery(self) -> Delivery | None:
        with self._runner.lock:
            delivery = (
                None if self._is_stopping else self._core.take_delivery(moment(), is_held=True)
            )
            self._runner.flush(False)
        return delivery if delivery is not None and delivery.has_message else None

    async def _handle_all(self) -> None:
        while (delivery := self._take_delivery()) is not None:
            try:
                with ListenerCall(self._runner):
                    await self._listener(ReceivedMessage(delivery, self._settlement))
            except BaseException as error:
                if is_for_others(error):
                    raise
                self._fail(delivery, error)
            else:
                self._finish(delivery)

    def _call_all(self) -> None:
        with ListenerCall(self._runner):
            self._call_each()

    def _call_each(self) -> None:
        while (delivery := self._take_delivery()) is not None:
            try:
                self._listener(ReceivedMessage(delivery, self._settlement))
            # Nobody would learn what ends a thread, and the next message waits for it.
            except BaseException as error:
                self._fail(delivery, error)
            else:
                self._finish(delivery)

    def _finish(self, delivery: Delivery) -> None:
        with self._runner.lock:
            self._core.finish(delivery, moment())
            self._runner.flush(False)

    def _fail(self, delivery: Delivery, error: BaseException) -> None:
        """Let the message come again, as far as the policy allows, where no one else can."""
        _LOG.warning("a listener failed with %s", delivery.message_id, exc_info=error)
        with self._runner.lock:
            if self._core.mode in _REDELIVERED:
                self._core.redeliver(error, moment())
            self._runner.flush(False)

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return self._task.done()

    def end(self) -> None:
        """Have it take no further message; for any thread."""
        self._is_stopping = True
        with self._runner.lock:
            self._core.line.wake()

    async def stop(self) -> None:
        """End it after the message in hand, which listeners of the connection do not wait for."""
        self.end()
        if not is_within(self._runner):
            await asyncio.shield(asyncio.gather(self._task, return_exceptions=True))
