"""Redelivery by the broker (ActiveMQ's redeliveryPlugin)."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations

SECOND = timedelta(seconds=1)
Delay = Annotated[Duration, durations("0s", "8760h")]


class Redelivery(ApiModel):
    """Redelivery of a queue's messages that consumers rejected.

    Set the client's own maximumRedeliveries to 0 to leave all to the broker.
    """

    maximum_redeliveries: int = Field(default=6, ge=-1, le=1_000_000)
    """Number of redeliveries after which a message is a dead letter; -1 for no limit."""
    initial_redelivery_delay: Delay = SECOND
    """Delay of the first redelivery."""
    redelivery_delay: Delay = SECOND
    """Delay of further redeliveries."""
    use_exponential_back_off: bool = False
    """Multiply the delay by `backOffMultiplier` from one redelivery to the next."""
    back_off_multiplier: float = Field(default=5.0, ge=1, le=1000)
    """Factor between one delay and the next."""
    maximum_redelivery_delay: Delay = timedelta(0)
    """Longest delay between two redeliveries; 0s for no limit."""
    use_collision_avoidance: bool = False
    """Vary the delays at random, so that messages that failed together do not return together."""
    collision_avoidance_percent: int = Field(default=15, ge=0, le=100)
    """Largest variation, in percent of the delay."""
    send_to_dlq_if_max_retries_exceeded: bool = True
    """Keep the message as a dead letter after the last redelivery; false: discard it."""
