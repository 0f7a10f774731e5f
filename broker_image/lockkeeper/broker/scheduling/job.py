"""A job: a message that waits for its time, as the queue of jobs holds it.

The schedule and what else must outlive a restart are properties of the stored message; they are
gone, the schedule too, from what is delivered.
"""

from collections.abc import Mapping
from typing import NamedTuple

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.scheduling.schedule import (
    CRON,
    DELAY,
    PERIOD,
    PROPERTIES,
    REPEAT,
    Schedule,
    read_schedule,
)
from lockkeeper.message.destination import Destination, parse_destination, queue
from lockkeeper.message.ids import MessageId, TransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.patching import LONG_MAX, ends_at, patched, properties_in
from lockkeeper.message.primitives import Long, Value
from lockkeeper.message.text import decode_text

JOBS = queue("ActiveMQ.Scheduler.Jobs")
JOB_ID = "scheduledJobId"
UNNUMBERED = -1
_DUE, _DESTINATION = "lockkeeperDue", "lockkeeperDestination"
_PERSISTENT, _TIME_TO_LIVE = "lockkeeperPersistent", "lockkeeperTimeToLive"
_NUMBER = "lockkeeperNumber"
_OURS = (_DUE, _DESTINATION, _PERSISTENT, _TIME_TO_LIVE, _NUMBER)


class Job(NamedTuple):
    """A job as the queue of jobs knows it: `due` in ms since the epoch.

    Jobs are numbered as they begin to wait. One that comes again keeps its number, and what it
    begins has the same one; that of a job that is new is UNNUMBERED. `shown` is the JMSMessageID
    of its message, empty where that is the job's id.
    """

    identifier: str
    due: int
    schedule: Schedule
    number: int = UNNUMBERED
    shown: str = ""


def read_job(message: Message) -> Job:
    """Return the job that a message of the queue of jobs is. Raises BrokerError."""
    properties = properties_in(message)
    due, number = properties.get(_DUE), properties.get(_NUMBER)
    identifier, shown = str(properties.get(JOB_ID, "")), decode_text(message.identifier)
    return Job(
        identifier,
        due if isinstance(due, int) else 0,
        read_schedule(properties),
        number if isinstance(number, int) else UNNUMBERED,
        "" if shown == identifier else shown,
    )


def destination_in(message: Message) -> Destination | None:
    """Return where a job is to be delivered, None for what is in the queue of jobs and is none."""
    return _destination(properties_in(message))


def _destination(properties: Mapping[str, Value]) -> Destination | None:
    name = properties.get(_DESTINATION)
    return None if name is None else parse_destination(str(name))


def stored(
    message: Message,
    job: Job,
    born: int,
    sequence: int,
    message_id: MessageId | None = None,
) -> Message:
    """Return *job* of a message, whose time to live is what follows *born*, delivered at last.

    Times are in ms since the epoch. *message_id* is its id in the queue of jobs, where another one
    may have that of the message; None for that.
    """
    properties = properties_in(message)
    properties.pop(_NUMBER, None)
    properties[JOB_ID] = job.identifier
    properties[_DESTINATION] = str(message.destination)
    properties[_PERSISTENT] = message.persistent
    if message.expiration:
        properties[_TIME_TO_LIVE] = Long(min(message.expiration - born, LONG_MAX))
    properties |= _schedule_properties(job.schedule, job.due)
    return patched(
        message,
        sequence,
        properties=properties,
        destination=JOBS,
        message_id=message_id,
        persistent=True,
        expiration=0,
    )


def again(
    message: Message, job: Job, message_id: MessageId, transaction_id: TransactionId, sequence: int
) -> Message:
    """Return a job like *message*, with the schedule and the time of *job* and an id of its own."""
    properties = {
        name: value for name, value in properties_in(message).items() if name not in PROPERTIES
    }
    properties[JOB_ID] = job.identifier
    properties[_NUMBER] = Long(job.number)
    properties |= _schedule_properties(job.schedule, job.due)
    return patched(
        message,
        sequence,
        properties=properties,
        transaction_id=transaction_id,
        message_id=message_id,
    )


def delivered(
    message: Message,
    now: int,
    message_id: MessageId | None,
    transaction_id: TransactionId,
    sequence: int,
) -> Message:
    """Return what is delivered of a job at *now*: its schedule gone, its times the present ones.

    *message_id* is its new id, None for that of the message that was sent. Raises BrokerError
    for what is in the queue of jobs and is none.
    """
    properties = properties_in(message)
    time_to_live = properties.get(_TIME_TO_LIVE)
    destination = _destination(properties)
    if destination is None:
        raise BrokerError(f"not a job: it was sent to {JOBS} itself")
    kept = {name: value for name, value in properties.items() if name not in (*PROPERTIES, *_OURS)}
    return patched(
        message,
        sequence,
        properties=kept,
        destination=destination,
        transaction_id=transaction_id,
        message_id=message_id,
        persistent=properties.get(_PERSISTENT) is not False,
        expiration=ends_at(now, time_to_live) if isinstance(time_to_live, int) else 0,
        timestamp=now,
    )


def browsed(message: Message, to: Destination, message_id: MessageId, sequence: int) -> Message:
    """Return a copy of a job for somebody who asked which there are."""
    kept = {name: value for name, value in properties_in(message).items() if name not in _OURS}
    return patched(
        message,
        sequence,
        properties=kept,
        destination=to,
        message_id=message_id,
        persistent=False,
        keeps_transaction=False,
    )


def _schedule_properties(schedule: Schedule, due: int) -> dict[str, Value]:
    """Return what tells a job's schedule; a repetition that is over is said to be."""
    properties: dict[str, Value] = {
        DELAY: Long(schedule.delay),
        PERIOD: Long(schedule.period),
        REPEAT: schedule.repeat,
        _DUE: Long(due),
    }
    if schedule.cron:
        properties[CRON] = schedule.cron
    return properties
