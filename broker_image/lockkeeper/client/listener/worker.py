"""One consumer of a container: it takes a message, has the function called, and settles it."""

import asyncio
import logging
import time
from typing import Any, Protocol

from lockkeeper.client import aio
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.redelivery import RedeliveryPolicyMap
from lockkeeper.client.errors import MessagingError, TransactionRolledBackError
from lockkeeper.client.listener.converting import InvalidBodyError
from lockkeeper.client.listener.counters import Counters
from lockkeeper.client.listener.outcomes import DeadLettered, Rejected, Retried
from lockkeeper.client.listener.reaching import Recovery
from lockkeeper.client.listener.settings import CacheLevel, ListenerSettings
from lockkeeper.client.listener.settling import ListenerSettling
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.client.tracing import TraceContext, trace_of, tracing

_LOG = logging.getLogger(__name__)


class WorkerOwner(Protocol):
    """The container of a consumer; see `ListenerContainer`."""

    settings: ListenerSettings
    counters: Counters
    policies: RedeliveryPolicyMap
    recovery: Recovery

    @property
    def is_stopping(self) -> bool:
        """Tell whether no further message is to be taken."""

    async def connection(self) -> aio.Connection:
        """Return the connection for a session. Raises MessagingError."""

    def consumer_made(self) -> None:
        """Note that the broker has taken a consumer."""

    def message_came(self) -> None:
        """Note that there is work."""

    def may_leave(self, worker: "Worker", idle_tasks: int) -> bool:
        """Tell whether a consumer with so many idle tasks in a row is to end."""

    async def invoke(self, message: ReceivedMessage, session: aio.Session) -> Any:
        """Call the function."""

    async def tell_error(self, error: Exception, message: ReceivedMessage) -> None:
        """Call the error handler."""

    def is_final(self, error: Exception) -> bool:
        """Tell whether asking again would change nothing."""

    def worker_failed(self, error: Exception) -> None:
        """Give up: no broker is to be had."""


