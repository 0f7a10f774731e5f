"""Limit of messages for a consumer of a topic (ActiveMQ's pendingMessageLimitStrategy)."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel

PendingMessageLimitStrategy = Literal["None", "Constant", "PrefetchRate"]


class PendingMessageLimit(ApiModel):
    """Limit of messages that wait for a topic's consumer beyond its window; durable ones have none.

    A consumer may ask for less (its maximumPendingMessageLimit), not for more.
    """

    strategy: PendingMessageLimitStrategy = "None"
    """None: no limit. Constant: `limit` messages (constantPendingMessageLimitStrategy).
    PrefetchRate: a multiple of the consumer's window (prefetchRatePendingMessageLimitStrategy)."""
    limit: int = Field(default=-1, ge=-1, le=100_000_000)
    """Constant: number of messages; -1 for no limit."""
    multiplier: float = Field(default=0.5, ge=0, le=1000)
    """PrefetchRate: the limit as a multiple of the consumer's prefetch window."""
