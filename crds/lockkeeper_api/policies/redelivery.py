"""Redelivery by the broker (ActiveMQ's redeliveryPlugin)."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations

SECOND = timedelta(seconds=1)
Delay = Annotated[Duration, durations("0s", "8760h")]


class Redelivery(ApiModel):
    """How messages of queues come again that consumers gave up on.

    Set the client's own maximumRedeliveries to 0 to leave all to the broker.
    """

    maximum_redeliveries: int = Field(default=6, ge=-1, le=1_000_000)
    """Redeliveries by the broker after which a message is a dead letter; -1 for no limit."""
    initial_redelivery_delay: Delay = SECOND
    """Time before the first redelivery."""
    redelivery_delay: Delay = SECOND
    """Time before further ones."""
    use_exponential_back_off: bool = False
    """Multiply the time by `backOffMultiplier` from one to the next."""
    back_off_multiplier: float = Field(default=5.0, ge=1, le=1000)
    """What it is multiplied by."""
    maximum_redelivery_delay: Delay = timedelta(0)
    """Longest time that comes of it; 0s for no limit."""
    use_collision_avoidance: bool = False
    """Spread redeliveries, so that what failed together does not come again together."""
    collision_avoidance_percent: int = Field(default=15, ge=0, le=100)
    """How far they are spread, in percent of the time."""
    send_to_dlq_if_max_retries_exceeded: bool = True
    """A dead letter in the end; false: gone."""
