"""Redelivery policy: how often and how soon a message comes again after a rollback.

The names and defaults are those of ActiveMQ's RedeliveryPolicy; times are in seconds.
"""

from dataclasses import dataclass

UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """Redelivery of messages that were rolled back; delays in seconds.

    A message goes to the dead letter queue when it would come for more than
    `maximum_redeliveries` times again; -1 never sends it there.
    """

    maximum_redeliveries: int = 6
    initial_redelivery_delay: float = 1.0
    redelivery_delay: float = 1.0
    use_exponential_back_off: bool = False
    back_off_multiplier: float = 5.0
    maximum_redelivery_delay: float | None = None

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
