"""Dead letters: the end of messages that could not be delivered (ActiveMQ's deadLetterStrategy)."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations
from lockkeeper_api.wildcards import DestinationName, NamePrefix, NameSuffix

DeadLetterStrategy = Literal["Shared", "Individual", "Discard"]


class DeadLetters(ApiModel):
    """Treatment of messages that could not be delivered."""

    strategy: DeadLetterStrategy = "Shared"
    """Shared: one queue for all. Individual: one queue for each destination. Discard: none is
    kept."""
    queue: DestinationName = "ActiveMQ.DLQ"
    """Shared: name of the dead letter queue."""
    queue_prefix: NamePrefix = "ActiveMQ.DLQ.Queue."
    """Individual: text before the name of a queue."""
    queue_suffix: NameSuffix = ""
    """Individual: text behind the name of a queue."""
    topic_prefix: NamePrefix = "ActiveMQ.DLQ.Topic."
    """Individual: text before the name of a topic."""
    topic_suffix: NameSuffix = ""
    """Individual: text behind the name of a topic."""
    use_queue_for_queue_messages: bool = True
    """Individual: a queue, not a topic, takes the dead letters of queues."""
    use_queue_for_topic_messages: bool = True
    """Individual: a queue, not a topic, takes the dead letters of topics."""
    destination_per_durable_subscriber: bool = False
    """Individual: one for each durable subscriber; `.CLIENT-ID:NAME` follows the topic's name."""
    process_expired: bool = True
    """Keep messages whose time to live ran out."""
    process_non_persistent: bool = False
    """Keep messages that were sent as non-persistent."""
    expiration: Annotated[Duration, durations("0s", "87600h")] = timedelta(0)
    """Time to live of a dead letter; 0s keeps it for ever."""
    enable_audit: bool = True
    """Keep one dead letter of a message, even when several subscribers fail to process it."""
    max_producers_to_audit: int = Field(default=64, ge=1, le=1_000_000)
    """Number of producers whose dead letters enableAudit remembers."""
    max_audit_depth: int = Field(default=2048, ge=1, le=1_000_000)
    """Number of dead letters that enableAudit remembers for each producer."""
    maximum_redeliveries: int = Field(default=-1, ge=-1, le=1_000_000)
    """Redeliveries after which the broker itself gives up; -1 leaves that to the client."""
