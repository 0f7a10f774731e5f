"""Slow consumer policy: the end of those that do not keep up (ActiveMQ's slowConsumerStrategy)."""

from dataclasses import dataclass
from enum import Enum


class SlowConsumerStrategy(Enum):
    """Sign by which a consumer counts as slow."""

    NONE = "None"
    ABORT_SLOW = "AbortSlow"
    ABORT_SLOW_ACK = "AbortSlowAck"


@dataclass(frozen=True, slots=True)
class SlowConsumerPolicy:
    """ActiveMQ's strategies, with its names and defaults.

    Times are in ms; a limit that is not positive does not count. `max_slow_count` is in checks,
    one every `check_period`.
    """

    strategy: SlowConsumerStrategy = SlowConsumerStrategy.NONE
    max_slow_count: int = -1
    max_slow_duration: int = 30_000
    check_period: int = 30_000
    abort_connection: bool = False
    max_time_since_last_ack: int = 30_000
    ignore_idle_consumers: bool = True


def is_too_slow(policy: SlowConsumerPolicy, checks: int) -> bool:
    """Tell whether a consumer is to go that *checks* checks in a row have found slow."""
    return (
        0 < policy.max_slow_duration <= checks * policy.check_period
        or 0 < policy.max_slow_count <= checks
    )