class Worker:
    """A consumer; `is_idle` tells that its last receive brought nothing."""

    def __init__(self, owner: WorkerOwner) -> None:
        self.is_idle = True
        self.is_busy = False
        self._owner = owner
        self._settings = owner.settings
        self._connection: aio.Connection | None = None
        self._settling: ListenerSettling | None = None
        self._consumer: aio.Consumer | None = None

    async def run(self) -> None:
        """Work until it is not needed any more; cancelled, it gives back what it has."""
        idle_tasks = 0
        try:
            while not self._owner.is_stopping and not self._owner.may_leave(self, idle_tasks):
                epoch = self._owner.recovery.epoch
                try:
                    idle_tasks = 0 if await self._run_task() else idle_tasks + 1
                except Exception as error:
                    self.is_idle = True
                    if self._owner.is_stopping:
                        break
                    if self._owner.is_final(error):
                        raise
                    if not isinstance(error, MessagingError):
                        _LOG.error("a listener failed", exc_info=error)
                    self._release(CacheLevel.NONE)
                    self._owner.counters.recoveries += 1
                    await self._owner.recovery.wait(epoch, error)
        except Exception as error:
            self._owner.worker_failed(error)
        finally:
            self._release(CacheLevel.NONE)
            await self._close_own_connection()

    async def _run_task(self) -> bool:
        """Do one task; tell whether there was a message."""
        settings = self._settings
        messages = idle_receives = 0
        while not self._owner.is_stopping:
            if await self._receive_one():
                messages += 1
                if messages == settings.messages_per_task:
                    break
            else:
                idle_receives += 1
                if idle_receives == settings.idle_receives_per_task:
                    break
        return messages > 0

    async def _receive_one(self) -> bool:
        consumer, settling = await self._open()
        try:
            message = await consumer.receive(self._settings.receive_timeout)
            self._owner.recovery.note_success()
            if message is None:
                self.is_idle = True
                return False
            await self._process(message, settling)
            return True
        finally:
            self._release(self._settings.cache_level)
            if not self._settings.cache_level.keeps(CacheLevel.CONNECTION):
                await self._close_own_connection()

    # Resources

    async def _open(self) -> tuple[aio.Consumer, ListenerSettling]:
        """Return consumer and session, made unless they are there. Raises MessagingError."""
        owner, settings = self._owner, self._settings
        if self._settling is None:
            self._connection = await owner.connection()
            acknowledge = settings.acknowledge
            session = self._connection.session(
                transacted=acknowledge is Acknowledge.TRANSACTED, acknowledge=acknowledge
            )
            self._settling = ListenerSettling(session, owner.policies, settings.send_to)
        if self._consumer is None:
            self._consumer = await self._settling.session.consumer(
                settings.destination, settings.selector, prefetch=settings.window,
                subscription_name=settings.subscription_name, priority=settings.priority,
                exclusive=settings.exclusive, redelivery=owner.policies,
            )  # fmt: skip
            owner.consumer_made()
        return self._consumer, self._settling

    def _release(self, level: CacheLevel) -> None:
        """Close what *level* does not keep; what was not handed out goes back uncounted."""
        if self._consumer is not None and not level.keeps(CacheLevel.CONSUMER):
            self._consumer.close_at_once()
            self._consumer = None
        if self._settling is not None and not level.keeps(CacheLevel.SESSION):
            self._settling.session.close_at_once()
            self._settling = None

    async def _close_own_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not self._settings.cache_level.keeps(CacheLevel.CONNECTION):
            await connection.close()

    # Messages

    async def _process(self, message: ReceivedMessage, settling: ListenerSettling) -> None:
        counters = self._owner.counters
        self.is_idle = False
        await settling.wait_until_due(message)
        self.is_busy = True
        counters.received += 1
        counters.consumers_busy += 1
        self._owner.message_came()
        began = time.monotonic()
        try:
            # What is returned is sent within the trace, too.
            with tracing(_span_of(message)):
                try:
                    result = await self._owner.invoke(message, settling.session)
                finally:
                    counters.busy_seconds += time.monotonic() - began
                await settling.succeed(message, result)
            counters.processed += 1
        except TransactionRolledBackError as error:
            # It comes again: the broker was lost, or did not commit.
            counters.rolled_back += 1
            _LOG.info("%s comes again: %s", message.message_id, error)
        except Exception as error:
            await self._settle_failure(message, settling, error)
        finally:
            counters.consumers_busy -= 1
            self.is_busy = False

    async def _settle_failure(
        self, message: ReceivedMessage, settling: ListenerSettling, error: Exception
    ) -> None:
        counters = self._owner.counters
        assert self._connection is not None
        if isinstance(error, MessagingError) and self._connection.state.is_over:
            # That is not the fault of the function, and nothing is left to be settled.
            counters.rolled_back += 1
            raise error
        try:
            match error:
                case InvalidBodyError():
                    counters.invalid += 1
                    await settling.bury(message, error)
                    await self._owner.tell_error(error, message)
                case DeadLettered(reason=reason):
                    counters.dead_lettered += 1
                    await settling.bury(message, reason)
                case Retried(delay=delay):
                    if await settling.put_off(message, delay):
                        counters.retried += 1
                    else:
                        counters.failed += 1
                case Rejected(cause=cause):
                    counters.failed += 1
                    await settling.fail(cause)
                case _:
                    counters.failed += 1
                    await settling.fail(error)
                    await self._owner.tell_error(error, message)
        except TransactionRolledBackError as rolled_back:
            counters.rolled_back += 1
            _LOG.info("%s comes again: %s", message.message_id, rolled_back)


def _span_of(message: ReceivedMessage) -> TraceContext | None:
    """Return a new span within the trace of a message. Raises InvalidBodyError."""
    try:
        carried = trace_of(message.properties)
    except ValueError as error:
        raise InvalidBodyError(str(error)) from error
    return None if carried is None else carried.child()


async def cancelled(tasks: "list[asyncio.Task[None]]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
