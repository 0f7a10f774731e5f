"""Treatment of consumers that do not keep up (ActiveMQ's slowConsumerStrategy)."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations

SlowConsumerStrategy = Literal["None", "AbortSlow", "AbortSlowAck"]
HALF_A_MINUTE = timedelta(seconds=30)


class SlowConsumers(ApiModel):
    """What becomes of consumers that do not keep up."""

    strategy: SlowConsumerStrategy = "None"
    """None: they stay. AbortSlow: those whose window is full and does not move are closed
    (abortSlowConsumerStrategy). AbortSlowAck: those that do not acknowledge
    (abortSlowAckConsumerStrategy)."""
    max_slow_count: int = Field(default=-1, ge=-1, le=1_000_000)
    """Checks in a row that may find a consumer slow; -1 for any number."""
    max_slow_duration: Annotated[Duration, durations("0s", "24h")] = HALF_A_MINUTE
    """How long a consumer may be slow, in whole check periods; 0s for ever."""
    check_period: Annotated[Duration, durations("10ms", "1h")] = HALF_A_MINUTE
    """How often consumers are looked at."""
    abort_connection: bool = False
    """End the consumer's connection, not the consumer alone."""
    max_time_since_last_ack: Annotated[Duration, durations("0s", "24h")] = HALF_A_MINUTE
    """AbortSlowAck: without an acknowledgement for so long a consumer is slow."""
    ignore_idle_consumers: bool = True
    """AbortSlowAck: spare consumers that have nothing to acknowledge."""
