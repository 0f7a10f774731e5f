"""The commands a journal record can hold, as values (kahadb.md section 3).

`message`, `ack` and `info` are loose OpenWire frames with their 4-byte size prefix, kept as
bytes. None means that the field is absent; an empty ack is not the same as an absent one.
"""

from dataclasses import dataclass

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId

PRIORITY_DEFAULT = 4


@dataclass(frozen=True, slots=True)
class Trace:
    """Text that replay ignores; ActiveMQ writes `LOADED <date>` at each start (type 0)."""

    message: str


@dataclass(frozen=True, slots=True)
class AddMessage:
    """A message joined a destination (type 1)."""

    destination: Destination
    message_id: str
    message: bytes
    priority: int = PRIORITY_DEFAULT
    priority_supported: bool = False
    transaction: TransactionId | None = None


@dataclass(frozen=True, slots=True)
class RemoveMessage:
    """A message was acknowledged, for one subscription or altogether (type 2)."""

    destination: Destination
    message_id: str
    ack: bytes | None = None
    subscription_key: str | None = None
    transaction: TransactionId | None = None


@dataclass(frozen=True, slots=True)
class Prepare:
    """An XA transaction promises that it can commit (type 3)."""

    transaction: TransactionId


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction takes effect here (type 4)."""

    transaction: TransactionId


@dataclass(frozen=True, slots=True)
class Rollback:
    """A transaction is forgotten (type 5)."""

    transaction: TransactionId


@dataclass(frozen=True, slots=True)
class RemoveDestination:
    """A destination goes, with all messages and subscriptions (type 6)."""

    destination: Destination


@dataclass(frozen=True, slots=True)
class Subscription:
    """A durable subscription: created when `info` is there, deleted when not (type 7)."""

    destination: Destination
    subscription_key: str
    retroactive: bool | None = None
    info: bytes | None = None


@dataclass(frozen=True, slots=True)
class ProducerAudit:
    """ActiveMQ's duplicate detector, a Java object stream (type 8)."""

    audit: bytes


@dataclass(frozen=True, slots=True)
class AckFileMap:
    """ActiveMQ's map from files of acks to files of messages, a Java object stream (type 9)."""

    ack_file_map: bytes


@dataclass(frozen=True, slots=True)
class UpdateMessage:
    """New contents for a message that keeps its place (type 10)."""

    add: AddMessage


@dataclass(frozen=True, slots=True)
class AddScheduledJob:
    """A job joined a scheduler (type 11); times in milliseconds since the epoch."""

    scheduler: str
    job_id: str
    start_time: int
    cron_entry: str
    delay: int
    period: int
    repeat: int
    payload: bytes
    next_execution_time: int


@dataclass(frozen=True, slots=True)
class RescheduleJob:
    """A scheduled job has another time (type 12)."""

    scheduler: str
    job_id: str
    execution_time: int
    next_execution_time: int
    rescheduled_count: int


@dataclass(frozen=True, slots=True)
class RemoveScheduledJob:
    """A job left its scheduler (type 13)."""

    scheduler: str
    job_id: str
    next_execution_time: int


@dataclass(frozen=True, slots=True)
class RemoveScheduledJobs:
    """All jobs of a span of time left their scheduler (type 14)."""

    scheduler: str
    start_time: int
    end_time: int


@dataclass(frozen=True, slots=True)
class DestroyScheduler:
    """A scheduler and all its jobs go (type 15)."""

    scheduler: str


@dataclass(frozen=True, slots=True)
class RewrittenDataFile:
    """Head of a file that holds what is left of another one (type 16)."""

    source_data_file_id: int
    rewrite_type: int = 0
    skip_if_source_exists: bool = True


Record = (
    Trace
    | AddMessage
    | RemoveMessage
    | Prepare
    | Commit
    | Rollback
    | RemoveDestination
    | Subscription
    | ProducerAudit
    | AckFileMap
    | UpdateMessage
    | AddScheduledJob
    | RescheduleJob
    | RemoveScheduledJob
    | RemoveScheduledJobs
    | DestroyScheduler
    | RewrittenDataFile
)
