"""Redelivery by the broker: what consumers could not process comes again later."""

from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Long, encode_map
from lockkeeper.message.rewrite import decoded, encoded, properties_of

DELAY_PROPERTY = "redeliveryDelay"
UNLIMITED = -1
COUNTED_MAX = 1 << 30
# Longer than anybody waits: what a message says of its last delay may be any number.
DELAY_MS_MAX = 1 << 40


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """ActiveMQ's redelivery plugin, with the names and defaults of its RedeliveryPolicy.

    Delays are in ms; a `maximum_redelivery_delay` of 0 is none.
    """

    maximum_redeliveries: int = 6
    initial_redelivery_delay: int = 1_000
    redelivery_delay: int = 1_000
    use_exponential_back_off: bool = False
    back_off_multiplier: float = 5.0
    maximum_redelivery_delay: int = 0
    use_collision_avoidance: bool = False
    collision_avoidance_percent: int = 15
    send_to_dlq_if_max_retries_exceeded: bool = True

    def next_delay(self, previous: int, key: bytes) -> int:
        """Return the delay after one of *previous* ms; *key* tells messages apart."""
        delay = self.redelivery_delay
        if previous > 0 and self.use_exponential_back_off and self.back_off_multiplier > 1:
            delay = int(previous * self.back_off_multiplier)
            if self.maximum_redelivery_delay:
                delay = min(delay, max(self.maximum_redelivery_delay, self.redelivery_delay))
        if self.use_collision_avoidance:
            # Not random, but as good at keeping messages that failed together apart.
            spread = (crc32(key) / 0xFFFFFFFF * 2 - 1) * self.collision_avoidance_percent / 100
            delay += int(delay * spread)
        return min(delay, DELAY_MS_MAX)


class Redelivery(NamedTuple):
    """A message that is to come again, marked as such, after `delay` ms."""

    message: Message
    delay: int


def counted(redelivery_counter: int) -> int:
    """Return how often a message came in vain by what it says: any number, if a client wrote it."""
    return min(max(0, redelivery_counter), COUNTED_MAX)


def redelivery(
    policy: RedeliveryPolicy, message: Message, redeliveries: int, sequence: int
) -> Redelivery | None:
    """Return how a message comes again after *redeliveries*; None when it was tried enough."""
    fields = decoded(message)
    # After a restart only the message itself knows.
    tried = max(redeliveries, counted(fields.redelivery_counter))
    if policy.maximum_redeliveries != UNLIMITED and tried >= policy.maximum_redeliveries:
        return None
    properties = properties_of(fields)
    previous = properties.get(DELAY_PROPERTY)
    delay = policy.initial_redelivery_delay
    if tried > 0 and isinstance(previous, int):
        delay = policy.next_delay(previous, message.key)
    fields.redelivery_counter = tried + 1
    fields.marshalled_properties = encode_map({**properties, DELAY_PROPERTY: Long(delay)})
    return Redelivery(encoded(fields, sequence), delay)
