"""The policy of a destination and the map that finds it, as ActiveMQ's policyEntries do."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lockkeeper.broker.policies.advisories import AdvisoryPolicy
from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy
from lockkeeper.broker.policies.dispatch import DispatchPolicy
from lockkeeper.broker.policies.expiry import ExpiryPolicy
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.inactivity import InactivityPolicy
from lockkeeper.broker.policies.message_eviction import MessageEvictionPolicy
from lockkeeper.broker.policies.message_groups import MessageGroupPolicy
from lockkeeper.broker.policies.network_bridge_filter import NetworkBridgeFilterPolicy
from lockkeeper.broker.policies.pending_message_limit import PendingMessageLimitPolicy
from lockkeeper.broker.policies.prefetch import PrefetchPolicy
from lockkeeper.broker.policies.redelivery import RedeliveryPolicy
from lockkeeper.broker.policies.slow_consumers import SlowConsumerPolicy
from lockkeeper.broker.policies.subscription_recovery import SubscriptionRecoveryPolicy
from lockkeeper.message.destination import ANY_CHILD, ANY_DESCENDANT, Destination, path_matches


@dataclass(frozen=True, slots=True)
class DestinationPolicy:
    """Policies of a destination: one field for each, named as in the resource.

    `memory_limit` is in bytes, 0 for the broker's.
    """

    prefetch: PrefetchPolicy = field(default_factory=PrefetchPolicy)
    memory_limit: int = 0
    flow: FlowPolicy = field(default_factory=FlowPolicy)
    dead_letters: DeadLetterPolicy = field(default_factory=DeadLetterPolicy)
    expiry: ExpiryPolicy = field(default_factory=ExpiryPolicy)
    redelivery: RedeliveryPolicy | None = None
    subscription_recovery: SubscriptionRecoveryPolicy = field(
        default_factory=SubscriptionRecoveryPolicy
    )
    always_retroactive: bool = False
    pending_message_limit: PendingMessageLimitPolicy = field(
        default_factory=PendingMessageLimitPolicy
    )
    message_eviction: MessageEvictionPolicy = field(default_factory=MessageEvictionPolicy)
    slow_consumers: SlowConsumerPolicy = field(default_factory=SlowConsumerPolicy)
    advisories: AdvisoryPolicy = field(default_factory=AdvisoryPolicy)
    recorded: bool = False
    dispatch: DispatchPolicy = field(default_factory=DispatchPolicy)
    message_groups: MessageGroupPolicy = field(default_factory=MessageGroupPolicy)
    prioritized_messages: bool = False
    inactivity: InactivityPolicy = field(default_factory=InactivityPolicy)
    network_bridge_filter: NetworkBridgeFilterPolicy = field(
        default_factory=NetworkBridgeFilterPolicy
    )


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy for every destination that `pattern` stands for, of its kind (None: both)."""

    pattern: str
    is_queue: bool | None
    policy: DestinationPolicy


class PolicyMap:
    """Finds the policy of a destination: the most specific entry that matches.

    Destinations in `own` have policies that no entry changes.
    """

    def __init__(self, entries: Iterable[PolicyEntry] = ()) -> None:
        self._entries = [(tuple(entry.pattern.split(".")), entry) for entry in entries]
        self._default = DestinationPolicy()
        self.own: dict[Destination, DestinationPolicy] = {}

    def any_redelivers(self) -> bool:
        """Tell whether a policy asks the broker to redeliver."""
        return any(entry.policy.redelivery is not None for _, entry in self._entries)

    def find(self, destination: Destination) -> DestinationPolicy:
        """Return the policy of *destination*; of equally specific entries the last one."""
        if destination in self.own:
            return self.own[destination]
        path = destination.path
        best, found = (-1, -1), self._default
        for pattern, entry in self._entries:
            fits = entry.is_queue is None or entry.is_queue == destination.is_queue
            if fits and path_matches(pattern, path) and _specificity(pattern) >= best:
                best, found = _specificity(pattern), entry.policy
        return found


def _specificity(pattern: tuple[str, ...]) -> tuple[int, int]:
    """Return a rank: an exact name first, then by literal levels, then by length."""
    literals = sum(level not in (ANY_CHILD, ANY_DESCENDANT) for level in pattern)
    return (literals, len(pattern) - (pattern[-1] == ANY_DESCENDANT))
