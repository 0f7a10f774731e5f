"""Dead letters: which messages are kept after all, where, and with which marks."""

from dataclasses import dataclass
from enum import Enum

from lockkeeper.broker.scheduling.job import JOB_ID
from lockkeeper.broker.scheduling.schedule import MARK, PROPERTIES
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import MessageId
from lockkeeper.message.message import Message, UnreadableMessage
from lockkeeper.message.patching import properties_in
from lockkeeper.message.primitives import Long, Value
from lockkeeper.message.rewrite import rewritten
from lockkeeper.message.text import decode_text

CAUSE_PROPERTY = "dlqDeliveryFailureCause"
EXPIRATION_PROPERTY = "originalExpiration"
UNLIMITED = -1


class DeadLetterStrategy(Enum):
    """Place of messages that could not be delivered."""

    SHARED = "Shared"
    INDIVIDUAL = "Individual"
    DISCARD = "Discard"


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """ActiveMQ's dead letter strategies, with its names and defaults.

    `maximum_redeliveries` is the broker's own limit for messages given back undelivered; -1
    leaves it to the client's redelivery policy. `expiration` is in ms, 0 for never. The audit is
    what `DeadLetterAudit` does.
    """

    strategy: DeadLetterStrategy = DeadLetterStrategy.SHARED
    queue: str = "ActiveMQ.DLQ"
    queue_prefix: str = "ActiveMQ.DLQ.Queue."
    queue_suffix: str = ""
    topic_prefix: str = "ActiveMQ.DLQ.Topic."
    topic_suffix: str = ""
    use_queue_for_queue_messages: bool = True
    use_queue_for_topic_messages: bool = True
    destination_per_durable_subscriber: bool = False
    process_expired: bool = True
    process_non_persistent: bool = False
    expiration: int = 0
    enable_audit: bool = True
    max_producers_to_audit: int = 64
    max_audit_depth: int = 2_048
    maximum_redeliveries: int = UNLIMITED


def dead_letter_destination(
    policy: DeadLetterPolicy,
    origin: Destination,
    message: Message,
    expired: bool,
    subscription_key: str | None = None,
) -> Destination | None:
    """Return where a message of *origin* goes that could not be delivered; None: nowhere.

    *subscription_key* is that of the durable subscription, if it is one that failed.
    """
    if policy.strategy is DeadLetterStrategy.DISCARD:
        return None
    if expired and not policy.process_expired:
        return None
    if not message.persistent and not policy.process_non_persistent:
        return None
    if policy.strategy is DeadLetterStrategy.SHARED:
        target = queue(policy.queue)
    else:
        target = _individual(policy, origin, subscription_key)
    # A dead letter that dies again would otherwise follow itself for ever.
    return None if target == origin else target


def is_dead_letter_queue_of(
    policy: DeadLetterPolicy, origin: Destination, here: Destination
) -> bool:
    """Tell whether dead letters of *origin* come *here*."""
    if policy.strategy is DeadLetterStrategy.DISCARD:
        return False
    if policy.strategy is DeadLetterStrategy.SHARED:
        return here == queue(policy.queue)
    target = _individual(policy, origin, None)
    if here == target:
        return True
    prefix = f"{policy.topic_prefix}{origin.name}."
    return (
        policy.destination_per_durable_subscriber
        and origin.is_topic
        and here.is_queue == target.is_queue
        and here.name.startswith(prefix)
    )


def _individual(
    policy: DeadLetterPolicy, origin: Destination, subscription_key: str | None
) -> Destination:
    if origin.is_queue:
        make = queue if policy.use_queue_for_queue_messages else topic
        return make(policy.queue_prefix + origin.name + policy.queue_suffix)
    make = queue if policy.use_queue_for_topic_messages else topic
    name = policy.topic_prefix + origin.name
    if policy.destination_per_durable_subscriber and subscription_key is not None:
        name += f".{subscription_key}"
    return make(name + policy.topic_suffix)


def dead_letter(
    message: Message,
    target: Destination,
    cause: str,
    message_id: MessageId,
    expiration: int,
) -> Message:
    """Return *message* as it enters *target*: its origin kept, its cause and expiry noted.

    *message_id* is its own: copies of one message may all die. *expiration* is the time of its
    new expiry in ms since the epoch, 0 for never. The message keeps its schedule, which no broker
    heeds before the letter is sent back: Lockkeeper goes by the cause, ActiveMQ by the id of a job.
    """
    properties: dict[str, Value] = {CAUSE_PROPERTY: cause, **_job_id(message)}
    if message.expiration and not isinstance(message, UnreadableMessage):
        properties[EXPIRATION_PROPERTY] = Long(message.expiration)
    return rewritten(message, target, message_id, properties, expiration)


def _job_id(message: Message) -> dict[str, Value]:
    """Return an id of a job, as a property, for a message with a schedule that is none so far."""
    if MARK not in message.body:
        return {}
    try:
        properties = properties_in(message)
    except MalformedMessageError:
        return {}
    if JOB_ID in properties or properties.keys().isdisjoint(PROPERTIES):
        return {}
    return {JOB_ID: decode_text(message.key)}
