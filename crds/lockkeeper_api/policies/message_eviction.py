"""Eviction: the message that goes when too many wait (ActiveMQ's messageEvictionStrategy)."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel

MessageEvictionStrategy = Literal[
    "OldestMessage", "OldestMessageWithLowestPriority", "UniquePropertyMessage"
]


class MessageEviction(ApiModel):
    """Which message goes when more wait than pendingMessageLimit allows; expired ones go first."""

    strategy: MessageEvictionStrategy = "OldestMessage"
    """OldestMessage. OldestMessageWithLowestPriority. UniquePropertyMessage: all but the newest
    of each value of a property, and those without it."""
    property_name: str = Field(default="", max_length=256)
    """UniquePropertyMessage: name of the property."""
