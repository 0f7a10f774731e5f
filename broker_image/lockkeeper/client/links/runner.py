"""The life of a connection in an event loop: one link after another, and what is due between."""

import asyncio
import concurrent.futures
import logging
import random
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lockkeeper.client.core.connection import ConnectionCore
from lockkeeper.client.core.events import Event
from lockkeeper.client.core.outbox import BUFFER_BYTES
from lockkeeper.client.core.reconnecting import Reconnector
from lockkeeper.client.errors import ConnectionFailedError, MessagingError
from lockkeeper.client.links.dialling import dial
from lockkeeper.client.links.link import LINK_ERRORS, Link
from lockkeeper.client.url import Address, BrokerUrl, parse_others
from lockkeeper.message.openwire import ConnectionId, ConnectionInfo

BURST_SECONDS = 0.0003
"""What a thread says within that time after something else is one of many."""
PATIENCE_SECONDS = 1.0
"""How long a better broker waits for a moment in which no answer is awaited."""
T = TypeVar("T")
_LOG = logging.getLogger(__name__)


class Runner:
    """Keeps a connection's state connected, until it is stopped or all attempts are used up.

    Everything that reads or changes the state holds `lock`. `tell` gets its events, in the event
    loop, without the lock.
    """

    def __init__(self, core: ConnectionCore, url: BrokerUrl, tell: Callable[[Event], None]) -> None:
        self.core = core
        self.lock = threading.Lock()
        self.link: Link | None = None
        self._url = url
        self._tell = tell
        self._reconnector = Reconnector(url, random.shuffle, random.random)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._others: tuple[str, ...] = ()
        self._better: Address | None = None
        self._is_patient = True
        self._last_said = 0.0

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Have the event loop carry a coroutine out; for any thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def start(self) -> None:
        """Begin to look for a broker."""
        self._task = self._loop.create_task(self._run(), name="lockkeeper-connection")

    # The lock is held

    def flush(self, is_now: bool) -> bool:
        """Have written what waits: at once, or soon together with what comes meanwhile.

        Tells whether it was at once, as it always is when much waits.
        """
        link, outbox = self.link, self.core.outbox
        is_written = False
        if self._better is not None and link is not None and self.core.depart(self._is_patient):
            link.leave(ConnectionResetError(f"{self._better} is there again, and has priority"))
            self._better = None
            self.core.link_lost(None)
        if link is not None and outbox.is_urgent:
            if is_now or outbox.size >= BUFFER_BYTES or self._is_alone():
                link.flush()
                is_written = True
            else:
                link.schedule()
        if self._timer is None and self.core.due() is not None:
            self._call(self._plan)
        return is_written

    def _is_alone(self) -> bool:
        """Tell whether a thread says something by itself, so that nothing is gained by waiting.

        Waking the event loop costs more than writing.
        """
        if threading.get_ident() == self._thread:
            return False
        before, self._last_said = self._last_said, time.monotonic()
        return self._last_said - before > BURST_SECONDS

    def _call(self, callback: Callable[[], None]) -> None:
        if threading.get_ident() == self._thread:
            self._loop.call_soon(callback)
        else:
            self._loop.call_soon_threadsafe(callback)

    # In the event loop

    def _plan(self) -> None:
        """Wake up when something is due."""
        with self.lock:
            due = self.core.due()
        if due is not None and self._timer is None:
            self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        with self.lock:
            self.core.tick(time.monotonic())
            self.flush(True)
        self._plan()

    def _after_reading(self) -> None:
        core = self.core
        while core.events:
            event = core.events.popleft()
            try:
                self._tell(event)
            except Exception:
                _LOG.exception("telling %s", event)
        if core.other_addresses != self._others:
            self._others = core.other_addresses
            if self._url.failover is not None and self._url.failover.update_uris_supported:
                self._reconnector.learn(parse_others(self._others, self._url))

    async def _run(self) -> None:
        error: MessagingError | None = None
        try:
            is_first = True
            while self.core.error is None:
                link = await self._connect(is_first)
                is_first = False
                await self._serve(link)
        except MessagingError as failure:
            error = failure
        except Exception as failure:
            error = ConnectionFailedError(f"the connection ended unexpectedly: {failure!r}")
            error.__cause__ = failure
        with self.lock:
            self.core.end(error)
        self._after_reading()

    async def _serve(self, link: Link) -> None:
        """Use one link until it is lost. Raises what ends the connection with it."""
        reason: Exception | None = None
        better = self._reconnector.better_than(link.address)
        looking = self._loop.create_task(self._look_for_better(better)) if better else None
        try:
            reason = await asyncio.shield(link.lost)
        finally:
            if looking is not None:
                looking.cancel()
            with self.lock:
                self.link = self._better = None
                if reason is not None:
                    self.core.link_lost(reason)
            link.lose(ConnectionResetError("the connection is closed"))
        assert reason is not None
        if isinstance(reason, MessagingError):
            raise reason
        self._reconnector.lose(link.address, time.monotonic() - link.opened, reason)
        self._after_reading()

    async def _connect(self, is_first: bool) -> Link:
        """Return a link to the first broker that answers. Raises ConnectionFailedError."""
        reconnector = self._reconnector
        for rounds, delay in enumerate(reconnector.delays(is_first), start=1):
            if delay:
                await asyncio.sleep(delay / 1000)
            for address in reconnector.order():
                try:
                    return await self._reach(address)
                except LINK_ERRORS as error:
                    reconnector.miss(address, error)
            failure = reconnector.failure(is_first)
            with self.lock:
                self.core.why_unlinked = str(failure)
            if reconnector.warns(rounds):
                _LOG.warning("%s; %d attempts were made, and more follow", failure, rounds)
        raise reconnector.failure(is_first)

    async def _look_for_better(self, better: tuple[Address, ...]) -> None:
        """Have a link left for a broker with priority as soon as one answers."""
        for delay in self._reconnector.pauses():
            await asyncio.sleep(delay / 1000)
            for address in better:
                if await self._answers(address):
                    await self._leave_for(address)
                    return

    async def _leave_for(self, better: Address) -> None:
        """Have the link left when nothing is under way, or soon when there always is something."""
        for is_patient in (True, False):
            with self.lock:
                self._better, self._is_patient = better, is_patient
                self.flush(True)
            await asyncio.sleep(PATIENCE_SECONDS)

    async def _answers(self, address: Address) -> bool:
        """Tell whether a broker is there that agrees how to talk."""
        nobody = ConnectionInfo(connection_id=ConnectionId(""))
        core = ConnectionCore(nobody, None, self.core.options, random.random)
        try:
            link = await Runner(core, self._url, lambda _: None)._reach(address)
        except (*LINK_ERRORS, MessagingError):
            return False
        link.lose(ConnectionResetError("it was only asked whether it is there"))
        return True

    async def _reach(self, address: Address) -> Link:
        """Return a link on which both sides have agreed how to talk. Raises LINK_ERRORS."""
        patience = address.options.connection_timeout / 1000 or None
        link: Link | None = None
        try:
            async with asyncio.timeout(patience):
                link = Link(address, await dial(address), self.core, self.lock, self._after_reading)
                with self.lock:
                    self.link = link
                link.begin()
                await asyncio.shield(link.agreed)
        except BaseException as error:
            with self.lock:
                self.link = None
                self.core.link_lost(error)
            if link is not None:
                link.lose(ConnectionResetError("the connection is given up"))
            if isinstance(error, TimeoutError) and error.errno is None:
                silent = f"it did not answer within {patience:g} s"
                accepted = f"{address} accepts connections but does not answer"
                raise TimeoutError(silent if link is None else accepted) from error
            raise
        return link

    async def stop(self) -> None:
        """End it at once."""
        with self.lock:
            if self.link is not None:
                self.link.flush()
            self.core.end(None)
        if self._timer is not None:
            self._timer.cancel()
        task = self._task
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
