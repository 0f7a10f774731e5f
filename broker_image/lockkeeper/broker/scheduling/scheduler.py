"""Takes messages that are to be delivered later, and delivers them when their time has come."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.errors import (
    BrokerError,
    InvalidDestinationError,
    ResourceAllocationError,
    TooLargeError,
    TransactionRolledBackError,
)
from lockkeeper.broker.policies.dead_letters import CAUSE_PROPERTY
from lockkeeper.broker.policies.redelivery import counted
from lockkeeper.broker.requests.answers import Take
from lockkeeper.broker.scheduling import job as jobs
from lockkeeper.broker.scheduling.job import JOBS, Job
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.broker.scheduling.limit import JobLimit
from lockkeeper.broker.scheduling.management import MANAGEMENT, Management
from lockkeeper.broker.scheduling.schedule import (
    DELAY,
    FOR_EVER,
    MARK,
    Schedule,
    next_cron,
    read_schedule,
)
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.patching import properties_in, redelivery_counter_of, timestamp_of
from lockkeeper.message.text import decode_text
from lockkeeper.store.base import Receipt, Reference, StoreFullError

if TYPE_CHECKING:
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.regions.registry import Registry
    from lockkeeper.broker.requests.requests import Requests
    from lockkeeper.broker.settings import SchedulerSettings
    from lockkeeper.broker.transaction_manager import TransactionManager

logger = logging.getLogger(__name__)


class Scheduler:
    """The jobs of a broker; it sends what is due as a client of its own, in transactions.

    A delivery, the end of its job and the job's next time are one transaction: none is lost and
    none comes twice, whenever the broker dies.
    """

    def __init__(
        self,
        context: "Context",
        transactions: "TransactionManager",
        registry: "Registry",
        settings: "SchedulerSettings",
        broker_id: str,
        requests: "Requests",
        take: Take,
        check_later: Callable[[Message], None],
        count_blocked: Callable[[Destination], int],
    ) -> None:
        """*take* takes a message, *check later* refuses one that can never be taken.

        *count blocked* tells how many messages for a destination wait for room.
        """
        self._context = context
        self._transactions = transactions
        self._zone = ZoneInfo(settings.time_zone)
        self._take = take
        self._check_later = check_later
        self._connection = Connection([], "scheduler")
        self._connection.identifier = f"{broker_id}-scheduler"
        self._producer = ProducerId(self._connection.identifier, 1, 1)
        self._count = 0
        self._queue = JobQueue(context, self._fire)
        registry.add(self._queue)
        most = settings.max_scheduled_messages
        self._limit = JobLimit(self._queue, most, partial(count_blocked, JOBS))
        self._management = Management(self._queue, requests, self._copy)

    def intercept(
        self, connection: Connection, message: Message, receipt: Receipt | None
    ) -> Message | None:
        """See `Interceptor.intercept`: a message that is to wait goes to the queue of jobs."""
        if JOBS in message.destination.parts():
            raise InvalidDestinationError(f"{JOBS}: set {DELAY} on a message to its destination")
        if message.destination == MANAGEMENT:
            self._management.carry_out(connection, message, receipt)
            return None
        if MARK not in message.body:
            return message
        try:
            properties = properties_in(message)
        except MalformedMessageError:
            return message
        # What became of a message is there to be read, also at a broker that collects it.
        if CAUSE_PROPERTY in properties:
            return message
        schedule = read_schedule(properties)
        if not schedule.is_wanted:
            return message
        due = schedule.first_due(self._context.now, self._zone)
        wanted = Job(decode_text(message.key), due, schedule)
        sequence = message.sequence
        own_id = connection.audit.stored_id(message, sequence)
        job = jobs.stored(message, wanted, timestamp_of(message), sequence, own_id)
        if connection.reconnected and connection.audit.is_duplicate(job):
            # It has its place, whether or not there is one for others.
            self._transactions.leave_out(connection, message.transaction_id, receipt)
            return None
        self._check_later(message)
        self._find_place(connection, job)
        return job

    def _find_place(self, connection: Connection, job: Message) -> None:
        """Refuse a job when no more may wait. Raises BrokerError.

        One that is told again of a transaction has its place: there, or in the prepared one.
        """
        identifier = job.transaction_id
        if identifier is None:
            self._limit.check()
            return
        transaction = self._transactions.find(connection, identifier)
        if job.key not in transaction.told and identifier not in self._transactions.prepared:
            self._limit.check()
            self._limit.count(transaction)

    def recover(self) -> None:
        """Know of the jobs that prepared transactions have sent before the broker was started."""
        for transaction in self._transactions.prepared.values():
            for run in transaction.sent:
                if run.route is self._queue:
                    self._limit.count(transaction, len(run.references))

    def passes(self, messages: Sequence[Message]) -> bool:
        """See `Interceptor.passes`: nothing of them is to come later."""
        destination = messages[0].destination
        if destination == MANAGEMENT or JOBS in destination.parts():
            return False
        return not any(MARK in message.body for message in messages)

    def sends_by(self, connection: Connection) -> bool:
        """Tell whether a connection is the scheduler's own."""
        return connection is self._connection

    def deliver_later(self, message: Message, delay: int) -> None:
        """Let a message of a destination that failed come again after *delay* ms."""
        due = self._context.now + delay
        message_id = self._context.copy_id(message)
        job = Job(message_id.producer_key, due, Schedule(delay, 0, 0, ""))
        copy = jobs.stored(message, job, due, message_id.broker_sequence, message_id)
        self._queue.accept(copy, None)

    def _fire(self, job: Job, reference: Reference) -> str | None:
        """Deliver a job that is due, and let it wait for its next time if it has one.

        Returns what is in the way, with nothing done, when there is no room.
        """
        transaction = self._begin()
        try:
            following = self._following(job)
            self._send_all(job, reference.loaded, following, transaction)
        except Exception as error:
            self._transactions.rollback(self._connection, transaction, None)
            return self._fail(reference, error)
        found = self._transactions.find(self._connection, transaction)
        found.consume(self._queue, [reference], None)
        try:
            self._transactions.commit(self._connection, transaction, None)
        except TransactionRolledBackError as error:
            self._give_up(reference, error)
            return None
        if following:
            waiting = [run.references for run in found.sent if run.route is self._queue]
            last = [*chain.from_iterable(waiting)][-len(following) :]
            self._queue.expect(zip(last, following, strict=True))
        return None

    def _fail(self, reference: Reference, error: Exception) -> str | None:
        """End a job that fails whenever it is tried; returns what is in the way of any other."""
        is_for_ever = isinstance(error, TooLargeError)
        if isinstance(error, (ResourceAllocationError, StoreFullError)) and not is_for_ever:
            return str(error)
        if isinstance(error, BrokerError):
            self._give_up(reference, error)
        else:
            self._queue.quarantine(reference, error)
        return None

    def _send_all(
        self,
        job: Job,
        message: Message,
        following: list[Job] | None,
        transaction: LocalTransactionId,
    ) -> None:
        """Send what is due of a job, and its next times. Raises BrokerError, StoreFullError."""
        if not self._only_begins_others(job):
            message_id = None if following is None else self._message_id()
            sequence = self._context.next_sequence()
            due = jobs.delivered(message, self._context.now, message_id, transaction, sequence)
            self._send(due)
            redeliveries = counted(redelivery_counter_of(due))
            for run in self._transactions.find(self._connection, transaction).sent:
                for sent in run.references:
                    sent.redeliveries = redeliveries
        for each in following or ():
            self._send(self._again(message, each, transaction))

    def _give_up(self, reference: Reference, refusal: BrokerError) -> None:
        """End a job that is refused whenever it is tried, as a dead letter."""
        logger.warning("a scheduled message cannot be delivered, and is given up: %s", refusal)
        self._queue.poison(reference, str(refusal))

    def _following(self, job: Job) -> list[Job] | None:
        """Return the jobs that come after this delivery; None when it was the only one ever."""
        schedule, now = job.schedule, self._context.now
        if schedule.cron:
            found = [job._replace(due=next_cron(schedule.cron, now, self._zone))]
            if self._only_begins_others(job):
                once = schedule._replace(cron="")
                due = once.first_due(now, self._zone)
                begun = Job(str(self._message_id()), due, once, job.number)
                self._management.note_begun(begun.identifier, job.identifier)
                found.append(begun)
            return found
        if schedule.repeat == 0:
            return None
        left = schedule.repeat if schedule.repeat == FOR_EVER else schedule.repeat - 1
        return [job._replace(due=now + schedule.period, schedule=schedule._replace(repeat=left))]

    def _only_begins_others(self, job: Job) -> bool:
        """Tell whether a job is a cron expression that begins a schedule each time."""
        schedule: Schedule = job.schedule
        return bool(schedule.cron) and (schedule.repeat != 0 or schedule.delay > 0)

    def _again(self, message: Message, job: Job, transaction: LocalTransactionId) -> Message:
        sequence = self._context.next_sequence()
        return jobs.again(message, job, self._message_id(), transaction, sequence)

    def _copy(self, message: Message, to: Destination) -> Message:
        return jobs.browsed(message, to, self._message_id(), self._context.next_sequence())

    def _send(self, message: Message) -> None:
        # Not in the broker's list of connections, this one is not told of routes that end.
        self._connection.last_destination = None
        self._take(self._connection, message, None)

    def _begin(self) -> LocalTransactionId:
        self._count += 1
        identifier = LocalTransactionId(self._connection.identifier, self._count)
        self._transactions.begin(self._connection, identifier)
        return identifier

    def _message_id(self) -> MessageId:
        self._count += 1
        return MessageId(self._producer, self._count)
