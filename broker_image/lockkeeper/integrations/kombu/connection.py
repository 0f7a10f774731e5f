"""Connections: one of our client, its event loop in a thread, and what has arrived for channels.

The thread gives signs of life however long a task takes, and finds the next broker by itself where
the URL is one of failover. What arrives waits here, for `drain_events` of whoever calls it: kombu's
event loop watches a pipe that says so.
"""

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from lockkeeper.client import aio
from lockkeeper.client.blocking.loop import LoopThread
from lockkeeper.client.blocking.session import Session
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.errors import ConnectionFailedError, MessagingError
from lockkeeper.integrations.kombu.address import Target
from lockkeeper.integrations.kombu.bindings import Bindings

T = TypeVar("T")
DELETE_SECONDS_MAX = 5.0
LOOK_SECONDS = 1.0
"""Somebody who waits looks so often whether the connection is lost for good."""


class Arrival(Protocol):
    """Something that a channel hands to the application."""

    def deliver(self) -> bool:
        """Hand it over, in the thread that drains; False when nobody wants it any more."""


class Connection:
    """A connection as kombu sees it. Raises what `lockkeeper.client.connect` raises."""

    def __init__(self, client: Any, target: Target, timeout: float | None) -> None:
        self.client = client
        self.channels: list[Any] = []
        self.transient_queues: dict[str, Any] = {}
        self.exchange_types: dict[str, str] = {}
        self.auto_delete: set[str] = set()
        self.interruptions = 0
        self._process = os.getpid()
        self._is_closed = False
        self._error: MessagingError | None = None
        self._arrivals: deque[Arrival] = deque()
        self._condition = threading.Condition()
        self._bindings: Bindings | None = None
        self._thread = LoopThread()
        try:
            self._loop, self._aio = self._thread.call(_connected(target, timeout))
        except BaseException:
            self._thread.stop()
            raise
        self._aio.on_interrupted = self._note_interruption
        self._aio.on_resumed = self._note_resumption
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._is_told = False
        _OPEN.add(self)

    # What there is

    @property
    def connected(self) -> bool:
        """Tell whether it is of use."""
        return (
            not self._is_closed
            and self._error is None
            and self._process == os.getpid()
            and not self._aio.state.is_over
        )

    @property
    def bindings(self) -> Bindings:
        """The bindings of exchanges."""
        if self._bindings is None:
            self._bindings = Bindings(self.session())
        return self._bindings

    def fileno(self) -> int:
        """Return the descriptor that is readable when something has arrived."""
        return self._reader

    def check_open(self) -> None:
        """Raise ConnectionFailedError when it is of no use any more."""
        is_ours = not self._is_closed and self._process == os.getpid()
        error = self._error or (self._aio.runner.core.error if is_ours else None)
        if error is not None:
            raise error
        if not is_ours:
            raise ConnectionFailedError("the connection is closed, or another process made it")

    def session(self, acknowledge: Acknowledge = Acknowledge.AUTO) -> Session:
        """Return a session for one thread at a time."""
        self.check_open()
        made = self._aio.session(acknowledge=acknowledge)
        return Session(self._thread, self._aio.runner, made)

    def aio_session(self, acknowledge: Acknowledge = Acknowledge.AUTO) -> aio.Session:
        """Return a session for the event loop."""
        self.check_open()
        return self._aio.session(acknowledge=acknowledge)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns that is carried out in the event loop."""
        try:
            self.check_open()
        except BaseException:
            coroutine.close()
            raise
        return self._thread.call(coroutine)

    def delete_queue(self, name: str) -> None:
        """Delete a queue with its messages. Raises RefusedError while it is consumed.

        Without a broker RequestTimedOutError: a worker that ends must not wait for the next one.
        """
        self.call(self._aio.delete_destination(name, timeout=DELETE_SECONDS_MAX))

    def wake(self, event: asyncio.Event) -> None:
        """Set an event of the event loop, in any thread."""
        if not self._is_closed:
            self._loop.call_soon_threadsafe(event.set)

    # What arrives

    def put(self, arrival: Arrival) -> None:
        """Have something handed over by whoever drains."""
        with self._condition:
            self._arrivals.append(arrival)
            self._tell()

    def withdraw(self, feed: object) -> list[Any]:
        """Take back what waits to be handed over and came by a feed."""
        with self._condition:
            found = [each for each in self._arrivals if getattr(each, "feed", None) is feed]
            for each in found:
                self._arrivals.remove(each)
            return found

    def fail(self, error: MessagingError) -> None:
        """Note that it is lost for good."""
        with self._condition:
            self._error = self._error or error
            self._tell()

    def _tell(self) -> None:
        self._condition.notify()
        if not self._is_told and not self._is_closed:
            self._is_told = True
            os.write(self._writer, b"\0")

    def drain_events(self, timeout: float | None = None) -> None:
        """Hand one message over. Raises TimeoutError when none comes in *timeout* seconds.

        Raises ConnectionFailedError when the connection is lost for good.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            arrival = self._take_arrival(deadline)
            if arrival is None:
                raise TimeoutError("no message in time")
            if arrival.deliver():
                return

    def _take_arrival(self, deadline: float | None) -> Arrival | None:
        with self._condition:
            while not self._arrivals:
                self.check_open()
                left = LOOK_SECONDS if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    self._hush()
                    return None
                self._condition.wait(min(left, LOOK_SECONDS))
            arrival = self._arrivals.popleft()
            if not self._arrivals:
                self._hush()
            return arrival

    def _hush(self) -> None:
        if self._is_told:
            self._is_told = False
            os.read(self._reader, 1)

    # What the client says, in its thread

    def _note_interruption(self) -> None:
        self.interruptions += 1

    def _note_resumption(self) -> None:
        if self._bindings is not None:
            self._bindings.forget_all()

    # The end

    def close(self) -> None:
        """Close the channels, then the connection; what was not acknowledged goes back."""
        if self._is_closed:
            return
        for channel in [*self.channels]:
            channel.close()
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        _OPEN.discard(self)
        if self._process == os.getpid():
            self._thread.call(self._aio.close())
            self._thread.stop()
        os.close(self._reader)
        os.close(self._writer)

    def forsake(self) -> None:
        """In a process that was forked: give up the descriptors, say nothing, touch no lock.

        The broker would not learn of the other process's end while this one holds the socket.
        """
        self._is_closed = True
        self.channels.clear()
        os.close(self._reader)
        os.close(self._writer)
        link = self._aio.runner.link
        if link is not None:
            link.forsake()


async def _connected(
    target: Target, timeout: float | None
) -> tuple[asyncio.AbstractEventLoop, aio.Connection]:
    connection = await aio.connect(
        target.url, None, target.user, target.password, None, target.tls, timeout=timeout
    )
    return asyncio.get_running_loop(), connection


_OPEN: "weakref.WeakSet[Connection]" = weakref.WeakSet()


def _forsake_all() -> None:
    for connection in [*_OPEN]:
        connection.forsake()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forsake_all)
