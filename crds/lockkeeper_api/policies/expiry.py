"""Expiry: the end of messages whose time is over (ActiveMQ's expireMessagesPeriod)."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations


class Expiry(ApiModel):
    """How messages end whose time is over while they wait."""

    expire_messages_period: Annotated[Duration, durations("0s", "24h")] = timedelta(seconds=30)
    """How often to look for them; 0s never: only what is about to be delivered is looked at."""
    max_expire_page_size: int = Field(default=400, ge=1, le=100_000)
    """How many end, or are read back from the disk to learn their time, in one go."""
