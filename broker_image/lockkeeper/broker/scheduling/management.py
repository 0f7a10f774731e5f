"""Requests about jobs, sent to a topic (ActiveMQ's scheduler management)."""

from collections.abc import Callable, Mapping

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.scheduling.job import JOB_ID
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, properties_of

MANAGEMENT = topic("ActiveMQ.Scheduler.Management")
ACTION = "AMQ_SCHEDULER_ACTION"
START, END = "ACTION_START_TIME", "ACTION_END_TIME"
_ALWAYS = (0, 1 << 62)


class Management:
    """Browses and removes jobs."""

    def __init__(self, queue: JobQueue, send_copy: Callable[[Message, Destination], None]) -> None:
        """*send_copy* sends a copy of a job to whoever asked."""
        self._queue = queue
        self._send_copy = send_copy

    def carry_out(self, message: Message) -> None:
        """Do what a message to the management topic asks for. Raises BrokerError."""
        fields = decoded(message)
        properties = properties_of(fields)
        action = properties.get(ACTION)
        if action == "BROWSE":
            if fields.reply_to is None:
                raise BrokerError(f"{ACTION} BROWSE needs a JMSReplyTo to answer to")
            self._browse(fields.reply_to, *_times(properties))
        elif action == "REMOVE":
            self._queue.cancel(str(properties.get(JOB_ID)))
        elif action == "REMOVEALL":
            first, last = _times(properties)
            for job, _ in self._queue.jobs():
                if first <= job.due <= last:
                    self._queue.cancel(job.identifier)
        else:
            raise BrokerError(f"{ACTION}: BROWSE, REMOVE or REMOVEALL, not {action!r}")

    def _browse(self, to: Destination, first: int, last: int) -> None:
        for job, reference in self._queue.jobs():
            if first <= job.due <= last:
                self._send_copy(self._queue.body_of(reference), to)


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
