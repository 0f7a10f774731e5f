"""Requests about jobs, sent to a topic (ActiveMQ's scheduler management)."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from lockkeeper.broker.chores import Chore
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import END_BYTES, TICK_BYTES_MAX, Context
from lockkeeper.broker.errors import BrokerError, internal_error
from lockkeeper.broker.scheduling.job import JOB_ID
from lockkeeper.broker.scheduling.job_queue import JOB_BYTES, JobQueue
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.store.base import Receipt

MANAGEMENT = topic("ActiveMQ.Scheduler.Management")
ACTION = "AMQ_SCHEDULER_ACTION"
START, END = "ACTION_START_TIME", "ACTION_END_TIME"
_ALWAYS = (0, 1 << 62)


class _Request(NamedTuple):
    """What somebody asked for, and who is answered when it is done."""

    connection: Connection
    receipt: Receipt | None
    steps: Iterator[int]


class Management:
    """Browses and removes the jobs that there are when somebody asks, some of them in each turn."""

    def __init__(
        self, context: Context, queue: JobQueue, send_copy: Callable[[Message, Destination], None]
    ) -> None:
        """*send_copy* sends a copy of a job to whoever asked."""
        self._context = context
        self._queue = queue
        self._send_copy = send_copy
        self._requests: deque[_Request] = deque()
        self._work = Chore(context, self._carry_all_out, TICK_BYTES_MAX)

    def carry_out(self, connection: Connection, message: Message, receipt: Receipt | None) -> None:
        """Do what a message to the management topic asks for. Raises BrokerError.

        The receipt is settled when all of it is done.
        """
        self._requests.append(_Request(connection, receipt, self._steps_of(message)))
        self._work.begin()

    def _carry_all_out(self) -> Iterator[int]:
        while self._requests:
            connection, receipt, steps = self._requests.popleft()
            try:
                yield from steps
            except BrokerError as refusal:
                connection.refuse(receipt, refusal)
            except Exception as error:
                self._context.containment.note_error("command", MANAGEMENT, error)
                connection.refuse(receipt, internal_error(error))
            else:
                if receipt is not None:
                    receipt.settle()

    def _steps_of(self, message: Message) -> Iterator[int]:
        """Return what is to be done, which yields what each step weighs. Raises BrokerError."""
        fields = decoded(message)
        properties = properties_of(fields)
        action = properties.get(ACTION)
        if action == "BROWSE":
            if fields.reply_to is None:
                raise BrokerError(f"{ACTION} BROWSE needs a JMSReplyTo to answer to")
            return self._browse(fields.reply_to, *_times(properties), self._queue.latest)
        if action == "REMOVE":
            return self._remove(str(properties.get(JOB_ID)), self._queue.latest)
        if action == "REMOVEALL":
            return self._remove_all(*_times(properties), self._queue.latest)
        raise BrokerError(f"{ACTION}: BROWSE, REMOVE or REMOVEALL, not {action!r}")

    def _browse(self, to: Destination, first: int, last: int, latest: int) -> Iterator[int]:
        for identifier in self._queue.identifiers(first, last, latest):
            for reference in self._queue.named(identifier, latest):
                message = self._queue.peek(reference)
                if message is not None:
                    self._send_copy(message, to)
                    yield JOB_BYTES

    def _remove(self, identifier: str, latest: int) -> Iterator[int]:
        self._queue.cancel(identifier, latest)
        yield END_BYTES

    def _remove_all(self, first: int, last: int, latest: int) -> Iterator[int]:
        for identifier in self._queue.identifiers(first, last, latest):
            self._queue.cancel(identifier, latest)
            yield END_BYTES


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
