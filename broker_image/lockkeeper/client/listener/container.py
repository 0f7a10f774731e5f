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
from lockkeeper.client.errors import (
    BrokerUrlError,
    IllegalStateError,
    RefusedError,
    RequestTimedOutError,
)
from lockkeeper.client.listener.counters import Collector, Counters, exposition
from lockkeeper.client.listener.invocation import Function, Invocation
from lockkeeper.client.listener.reaching import Recovery, SharedConnection
from lockkeeper.client.listener.settings import CacheLevel, ListenerSettings
from lockkeeper.client.listener.worker import Worker, cancelled
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.client.opening import DEFAULT_URL, policies
from lockkeeper.client.tls import TlsOptions

SILENCE_SECONDS_MAX = 30.0
"""ActiveMQ's inactivity duration: who is silent for longer is not there any more."""
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
    """Health of a container; seconds since the last frame each way, None without a broker."""

    state: ContainerState
    address: str | None
    consumers: int
    consumers_busy: int
    received_seconds: float | None
    sent_seconds: float | None
    error: str | None

    @property
    def is_healthy(self) -> bool:
        """Tell whether it runs, and its broker has been heard within 30 s."""
        silence = self.received_seconds
        is_heard = silence is not None and silence <= SILENCE_SECONDS_MAX
        return self.state is ContainerState.RUNNING and is_heard


class ListenerContainer(Closing):
    """Calls a function with each message of a destination; see `ListenerSettings`.

    A coroutine function is awaited, any other called in a thread. A message is acknowledged when
    it returns, within a transaction unless told otherwise, and comes again when it raises, as the
    redelivery policy says. *error_handler* (a function or a coroutine function) gets errors
    that are none of the outcomes, and the message; without it they are logged. Raises TypeError
    for a function that cannot be given what it asks for.
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
        self.state, self.error = ContainerState.RUNNING, None
        self.recovery = Recovery(self.settings.back_off)
        self._shared = SharedConnection(self._connect)
        self._executor = ThreadPoolExecutor(
            self.settings.concurrency.maximum, f"lockkeeper-{self.name}"
        )
        self._ended = asyncio.Event()
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
        """
        if self.state not in (ContainerState.RUNNING, ContainerState.FAILED):
            await self.wait_until_ended()
            return True
        if self.state is ContainerState.RUNNING:
            self.state = ContainerState.STOPPING
        try:
            return await self._finish(timeout)
        finally:
            await cancelled([*self._workers])
            await self._shared.close()
            self._executor.shutdown(wait=False, cancel_futures=True)
            if self.state is ContainerState.STOPPING:
                self.state = ContainerState.STOPPED
            self._ended.set()

    async def _finish(self, timeout: float | None) -> bool:
        """Let those with a message finish it, and end all others at once."""
        await cancelled([task for task, worker in self._workers.items() if not worker.is_busy])
        if not self._workers:
            return True
        _, unfinished = await asyncio.wait([*self._workers], timeout=timeout)
        return not unfinished

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
        shared = self._shared.current if self.state is not ContainerState.NEW else None
        silence = None if shared is None else shared.silence
        return Health(
            self.state,
            None if shared is None else shared.address,
            self.consumers,
            self.counters.consumers_busy,
            None if silence is None else silence.received,
            None if silence is None else silence.sent,
            None if self.error is None else str(self.error),
        )

    def metrics(self) -> str:
        """Return the counters in Prometheus' text format."""
        return exposition({self.name: self.counters})

    def collector(self) -> Collector:
        """Return a collector to register with prometheus_client."""
        return Collector({self.name: self.counters})

    # What consumers say

    async def connection(self) -> aio.Connection:
        """Return the connection for a session. Raises MessagingError."""
        if self.settings.cache_level.keeps(CacheLevel.CONNECTION):
            return await self._shared.open()
        return await self._connect()

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
            idle_tasks >= settings.idle_task_limit
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
        return await self._invocation.call(message, session, self._executor)

    async def tell_error(self, error: Exception, message: ReceivedMessage) -> None:
        """Call the error handler."""
        if self._error_handler is None:
            _LOG.warning("%s failed with %s", self.name, message.message_id, exc_info=error)
            return
        try:
            result = self._error_handler(error, message)
            if inspect.isawaitable(result):
                await result
        except Exception:
            _LOG.exception("the error handler of %s", self.name)

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
