"""Limit of messages for a slow consumer of a topic (ActiveMQ's pendingMessageLimitStrategy).

Only consumers that are not durable: a durable subscription loses nothing.
"""

from dataclasses import dataclass
from enum import Enum

UNLIMITED = -1


class PendingMessageLimitStrategy(Enum):
    """Source of a consumer's limit."""

    NONE = "None"
    CONSTANT = "Constant"
    PREFETCH_RATE = "PrefetchRate"


@dataclass(frozen=True, slots=True)
class PendingMessageLimitPolicy:
    """ActiveMQ's strategies, with its names and defaults.

    `limit` is in messages, `multiplier` is a multiple of the consumer's window.
    """

    strategy: PendingMessageLimitStrategy = PendingMessageLimitStrategy.NONE
    limit: int = UNLIMITED
    multiplier: float = 0.5


def pending_message_limit(policy: PendingMessageLimitPolicy, prefetch: int, wanted: int) -> int:
    """Return how many messages may wait beyond a window of *prefetch*; UNLIMITED for any number.

    *wanted* is what the consumer asked for, 0 for nothing; as in ActiveMQ, it can only lower
    the limit of a policy.
    """
    if policy.strategy is PendingMessageLimitStrategy.NONE:
        return UNLIMITED
    limit = policy.limit
    if policy.strategy is PendingMessageLimitStrategy.PREFETCH_RATE:
        limit = int(prefetch * policy.multiplier)
    if wanted > 0 and (limit < 0 or wanted < limit):
        return wanted
    return limit
