"""The policy of a destination and the map that finds it, as ActiveMQ's policyEntries do."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from lockkeeper.message.destination import ANY_CHILD, ANY_DESCENDANT, Destination, path_matches

# What an ActiveMQ client asks for when nobody chose; only then does a policy choose for it.
CLIENT_QUEUE_PREFETCH = 1000
CLIENT_BROWSER_PREFETCH = 500
CLIENT_TOPIC_PREFETCH = 32767
CLIENT_DURABLE_PREFETCH = 100
UNLIMITED = -1


class DeadLetterStrategy(Enum):
    """Where messages go that could not be delivered."""

    SHARED = "Shared"
    INDIVIDUAL = "Individual"
    DISCARD = "Discard"


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """ActiveMQ's dead letter strategies, with its names and defaults.

    `maximum_redeliveries` is the broker's own limit for messages given back undelivered; -1
    leaves it to the client's redelivery policy. `expiration` is in ms, 0 for never.
    """

    strategy: DeadLetterStrategy = DeadLetterStrategy.SHARED
    queue: str = "ActiveMQ.DLQ"
    queue_prefix: str = "ActiveMQ.DLQ.Queue."
    topic_prefix: str = "ActiveMQ.DLQ.Topic."
    use_queue_for_queue_messages: bool = True
    use_queue_for_topic_messages: bool = True
    process_expired: bool = True
    process_non_persistent: bool = False
    expiration: int = 0
    maximum_redeliveries: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class DestinationPolicy:
    """What a destination does differently; `memory_limit` in bytes, 0 for the broker's."""

    queue_prefetch: int = CLIENT_QUEUE_PREFETCH
    browser_prefetch: int = CLIENT_BROWSER_PREFETCH
    topic_prefetch: int = CLIENT_TOPIC_PREFETCH
    durable_prefetch: int = CLIENT_DURABLE_PREFETCH
    memory_limit: int = 0
    recorded: bool = False
    dead_letters: DeadLetterPolicy = field(default_factory=DeadLetterPolicy)


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy for every destination that `pattern` stands for, of its kind (None: both)."""

    pattern: str
    is_queue: bool | None
    policy: DestinationPolicy


class PolicyMap:
    """Finds the policy of a destination: the most specific entry that matches."""

    def __init__(self, entries: Iterable[PolicyEntry] = ()) -> None:
        self._entries = [(tuple(entry.pattern.split(".")), entry) for entry in entries]
        self._default = DestinationPolicy()

    def find(self, destination: Destination) -> DestinationPolicy:
        """Return the policy of *destination*; of equally specific entries the last one."""
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
