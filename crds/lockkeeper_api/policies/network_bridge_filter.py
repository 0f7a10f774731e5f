"""Forwarding of a queue over bridges (ActiveMQ's conditionalNetworkBridgeFilterFactory)."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations


class NetworkBridgeFilter(ApiModel):
    """The messages that bridges may send back, and how many a bridge forwards at a time."""

    replay_when_no_consumers: bool = False
    """Send messages back to a broker that they have left, if a consumer waits there and none
    here."""
    replay_delay: Annotated[Duration, durations("0s", "24h")] = timedelta()
    """Time that a message stays here before it is sent back."""
    rate_limit: int = Field(default=0, ge=0, le=1_000_000)
    """Number of messages that a bridge forwards in each `rateDuration`; 0 for any number."""
    rate_duration: Annotated[Duration, durations("10ms", "1h")] = timedelta(seconds=1)
    """Time that `rateLimit` is counted for."""
    selector_aware: bool = False
    """Send back what the selectors of all consumers here refuse, too."""
