"""Messages that a topic keeps for consumers to come (ActiveMQ's subscriptionRecoveryPolicy)."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from lockkeeper.message.message import Message
from lockkeeper.store.base import Reference

# How long at least between two looks for what has been kept long enough, in ms (ActiveMQ's).
_SWEEP_MS_MIN = 1000


class RecoveryStrategy(Enum):
    """Choice of a topic's messages to keep."""

    NO_SUBSCRIPTION = "NoSubscription"
    FIXED_COUNT = "FixedCount"
    FIXED_SIZED = "FixedSized"
    TIMED = "Timed"
    LAST_IMAGE = "LastImage"


@dataclass(frozen=True, slots=True)
class SubscriptionRecoveryPolicy:
    """ActiveMQ's subscription recovery policies, with its defaults.

    `maximum_count` is in messages, `maximum_size` in bytes of message bodies,
    `recover_duration` in ms.
    """

    strategy: RecoveryStrategy = RecoveryStrategy.NO_SUBSCRIPTION
    maximum_count: int = 100
    maximum_size: int = 64 << 10
    recover_duration: int = 60_000


class Kept(NamedTuple):
    """A message that is kept since *since* (ms of `Context.steady`), in a reference of its own."""

    since: int
    reference: Reference


class KeptMessages:
    """The messages that a topic keeps, oldest first; `size` is in bytes of their bodies.

    What *steady* is in: ms of `Context.steady`.
    """

    __slots__ = ("_policy", "entries", "size")

    def __init__(self, policy: SubscriptionRecoveryPolicy) -> None:
        self._policy = policy
        self.entries: deque[Kept] = deque()
        self.size = 0

    def adopt(self, policy: SubscriptionRecoveryPolicy) -> None:
        """Keep by another policy from now on."""
        self._policy = policy

    def add(self, references: Sequence[Reference], steady: int) -> list[Reference]:
        """Keep messages that were sent at *steady* or just before; returns the new references."""
        added = []
        for reference in references:
            copy = Reference(reference.loaded, len(reference.loaded.body))
            # Its body stays in memory, as if a consumer had it.
            copy.held = 1
            self.entries.append(Kept(steady, copy))
            self.size += copy.size
            added.append(copy)
        return added

    def trim(self, steady: int) -> list[Reference]:
        """Forget what the policy keeps no longer; returns those references."""
        forgotten = []
        while self.entries and self._is_too_much(steady):
            forgotten.append(self.forget_oldest())
        return forgotten

    def forget_oldest(self) -> Reference:
        """Forget the oldest message, and return its reference."""
        reference = self.entries.popleft().reference
        self.size -= reference.size
        return reference

    def _is_too_much(self, steady: int) -> bool:
        policy = self._policy
        if policy.strategy is RecoveryStrategy.FIXED_COUNT:
            return len(self.entries) > policy.maximum_count
        if policy.strategy is RecoveryStrategy.FIXED_SIZED:
            return self.size > policy.maximum_size
        if policy.strategy is RecoveryStrategy.TIMED:
            return steady - self.entries[0].since > policy.recover_duration
        return len(self.entries) > 1

    def next_sweep(self, steady: int) -> int | None:
        """Return when `trim` must be called although nothing is sent; None for never."""
        if self._policy.strategy is not RecoveryStrategy.TIMED or not self.entries:
            return None
        due = self.entries[0].since + self._policy.recover_duration + 1
        return max(due, steady + _SWEEP_MS_MIN)

    def messages(self, now: int) -> list[Message]:
        """Return what a new consumer is due at *now* (ms since the epoch), oldest first.

        Nothing that has expired."""
        kept = (entry.reference.loaded for entry in self.entries)
        return [message for message in kept if not 0 < message.expiration < now]


def kept_messages(policy: SubscriptionRecoveryPolicy) -> KeptMessages | None:
    """Return where a topic with this policy keeps messages; None if it keeps none."""
    if policy.strategy is RecoveryStrategy.NO_SUBSCRIPTION:
        return None
    return KeptMessages(policy)
