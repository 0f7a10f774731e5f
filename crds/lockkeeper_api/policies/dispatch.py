"""Dispatch of a queue: which consumers get messages, and when (ActiveMQ's policyEntry)."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations


class Dispatch(ApiModel):
    """The order of a queue's consumers, and the start of delivery."""

    use_consumer_priority: bool = True
    """Consumers of higher priority come first, while they have room."""
    strict_order_dispatch: bool = False
    """Fill the prefetch window of the first consumer, then that of the second; false: take
    turns."""
    all_consumers_exclusive_by_default: bool = False
    """Deliver to one consumer at a time, as if each had asked to be exclusive."""
    consumers_before_dispatch_starts: int = Field(default=0, ge=0, le=1_000_000)
    """Number of consumers to wait for before the first delivery; 0 waits for none."""
    time_before_dispatch_starts: Annotated[Duration, durations("0s", "24h")] = timedelta(0)
    """Longest wait for those, from the first consumer on; 0s means 1s when any are waited for."""
    lazy_dispatch: bool = False
    """Read back from disk only what consumers have room for, not a page ahead."""
