"""Eviction: the message that goes when too many wait (ActiveMQ's messageEvictionStrategy)."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel

MessageEvictionStrategy = Literal[
    "OldestMessage", "OldestMessageWithLowestPriority", "UniquePropertyMessage"
]


class MessageEviction(ApiModel):
    """Choice of the message to discard at pendingMessageLimit; expired ones are discarded first."""

    strategy: MessageEvictionStrategy = "OldestMessage"
    """OldestMessage. OldestMessageWithLowestPriority. UniquePropertyMessage: keeps the newest
    message for each value of a property, and discards those without the property."""
    property_name: str = Field(default="", max_length=256)
    """UniquePropertyMessage: name of the property."""
