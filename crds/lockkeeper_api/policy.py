"""Destination policies: ActiveMQ's policyEntry, with its names and defaults."""

from typing import Annotated

from lockkeeper_api.meta import ApiModel, DestinationKind
from lockkeeper_api.policies.advisories import Advisories
from lockkeeper_api.policies.dead_letters import DeadLetters
from lockkeeper_api.policies.dispatch import Dispatch
from lockkeeper_api.policies.expiry import Expiry
from lockkeeper_api.policies.flow import Flow
from lockkeeper_api.policies.inactivity import Inactivity
from lockkeeper_api.policies.message_eviction import MessageEviction
from lockkeeper_api.policies.message_groups import MessageGroups
from lockkeeper_api.policies.pending_message_limit import PendingMessageLimit
from lockkeeper_api.policies.prefetch import Prefetch
from lockkeeper_api.policies.redelivery import Redelivery
from lockkeeper_api.policies.slow_consumers import SlowConsumers
from lockkeeper_api.policies.subscription_recovery import SubscriptionRecovery
from lockkeeper_api.quantities import Size, sizes
from lockkeeper_api.wildcards import Wildcard


class DestinationPolicy(ApiModel):
    """How a destination behaves. A policy stands alone: nothing is added from a wider one."""

    prefetch: Prefetch = Prefetch()
    """How many messages a consumer gets ahead of its acknowledgements."""
    memory_limit: Annotated[Size, sizes("64Ki", "1Pi")] | None = None
    """Messages of the destination in memory; absent: only the broker's limit counts."""
    flow: Flow = Flow()
    """What becomes of messages, and of who sends them, when there is no room."""
    dead_letters: DeadLetters = DeadLetters()
    """What becomes of messages that could not be delivered."""
    expiry: Expiry = Expiry()
    """How messages end whose time is over while they wait."""
    redelivery: Redelivery | None = None
    """Redelivery by the broker (ActiveMQ's redeliveryPlugin), queues only; absent: none."""
    subscription_recovery: SubscriptionRecovery = SubscriptionRecovery()
    """Topics: what is kept for retroactive consumers (ActiveMQ's subscriptionRecoveryPolicy)."""
    always_retroactive: bool = False
    """Topics: every consumer that is not durable counts as retroactive."""
    pending_message_limit: PendingMessageLimit = PendingMessageLimit()
    """Topics: how many messages wait for a consumer (ActiveMQ's pendingMessageLimitStrategy)."""
    message_eviction: MessageEviction = MessageEviction()
    """Topics: which message goes when too many wait (ActiveMQ's messageEvictionStrategy)."""
    slow_consumers: SlowConsumers = SlowConsumers()
    """What becomes of consumers that do not keep up (ActiveMQ's slowConsumerStrategy)."""
    advisories: Advisories = Advisories()
    """Which advisories there are beyond those that cost messages nothing."""
    recorded: bool = False
    """Write every persistent message to the journal, even one acknowledged before its turn."""
    dispatch: Dispatch = Dispatch()
    """Which consumers of a queue get messages, and from when on."""
    message_groups: MessageGroups = MessageGroups()
    """How the owners of message groups are remembered."""
    prioritized_messages: bool = False
    """Messages of a higher JMSPriority first, in ten levels: those sent while this is set."""
    inactivity: Inactivity = Inactivity()
    """Whether it is removed when nobody uses it."""


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
