"""Treatment of consumers that do not keep up (ActiveMQ's slowConsumerStrategy)."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations

SlowConsumerStrategy = Literal["None", "AbortSlow", "AbortSlowAck"]
HALF_A_MINUTE = timedelta(seconds=30)


class SlowConsumers(ApiModel):
    """Treatment of consumers that do not keep up."""

    strategy: SlowConsumerStrategy = "None"
    """None: they stay. AbortSlow: close those whose window stays full (abortSlowConsumerStrategy).
    AbortSlowAck: close those that do not acknowledge (abortSlowAckConsumerStrategy)."""
    max_slow_count: int = Field(default=-1, ge=-1, le=1_000_000)
    """Number of successive checks that may find a consumer slow; -1 for any number."""
    max_slow_duration: Annotated[Duration, durations("0s", "24h")] = HALF_A_MINUTE
    """Time that a consumer may be slow, in whole check periods; 0s for ever."""
    check_period: Annotated[Duration, durations("10ms", "1h")] = HALF_A_MINUTE
    """Interval between two checks of consumers."""
    abort_connection: bool = False
    """Close the consumer's connection, not only the consumer."""
    max_time_since_last_ack: Annotated[Duration, durations("0s", "24h")] = HALF_A_MINUTE
    """AbortSlowAck: time without an acknowledgement after which a consumer is slow."""
    ignore_idle_consumers: bool = True
    """AbortSlowAck: spare consumers that have nothing to acknowledge."""
