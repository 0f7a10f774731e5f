"""Ownership of message groups (ActiveMQ's messageGroupMapFactory)."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel

MessageGroupMap = Literal["Cached", "Simple", "HashBucket"]


class MessageGroups(ApiModel):
    """The memory of which consumer owns which message group (JMSXGroupID)."""

    map: MessageGroupMap = "Cached"
    """Cached: remember the groups used last. Simple: all groups. HashBucket: buckets of groups."""
    cache_size: int = Field(default=1024, ge=1, le=10_000_000)
    """Cached: number of groups to remember."""
    bucket_count: int = Field(default=1024, ge=1, le=10_000_000)
    """HashBucket: number of buckets; groups in the same bucket have the same owner."""
