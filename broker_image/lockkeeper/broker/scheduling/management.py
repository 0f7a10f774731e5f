"""Requests about jobs, sent to a topic (ActiveMQ's scheduler management)."""

from collections.abc import Callable, Mapping
from functools import partial

from lockkeeper.broker.access.guard import Guard
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import END_BYTES, Context
from lockkeeper.broker.errors import BrokerError, InvalidDestinationError
from lockkeeper.broker.scheduling.answers import Answers, SendCopy
from lockkeeper.broker.scheduling.job import JOB_ID
from lockkeeper.broker.scheduling.job_queue import JOB_BYTES, JobQueue
from lockkeeper.broker.scheduling.searching import LOOK_BYTES, search
from lockkeeper.broker.scheduling.turns import Request, Steps, Turns
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.store.base import Receipt, Reference

MANAGEMENT = topic("ActiveMQ.Scheduler.Management")
ACTION = "AMQ_SCHEDULER_ACTION"
START, END = "ACTION_START_TIME", "ACTION_END_TIME"
_ALWAYS = (0, 1 << 62)


class Management:
    """Browses and removes the jobs that there are when somebody asks, some of them in each turn."""

    def __init__(
        self,
        context: Context,
        queue: JobQueue,
        guard: Guard,
        send_copy: SendCopy,
        forget: Callable[[Connection], None],
    ) -> None:
        """*send_copy* sends a copy of a job, *forget* drops those of a connection that wait."""
        self._context = context
        self._queue = queue
        self._guard = guard
        self._send_copy = send_copy
        self._forget_copies = forget
        self._turns = Turns(context, MANAGEMENT)

    def carry_out(self, connection: Connection, message: Message, receipt: Receipt | None) -> None:
        """Do what a message to the management topic asks for. Raises BrokerError.

        The receipt is settled when all of it is done.
        """
        fields = decoded(message)
        properties = properties_of(fields)
        action, size = properties.get(ACTION), len(message.body)
        if action == "REMOVE":
            self._carry_out_removal(connection, str(properties.get(JOB_ID)), receipt, size)
        elif action == "REMOVEALL":
            steps = self._remove_all(*_times(properties), self._queue.latest)
            self._turns.add(connection, Request(receipt, steps, size))
        elif action == "BROWSE":
            if fields.reply_to is None:
                raise BrokerError(f"{ACTION} BROWSE needs a JMSReplyTo to answer to")
            self._guard.check_answering(connection, fields.reply_to)
            times = _times(properties)
            steps = self._browse(connection, fields.reply_to, *times, self._queue.latest)
            self._turns.add(connection, Request(receipt, steps, size, is_for_asker=True))
        else:
            raise BrokerError(f"{ACTION}: BROWSE, REMOVE or REMOVEALL, not {action!r}")

    def forget(self, connection: Connection) -> None:
        """End the answers to a connection that is gone."""
        self._turns.forget(connection)

    def _carry_out_removal(
        self, connection: Connection, identifier: str, receipt: Receipt | None, size: int
    ) -> None:
        """Remove one job at once, whatever else is asked for; several that have an id in turns."""
        steps = self._remove(identifier, self._queue.latest)
        if self._queue.count(identifier) > 1:
            self._turns.add(connection, Request(receipt, steps, size))
            return
        for _ in steps:
            pass
        if receipt is not None:
            receipt.settle()

    def _browse(
        self, asker: Connection, to: Destination, first: int, last: int, latest: int
    ) -> Steps:
        answers = Answers(self._context, self._send_copy, to, partial(self._turns.go_on, asker))
        try:
            for identifier in (yield from search(self._queue.entries(), first, last, latest)):
                for reference in self._queue.named(identifier):
                    message = self._peek(reference, latest)
                    if message is None:
                        yield LOOK_BYTES
                        continue
                    yield from answers.send(message)
                    yield JOB_BYTES
        except InvalidDestinationError:
            # Whoever has its own queue removed wants to read no more.
            if not to.is_temporary:
                raise
        finally:
            self._forget_copies(answers.connection)

    def _peek(self, reference: Reference, latest: int) -> Message | None:
        """Return a job's message if it still waits, and is none that came later."""
        return self._queue.peek(reference) if self._queue.holds(reference, latest) else None

    def _remove_all(self, first: int, last: int, latest: int) -> Steps:
        for identifier in (yield from search(self._queue.entries(), first, last, latest)):
            yield from self._remove(identifier, latest)

    def _remove(self, identifier: str, latest: int) -> Steps:
        """Remove the jobs up to number *latest* that have this id, until there are none.

        One that is carried out meanwhile may come again.
        """
        is_found = True
        while is_found:
            is_found = False
            for reference in self._queue.named(identifier):
                if self._queue.holds(reference, latest):
                    self._queue.cancel(reference)
                    is_found = True
                    yield END_BYTES
                else:
                    yield LOOK_BYTES


def _times(properties: Mapping[str, Value]) -> tuple[int, int]:
    """Return the times that a request is about, in ms since the epoch; both or none are named."""
    found = properties.get(START), properties.get(END)
    if None in found:
        return _ALWAYS
    try:
        first, last = (int(str(each)) for each in found)
    except ValueError:
        raise BrokerError(f"{START} and {END} are ms since 1970, not {found}") from None
    return first, last
