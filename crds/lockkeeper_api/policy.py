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
from lockkeeper_api.policies.network_bridge_filter import NetworkBridgeFilter
from lockkeeper_api.policies.pending_message_limit import PendingMessageLimit
from lockkeeper_api.policies.prefetch import Prefetch
from lockkeeper_api.policies.redelivery import Redelivery
from lockkeeper_api.policies.slow_consumers import SlowConsumers
from lockkeeper_api.policies.subscription_recovery import SubscriptionRecovery
from lockkeeper_api.quantities import Size, sizes
from lockkeeper_api.wildcards import Wildcard


class DestinationPolicy(ApiModel):
    """The behaviour of a destination. A policy stands alone: it inherits nothing from a wider
    one."""

    prefetch: Prefetch = Prefetch()
    """Prefetch: messages that a consumer gets ahead of its acknowledgements."""
    memory_limit: Annotated[Size, sizes("64Ki", "1Pi")] | None = None
    """Messages of the destination in memory; absent: only the broker's limit counts."""
    flow: Flow = Flow()
    """Flow control: treatment of messages and producers when memory or disk is used up."""
    dead_letters: DeadLetters = DeadLetters()
    """Treatment of messages that could not be delivered (ActiveMQ's deadLetterStrategy)."""
    expiry: Expiry = Expiry()
    """Expiry: the end of waiting messages after their time to live."""
    redelivery: Redelivery | None = None
    """Redelivery by the broker (ActiveMQ's redeliveryPlugin), queues only; absent: none."""
    subscription_recovery: SubscriptionRecovery = SubscriptionRecovery()
    """Topics: messages kept for retroactive consumers (ActiveMQ's subscriptionRecoveryPolicy)."""
    always_retroactive: bool = False
    """Topics: every consumer that is not durable counts as retroactive."""
    pending_message_limit: PendingMessageLimit = PendingMessageLimit()
    """Topics: limit of messages that wait for a consumer (ActiveMQ's
    pendingMessageLimitStrategy)."""
    message_eviction: MessageEviction = MessageEviction()
    """Topics: choice of the message to discard at that limit (ActiveMQ's
    messageEvictionStrategy)."""
    slow_consumers: SlowConsumers = SlowConsumers()
    """Treatment of consumers that do not keep up (ActiveMQ's slowConsumerStrategy)."""
    advisories: Advisories = Advisories()
    """Advisories that are off by default, since they cost work for each message."""
    recorded: bool = False
    """Write every persistent message to the journal, even one acknowledged before its turn."""
    dispatch: Dispatch = Dispatch()
    """Dispatch: the order of a queue's consumers, and the start of delivery."""
    message_groups: MessageGroups = MessageGroups()
    """Message groups: the memory of which consumer owns which group."""
    prioritized_messages: bool = False
    """Deliver messages of a higher JMSPriority first, in ten levels; only those sent while this is
    set."""
    inactivity: Inactivity = Inactivity()
    """Removal of the destination when it is inactive."""
    network_bridge_filter: NetworkBridgeFilter = NetworkBridgeFilter()
    """Queues: messages that bridges send back, and how many they forward at a time (ActiveMQ's
    networkBridgeFilterFactory)."""


class DestinationMatch(ApiModel):
    """The destinations that a policy is for."""

    match: Wildcard
    """Name or wildcard: `ORDERS.EU`, `ORDERS.*` (one level), `ORDERS.>` (all below)."""
    kind: DestinationKind | None = None
    """Queue or Topic; absent: both."""


class DestinationPolicyEntry(DestinationPolicy, DestinationMatch):
    """A policy and the destinations it is for.

    Of the entries that match, the most specific decides alone: an exact name before wildcards,
    and among these the one with more literal levels; of equals the last.
    """
