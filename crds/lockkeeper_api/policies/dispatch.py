"""Dispatch of a queue: which consumers get messages, and when (ActiveMQ's policyEntry)."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations


class Dispatch(ApiModel):
    """Which consumers of a queue get messages, and from when on."""

    use_consumer_priority: bool = True
    """Consumers of higher priority come first, while they have room."""
    strict_order_dispatch: bool = False
    """No turns: the first consumer gets all it has room for, then the second one."""
    all_consumers_exclusive_by_default: bool = False
    """One consumer at a time, as if each had asked to be exclusive."""
    consumers_before_dispatch_starts: int = Field(default=0, ge=0, le=1_000_000)
    """After the first consumer, wait for so many in all; 0 waits for none."""
    time_before_dispatch_starts: Annotated[Duration, durations("0s", "24h")] = timedelta(0)
    """After the first consumer, wait so long at most; 0s is 1s if others are waited for."""
    lazy_dispatch: bool = False
    """Read back from disk only what consumers have room for, not a page ahead."""
