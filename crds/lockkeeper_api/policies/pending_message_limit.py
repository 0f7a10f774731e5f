"""Limit of messages for a consumer of a topic (ActiveMQ's pendingMessageLimitStrategy)."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel

PendingMessageLimitStrategy = Literal["None", "Constant", "PrefetchRate"]


class PendingMessageLimit(ApiModel):
    """How many messages wait for a consumer of a topic beyond its window; durable ones lose none.

    A consumer may ask for less (its maximumPendingMessageLimit), not for more.
    """

    strategy: PendingMessageLimitStrategy = "None"
    """None: any number. Constant: limit (constantPendingMessageLimitStrategy). PrefetchRate: a
    multiple of the consumer's window (prefetchRatePendingMessageLimitStrategy)."""
    limit: int = Field(default=-1, ge=-1, le=100_000_000)
    """Constant: messages; -1 for any number."""
    multiplier: float = Field(default=0.5, ge=0, le=1000)
    """PrefetchRate: windows of messages."""
