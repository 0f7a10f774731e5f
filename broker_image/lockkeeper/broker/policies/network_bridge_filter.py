"""Network bridge filter policy: what bridges forward of a queue beyond fresh messages, how fast."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NetworkBridgeFilterPolicy:
    """ActiveMQ's conditionalNetworkBridgeFilterFactory, with its names and defaults.

    `replay_delay` and `rate_duration` are in ms; a `rate_limit` of 0 messages is none.
    """

    replay_when_no_consumers: bool = False
    replay_delay: int = 0
    rate_limit: int = 0
    rate_duration: int = 1_000
    selector_aware: bool = False
