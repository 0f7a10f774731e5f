"""The listener container: it has as many consumers as there is work for, and a function to call."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

from lockkeeper.client import aio
from lockkeeper.client.aio.closing import Closing
from lockkeeper.client.aio.within import ListenerCall, begin_outside, is_within
from lockkeeper.client.errors import (
    BrokerUrlError,
    IllegalStateError,
    RefusedError,
    RequestTimedOutError,
)
from lockkeeper.client.links.clock import moment
from lockkeeper.client.listener.counters import Collector, Counters, exposition
from lockkeeper.client.listener.invocation import (
    Function,
    Invocation,
    in_thread,
    is_coroutine_function,
    uncancelled,
)
from lockkeeper.client.listener.reaching import Connections, Recovery
from lockkeeper.client.listener.settings import CacheLevel, ListenerSettings
from lockkeeper.client.listener.worker import Worker, cancelled
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.client.opening import DEFAULT_URL, policies
from lockkeeper.client.tls import TlsOptions

SILENCE_SECONDS_MAX = 30.0
"""ActiveMQ's inactivity duration: who is silent for longer is not there any more."""
_STOPPED = "the container was stopped before its first consumer was there"
_LOG = logging.getLogger(__name__)
ErrorHandler = Callable[[Exception, ReceivedMessage], Any]


class ContainerState(Enum):
    """State of a container."""

    NEW = "new"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Health:
    """Health of a container; seconds since the last frame each way, None without a broker.

    `silence_seconds_max` is how long a broker may be silent, None where it gives no signs of life
    (`maxInactivityDuration=0`).
    """

    state: ContainerState
    address: str | None
    consumers: int
    consumers_busy: int
    received_seconds: float | None
    sent_seconds: float | None
    silence_seconds_max: float | None
    error: str | None

    @property
    def is_healthy(self) -> bool:
        """Tell whether it runs, and its broker has been heard in time."""
        silence, limit = self.received_seconds, self.silence_seconds_max
        is_heard = silence is not None and (limit is None or silence <= limit)
        return self.state is ContainerState.RUNNING and is_heard


