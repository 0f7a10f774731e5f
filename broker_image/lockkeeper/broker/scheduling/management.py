"""Requests about jobs, sent to a topic (ActiveMQ's scheduler management)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias
from weakref import WeakSet

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import END_BYTES
from lockkeeper.broker.errors import InvalidRequestError
from lockkeeper.broker.requests.answers import Answers
from lockkeeper.broker.requests.requests import Requests
from lockkeeper.broker.requests.turns import Steps
from lockkeeper.broker.scheduling.job import JOB_ID
from lockkeeper.broker.scheduling.job_queue import JOB_BYTES, JobQueue
from lockkeeper.broker.scheduling.searching import (
    LOOK_BYTES,
    NEXT_BYTES,
    NOTE_BYTES,
    search,
    search_in_order,
)
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.store.base import Receipt, Reference

MANAGEMENT = topic("ActiveMQ.Scheduler.Management")
ACTION = "AMQ_SCHEDULER_ACTION"
START, END = "ACTION_START_TIME", "ACTION_END_TIME"
_ALWAYS = (0, 1 << 62)

Copy: TypeAlias = Callable[[Message, Destination], Message]


class _Begun:
    """The ids of jobs that others begin, by the ids of those, from when a removal is asked for."""

    def __init__(self) -> None:
        self.by: dict[str, list[str]] = {}


class Management:
    """Browses and removes the jobs that there are when somebody asks, some of them in each turn."""

    def __init__(self, queue: JobQueue, requests: Requests, copy: Copy) -> None:
        """*copy* makes a copy of a job for somebody who asked."""
        self._queue = queue
        self._requests = requests
        self._copy = copy
        # Of each removal that is not done; they are gone with it.
        self._begun: WeakSet[_Begun] = WeakSet()

    def note_begun(self, identifier: str, by: str) -> None:
        """Note the id of a job that another one begins: who removes that means this one, too."""
        for begun in self._begun:
            begun.by.setdefault(by, []).append(identifier)

    def carry_out(self, connection: Connection, message: Message, receipt: Receipt | None) -> None:
        """Do what a message to the management topic asks for. Raises BrokerError.

        The receipt is settled when all of it is done, and durable what was removed.
        """
        fields = decoded(message)
        properties = properties_of(fields)
        action, latest = properties.get(ACTION), self._queue.latest
        if action == "REMOVE":
            identifier = str(properties.get(JOB_ID))
            self._carry_out_removal(connection, message, receipt, identifier)
        elif action == "REMOVEALL":
            steps = self._remove_all(*_times(properties), latest, self._begin_noting())
            settle = self._queue.settle_removal
            self._requests.carry_out(connection, message, receipt, steps, settle)
        elif action == "BROWSE":
            reply_to = fields.reply_to
            if reply_to is None:
                raise InvalidRequestError(f"{ACTION} BROWSE needs a JMSReplyTo to answer to")
            browse = partial(self._browse, reply_to, *_times(properties), latest)
            self._requests.answer(connection, message, receipt, reply_to, browse)
        else:
            raise InvalidRequestError(f"{ACTION}: BROWSE, REMOVE or REMOVEALL, not {action!r}")

    def _carry_out_removal(
        self, connection: Connection, message: Message, receipt: Receipt | None, identifier: str
    ) -> None:
        """Remove one job at once, whatever else is asked for; several that have an id in turns."""
        steps = self._remove(identifier, self._queue.latest, self._begin_noting())
        are_several = self._queue.count(identifier) > 1
        requests, settle = self._requests, self._queue.settle_removal
        carry_out = requests.carry_out if are_several else requests.carry_out_at_once
        carry_out(connection, message, receipt, steps, settle)

    def _browse(
        self, to: Destination, first: int, last: int, latest: int, answers: Answers
    ) -> Steps:
        entries = self._queue.entries()
        yield len(entries) * NOTE_BYTES
        told: set[str] = set()
        for job in (yield from search_in_order(entries, first, last, latest)):
            yield NEXT_BYTES
            if job.identifier in told:
                continue
            told.add(job.identifier)
            for reference in self._queue.named(job.identifier):
                message = self._peek(reference, latest)
                if message is None:
                    yield LOOK_BYTES
                    continue
                yield from answers.send(self._copy(message, to))
                yield JOB_BYTES

    def _peek(self, reference: Reference, latest: int) -> Message | None:
        """Return a job's message if it still waits, and is none that came later."""
        return self._queue.peek(reference) if self._queue.holds(reference, latest) else None

    def _begin_noting(self) -> _Begun:
        """Have noted what jobs begin from now on, for one removal: others are asked for later."""
        begun = _Begun()
        self._begun.add(begun)
        return begun

    def _remove_all(self, first: int, last: int, latest: int, begun: _Begun) -> Steps:
        entries = self._queue.entries()
        yield len(entries) * NOTE_BYTES
        for found in search(entries, first, last, latest):
            yield JOB_BYTES
            for job in found:
                yield from self._remove(job.identifier, latest, begun)

    def _remove(self, identifier: str, latest: int, begun: _Begun) -> Steps:
        """Remove the jobs up to number *latest* that have this id, and what they began meanwhile.

        One that is carried out between two steps begins others, or comes again.
        """
        yield from self._remove_named(identifier, latest)
        for each in begun.by.get(identifier, ()):
            yield from self._remove_named(each, latest)

    def _remove_named(self, identifier: str, latest: int) -> Steps:
        """Remove the jobs up to number *latest* that have this id, until there are none."""
        is_found = True
        while is_found:
            is_found = False
            # Very many may have it: each is let go of as it has its turn.
            references = self._queue.named(identifier)
            references.reverse()
            while references:
                reference = references.pop()
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
        raise InvalidRequestError(f"{START} and {END} are ms since 1970, not {found}") from None
    return first, last
