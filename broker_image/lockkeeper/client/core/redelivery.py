"""Redelivery policy: how often and how soon a message comes again after a rollback.

The names and defaults are those of ActiveMQ's RedeliveryPolicy; times are in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockkeeper.message.destination import Destination, parse_destination, path_matches

UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """Redelivery of messages that were rolled back; delays in seconds.

    A message goes to the dead letter queue when it would come for more than
    `maximum_redeliveries` times again; -1 never sends it there. With `use_collision_avoidance`
    each delay is made longer or shorter, by up to `collision_avoidance_factor` of it, at random.
    """

    maximum_redeliveries: int = 6
    initial_redelivery_delay: float = 1.0
    redelivery_delay: float = 1.0
    use_exponential_back_off: bool = False
    back_off_multiplier: float = 5.0
    maximum_redelivery_delay: float | None = None
    use_collision_avoidance: bool = False
    collision_avoidance_factor: float = 0.15

    def is_exceeded(self, redeliveries: int) -> bool:
        """Tell whether a message must not come again for the time numbered *redeliveries*."""
        return self.maximum_redeliveries != UNLIMITED and redeliveries > self.maximum_redeliveries

    def delay(self, redeliveries: int, previous: float) -> float:
        """Return the seconds before redelivery number *redeliveries*, counted from 1.

        *previous* is the delay before the one that came before it.
        """
        if redeliveries <= 1:
            return self.initial_redelivery_delay
        if not previous or not self.use_exponential_back_off:
            return self.redelivery_delay
        delay = previous * self.back_off_multiplier
        if self.maximum_redelivery_delay is None:
            return delay
        return min(delay, self.maximum_redelivery_delay)

    def spread(self, delay: float, chance: float) -> float:
        """Return a delay that does not collide with others; *chance* is 0 up to 1."""
        if not self.use_collision_avoidance:
            return delay
        return delay * (1 + self.collision_avoidance_factor * (2 * chance - 1))


@dataclass(frozen=True, slots=True)
class RedeliveryPolicyMap:
    """Redelivery policies by destination: the most exact pattern that fits, else the default.

    Patterns are destinations with `*` for one level of the name and `>` for all below.
    """

    default: RedeliveryPolicy = RedeliveryPolicy()
    policies: Mapping[str, RedeliveryPolicy] = field(default_factory=dict)

    def policy_of(self, destination: Destination) -> RedeliveryPolicy:
        """Return the policy for messages of *destination*."""
        found = [
            (tuple(level in ("*", ">") for level in pattern.path), -len(pattern.path), text)
            for text in self.policies
            if (pattern := parse_destination(text)).is_queue == destination.is_queue
            and path_matches(pattern.path, destination.path)
        ]
        return self.policies[min(found)[2]] if found else self.default
