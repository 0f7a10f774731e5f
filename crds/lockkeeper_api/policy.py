"""Destination policies: ActiveMQ's policyEntry, with its names and defaults."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel, DestinationKind
from lockkeeper_api.quantities import Duration, Size, durations, sizes
from lockkeeper_api.wildcards import DestinationName, NamePrefix, Wildcard

PREFETCH_MAX = 32767
"""ActiveMQ's largest prefetch."""

DeadLetterStrategy = Literal["Shared", "Individual", "Discard"]


class Prefetch(ApiModel):
    """How many messages a consumer gets ahead of its acknowledgements.

    Applied, as in ActiveMQ, to consumers that ask for their client's default; one that chose its
    own keeps it.
    """

    queue: int = Field(default=1000, ge=0, le=PREFETCH_MAX)
    """Consumers of queues; 0 lets each pull."""
    queue_browser: int = Field(default=500, ge=0, le=PREFETCH_MAX)
    """Browsers of queues."""
    topic: int = Field(default=PREFETCH_MAX, ge=0, le=PREFETCH_MAX)
    """Subscribers that are not durable."""
    durable_topic: int = Field(default=100, ge=0, le=PREFETCH_MAX)
    """Durable subscribers."""


class DeadLetters(ApiModel):
    """What becomes of messages that could not be delivered."""

    strategy: DeadLetterStrategy = "Shared"
    """Shared: all into one queue. Individual: one for each destination. Discard: dropped."""
    queue: DestinationName = "ActiveMQ.DLQ"
    """Shared: name of that queue."""
    queue_prefix: NamePrefix = "ActiveMQ.DLQ.Queue."
    """Individual: what stands before the name of a queue."""
    topic_prefix: NamePrefix = "ActiveMQ.DLQ.Topic."
    """Individual: what stands before the name of a topic."""
    use_queue_for_queue_messages: bool = True
    """Individual: a queue, not a topic, takes the dead letters of queues."""
    use_queue_for_topic_messages: bool = True
    """Individual: a queue, not a topic, takes the dead letters of topics."""
    process_expired: bool = True
    """Keep messages whose time to live ran out."""
    process_non_persistent: bool = False
    """Keep messages that were sent as non-persistent."""
    expiration: Annotated[Duration, durations("0s", "87600h")] = timedelta(0)
    """Time to live of a dead letter; 0s keeps it for ever."""
    maximum_redeliveries: int = Field(default=-1, ge=-1, le=1_000_000)
    """Redeliveries after which the broker itself gives up; -1 leaves that to the client."""


class DestinationPolicy(ApiModel):
    """How a destination behaves. A policy stands alone: nothing is added from a wider one."""

    prefetch: Prefetch = Prefetch()
    """How many messages a consumer gets ahead of its acknowledgements."""
    memory_limit: Annotated[Size, sizes("64Ki", "1Pi")] | None = None
    """Message bodies of the destination in memory; absent: only the broker's limit counts."""
    dead_letters: DeadLetters = DeadLetters()
    """What becomes of messages that could not be delivered."""
    recorded: bool = False
    """Write every persistent message to the journal, even one acknowledged before its turn."""


class DestinationMatch(ApiModel):
    """Which destinations a policy is for."""

    match: Wildcard
    """Name or wildcard: `ORDERS.EU`, `ORDERS.*` (one level), `ORDERS.>` (all below)."""
    kind: DestinationKind | None = None
    """Queue or Topic; absent: both."""


class DestinationPolicyEntry(DestinationPolicy, DestinationMatch):
    """A policy and the destinations it is for.

    Of the entries that match, the most specific decides alone: an exact name before wildcards,
    and among these the one with more literal levels; of equals the last.
    """
