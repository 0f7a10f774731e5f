"""Prefetch: messages that consumers get ahead (ActiveMQ's prefetch limits of a policyEntry)."""

from pydantic import Field

from lockkeeper_api.meta import ApiModel

PREFETCH_MAX = 32767
"""ActiveMQ's largest prefetch."""


class Prefetch(ApiModel):
    """Messages that a consumer gets ahead of its acknowledgements.

    Applied, as in ActiveMQ, to consumers that ask for their client's default; one that chose its
    own keeps it.
    """

    queue: int = Field(default=1000, ge=0, le=PREFETCH_MAX)
    """Messages for a queue's consumer; with 0 it pulls each message."""
    queue_browser: int = Field(default=500, ge=0, le=PREFETCH_MAX)
    """Messages for a queue's browser."""
    topic: int = Field(default=PREFETCH_MAX, ge=0, le=PREFETCH_MAX)
    """Messages for a topic's subscriber that is not durable."""
    durable_topic: int = Field(default=100, ge=0, le=PREFETCH_MAX)
    """Messages for a durable subscriber."""
    optimized_durable_topic: int = Field(default=1000, ge=0, le=PREFETCH_MAX)
    """Messages for a durable subscriber whose client uses optimizeAcknowledge."""
