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
from lockkeeper.client.listener.counters import Counters, Fate
from lockkeeper.client.listener.outcomes import DeadLettered, Outcome, Rejected, Retried
from lockkeeper.client.listener.reaching import Connections, Recovery
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
    connections: Connections

    @property
    def is_stopping(self) -> bool:
        """Tell whether no further message is to be taken."""

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
                    await self._release_all()
                    self._owner.counters.recoveries += 1
                    await self._owner.recovery.wait(epoch, error)
        except Exception as error:
            self._owner.worker_failed(error)
        finally:
            await self._release_all()

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
                self.is_idle = not self._has_held
                return False
            await self._process(message, settling)
            return True
        finally:
            # What failed comes again when it is time, and to this consumer.
            if not self._has_held:
                await self._release(self._settings.cache_level)

    @property
    def _has_held(self) -> bool:
        return self._consumer is not None and self._consumer.core.has_held

    # Resources

    async def _open(self) -> tuple[aio.Consumer, ListenerSettling]:
        """Return consumer and session, made unless they are there. Raises MessagingError."""
        owner, settings = self._owner, self._settings
        if self._settling is None:
            self._connection = await owner.connections.open()
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
            self._settling.consumer = self._consumer
            owner.consumer_made()
        return self._consumer, self._settling

    async def _release(self, level: CacheLevel) -> None:
        """Close what *level* does not keep; what was not handed out goes back uncounted."""
        if self._consumer is not None and not level.keeps(CacheLevel.CONSUMER):
            self._consumer.close_at_once()
            self._consumer = None
        if self._settling is not None and not level.keeps(CacheLevel.SESSION):
            self._settling.session.close_at_once()
            self._settling = None
        if self._connection is not None and not level.keeps(CacheLevel.CONNECTION):
            connection, self._connection = self._connection, None
            await self._owner.connections.release(connection)

    async def _release_all(self) -> None:
        await self._release(CacheLevel.NONE)

    # Messages

    async def _process(self, message: ReceivedMessage, settling: ListenerSettling) -> None:
        counters = self._owner.counters
        self.is_idle = False
        self._owner.message_came()
        try:
            await settling.wait_until_due(message)
        except asyncio.CancelledError:
            settling.give_back(message)
            raise
        self.is_busy = True
        counters.received += 1
        counters.consumers_busy += 1
        # Unless something else becomes of it, the broker sends it again.
        fate: Fate = "rolled_back"
        try:
            fate = await self._handle(message, settling)
        finally:
            counters.note_fate(fate)
            counters.consumers_busy -= 1
            self.is_busy = False

    async def _handle(self, message: ReceivedMessage, settling: ListenerSettling) -> Fate:
        """Have the function called, and settle the message; tell what it has come to."""
        counters = self._owner.counters
        began = time.monotonic()
        try:
            # What is returned is sent within the trace, too.
            with tracing(_span_of(message)):
                try:
                    result = await self._owner.invoke(message, settling.session)
                finally:
                    counters.busy_seconds += time.monotonic() - began
                await settling.succeed(message, result)
        except TransactionRolledBackError as error:
            # It comes again: the broker was lost, or did not commit.
            _LOG.info("%s comes again: %s", message.message_id, error)
            return "rolled_back"
        except Exception as error:
            return await self._settle_failure(message, settling, error)
        return "processed"

    async def _settle_failure(
        self, message: ReceivedMessage, settling: ListenerSettling, error: Exception
    ) -> Fate:
        assert self._connection is not None
        if isinstance(error, MessagingError) and self._connection.state.is_over:
            # That is not the fault of the function, and nothing is left to be settled.
            raise error
        try:
            await settling.check_kept()
            fate = await _settled(message, settling, error)
        except TransactionRolledBackError as rolled_back:
            _LOG.info("%s comes again: %s", message.message_id, rolled_back)
            fate = "rolled_back"
        if not isinstance(error, Outcome):
            await self._owner.tell_error(error, message)
        return fate


async def _settled(message: ReceivedMessage, settling: ListenerSettling, error: Exception) -> Fate:
    """Settle a message as *error* says; return what it has come to."""
    match error:
        case InvalidBodyError():
            await settling.bury(message, error)
            return "invalid"
        case DeadLettered(reason=reason):
            await settling.bury(message, reason)
            return "dead_lettered"
        case Retried(delay=delay):
            return "retried" if await settling.put_off(message, delay) else "failed"
        case Rejected(cause=cause):
            await settling.fail(cause)
        case _:
            await settling.fail(error)
    return "failed"


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