class ListenerContainer(Closing):
    """Calls a function with each message of a destination; see `ListenerSettings`.

    A coroutine function is awaited, any other called in a thread. A message is acknowledged when
    it returns, within a transaction unless told otherwise, and comes again when it raises, as the
    redelivery policy says. *error_handler*, called in the same way, gets errors that are none of
    the outcomes, and the message; without it they are logged. Raises TypeError for a function that
    cannot be given what it asks for.
    """

    def __init__(
        self,
        function: Function,
        settings: ListenerSettings,
        url: str = DEFAULT_URL,
        *,
        name: str | None = None,
        user: str | None = None,
        password: str | None = None,
        tls: TlsOptions | None = None,
        error_handler: ErrorHandler | None = None,
    ) -> None:
        self.settings = settings
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.counters = Counters()
        self.policies = policies(settings.redelivery)
        self.state = ContainerState.NEW
        self.error: Exception | None = None
        self._invocation = Invocation(function)
        self._error_handler = error_handler
        self._access = (url, settings.client_id, user, password, tls)
        self._workers: dict[asyncio.Task[None], Worker] = {}
        self._leaving: set[Worker] = set()

    # Life

    async def start(self, timeout: float | None = None) -> None:
        """Begin, and return once the first consumer is there.

        A broker that is not there is waited for, *timeout* seconds at most:
        RequestTimedOutError. Raises what the broker refuses the first consumer with.
        """
        if self.state in (ContainerState.RUNNING, ContainerState.STOPPING):
            raise IllegalStateError("the container runs already")
        if self.state is ContainerState.FAILED:
            await self.stop(0)
        self.state, self.error = ContainerState.RUNNING, None
        self.recovery = Recovery(self.settings.back_off)
        is_shared = self.settings.cache_level.keeps(CacheLevel.CONNECTION)
        self.connections = Connections(self._connect, is_shared)
        self._executor = ThreadPoolExecutor(
            self.settings.concurrency.maximum, f"lockkeeper-{self.name}"
        )
        self._ended = asyncio.Event()
        self._is_ending = self._is_cut = False
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for _ in range(self.settings.concurrency.minimum):
            self._add_worker()
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(self._begun)
        except TimeoutError:
            await self.stop(0)
            raise RequestTimedOutError(f"no consumer within {timeout:g} s") from None
        except BaseException:
            await self.stop(0)
            raise

    async def stop(self, timeout: float | None = None) -> bool:
        """Finish what is in hand, give everything else back, and close the connection.

        What was not handed to the function does not count as redelivered. After *timeout* seconds
        (None: never) coroutines are cancelled, threads left alone, and their messages come
        again; returns whether there were none of these.

        The container's own function and error handler return first: in them it only begins, and
        returns False.
        """
        if self.state in (ContainerState.NEW, ContainerState.STOPPED):
            return True
        self._take_no_more()
        if is_within(self):
            begin_outside(self.stop(timeout))
            return False
        is_first, self._is_ending = not self._is_ending, True
        try:
            await self._finish(timeout)
        finally:
            if is_first:
                await self._end()
        # Who stops it once more may do so with less patience.
        await self._ended.wait()
        return not self._is_cut

    def _take_no_more(self) -> None:
        """Let no further message be taken."""
        if self.state is ContainerState.RUNNING:
            self.state = ContainerState.STOPPING
        if not self._begun.done():
            self._begun.set_exception(IllegalStateError(_STOPPED))
            # Perhaps nobody waits for it.
            self._begun.exception()

    async def _finish(self, timeout: float | None) -> None:
        """Let those with a message finish it, as long as there is time, and end all others."""
        await cancelled([task for task, worker in self._workers.items() if not worker.is_busy])
        try:
            if self._workers:
                await asyncio.wait([*self._workers], timeout=timeout)
        finally:
            if self._workers:
                self._is_cut = True
                await cancelled([*self._workers])

    async def _end(self) -> None:
        """Let go of everything."""
        try:
            await self.connections.close()
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)
            if self.state is ContainerState.STOPPING:
                self.state = ContainerState.STOPPED
            self._ended.set()

    async def wait_until_ended(self) -> None:
        """Return when it is stopped. Raises what it has failed with."""
        if self.state is not ContainerState.NEW:
            await self._ended.wait()
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        """Stop it."""
        if self.state in (ContainerState.RUNNING, ContainerState.FAILED):
            await self.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    @property
    def is_stopping(self) -> bool:
        """Tell whether no further message is to be taken."""
        return self.state is not ContainerState.RUNNING

    # What can be seen

    @property
    def consumers(self) -> int:
        """Number of consumers, without those about to end."""
        return len(self._workers) - len(self._leaving)

    def health(self) -> Health:
        """Return how it is; for a probe of readiness, say."""
        contact = self.connections.contact() if self.state is not ContainerState.NEW else None
        now = moment().now
        limit = None if contact is None else contact.silence_max
        return Health(
            self.state,
            None if contact is None else contact.address,
            self.consumers,
            self.counters.consumers_busy,
            None if contact is None else now - contact.received_at,
            None if contact is None else now - contact.sent_at,
            None if limit is None else max(limit, SILENCE_SECONDS_MAX),
            None if self.error is None else str(self.error),
        )

    def metrics(self) -> str:
        """Return the counters in Prometheus' text format."""
        return exposition({self.name: self.counters})

    def collector(self) -> Collector:
        """Return a collector to register with prometheus_client."""
        return Collector({self.name: self.counters})

    # What consumers say

    async def _connect(self) -> aio.Connection:
        url, client_id, user, password, tls = self._access
        return await aio.connect(url, client_id, user, password, self.policies, tls)

    def consumer_made(self) -> None:
        """Note that the broker has taken a consumer."""
        if not self._begun.done():
            self._begun.set_result(None)

    def message_came(self) -> None:
        """Add a consumer when too few have nothing to do."""
        settings = self.settings
        if self.is_stopping or self.consumers >= settings.concurrency.maximum:
            return
        if self._idle_count() < settings.idle_consumer_limit:
            self._add_worker()

    def may_leave(self, worker: Worker, idle_tasks: int) -> bool:
        """Tell whether a consumer with so many idle tasks in a row is to end; it counts no more."""
        settings = self.settings
        is_surplus = (
            worker.is_idle
            and idle_tasks >= settings.idle_task_limit
            and self.consumers > settings.concurrency.minimum
            and self._idle_count() > settings.idle_consumer_limit
        )
        if is_surplus:
            self._leaving.add(worker)
            self._count()
        return is_surplus

    def _idle_count(self) -> int:
        workers = [each for each in self._workers.values() if each not in self._leaving]
        return sum(worker.is_idle for worker in workers)

    async def invoke(self, message: ReceivedMessage, session: aio.Session) -> Any:
        """Call the function."""
        with ListenerCall(self):
            return await self._invocation.call(message, session, self._executor)

    async def tell_error(self, error: Exception, message: ReceivedMessage) -> None:
        """Call the error handler."""
        if self._error_handler is None:
            _LOG.warning("%s failed with %s", self.name, message.message_id, exc_info=error)
            return
        try:
            with ListenerCall(self):
                await self._call_handler(self._error_handler, error, message)
        except Exception:
            _LOG.exception("the error handler of %s", self.name)

    async def _call_handler(
        self, handler: ErrorHandler, error: Exception, message: ReceivedMessage
    ) -> None:
        if is_coroutine_function(handler):
            await uncancelled(handler(error, message))
        else:
            result = await in_thread(self._executor, handler, error, message)
            if inspect.isawaitable(result):
                await uncancelled(result)

    def is_final(self, error: Exception) -> bool:
        """Tell whether asking again would change nothing: the first consumer is refused."""
        return isinstance(error, RefusedError | BrokerUrlError) and not self._begun.done()

    def worker_failed(self, error: Exception) -> None:
        """Give up: no broker is to be had."""
        if self.state is ContainerState.RUNNING:
            self.state, self.error = ContainerState.FAILED, error
            _LOG.error("the listener %s gives up: %s", self.name, error)
            for task, worker in self._workers.items():
                if not worker.is_busy and task is not asyncio.current_task():
                    task.cancel()

    # Consumers

    def _add_worker(self) -> None:
        worker = Worker(self)
        task = asyncio.get_running_loop().create_task(worker.run(), name=f"listener-{self.name}")
        self._workers[task] = worker
        self._count()
        task.add_done_callback(self._remove_worker)

    def _remove_worker(self, task: "asyncio.Task[None]") -> None:
        self._leaving.discard(self._workers.pop(task))
        self._count()
        if self.state is ContainerState.FAILED and not self._workers:
            if not self._begun.done():
                assert self.error is not None
                self._begun.set_exception(self.error)
            self._ended.set()

    def _count(self) -> None:
        counters = self.counters
        counters.consumers = self.consumers
        counters.consumers_peak = max(counters.consumers_peak, counters.consumers)
