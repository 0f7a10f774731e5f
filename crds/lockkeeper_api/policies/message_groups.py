"""Ownership of message groups (ActiveMQ's messageGroupMapFactory)."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel

MessageGroupMap = Literal["Cached", "Simple", "HashBucket"]


class MessageGroups(ApiModel):
    """How the owners of message groups (JMSXGroupID) are remembered."""

    map: MessageGroupMap = "Cached"
    """Cached: of the groups used last. Simple: of all. HashBucket: of buckets of groups."""
    cache_size: int = Field(default=1024, ge=1, le=10_000_000)
    """Cached: for how many groups."""
    bucket_count: int = Field(default=1024, ge=1, le=10_000_000)
    """HashBucket: how many buckets; groups in the same one have the same owner."""
