"""Removal of destinations that nobody uses (ActiveMQ's gcInactiveDestinations)."""

from datetime import timedelta
from typing import Annotated

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations


class Inactivity(ApiModel):
    """Removal of a destination that nobody uses.

    That is one without messages, consumers, producers, durable subscriptions and transactions; a
    Destination resource's own is never removed. The Broker says how often it looks for them
    (schedulePeriodForDestinationPurge).
    """

    gc_inactive_destinations: bool = False
    """Remove the destination when it is inactive."""
    inactive_timeout_before_gc: Annotated[Duration, durations("1ms", "87600h")] = timedelta(
        minutes=1
    )
    """Time without use after which it is inactive (ActiveMQ's inactiveTimeoutBeforeGC)."""
