"""Expiry: the end of messages whose time is over (ActiveMQ's expireMessagesPeriod)."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations


class Expiry(ApiModel):
    """The end of waiting messages after their time to live."""

    expire_messages_period: Annotated[Duration, durations("0s", "24h")] = timedelta(seconds=30)
    """Interval of the search for expired messages; 0s: only at their delivery do they expire."""
    max_expire_page_size: int = Field(default=400, ge=1, le=100_000)
    """Number of messages that one search ends, or reads back from the disk to learn their
    expiry."""
