"""Dispatch policy: the consumers of a queue that take part, in which order, and from when on."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer

PRIORITY_MAX = 127
# How long the first consumer waits for the others at most when the policy names no time, in ms.
START_PATIENCE = 1000


@dataclass(frozen=True, slots=True)
class DispatchPolicy:
    """ActiveMQ's settings of the same names; `time_before_dispatch_starts` is in ms."""

    use_consumer_priority: bool = True
    strict_order_dispatch: bool = False
    all_consumers_exclusive_by_default: bool = False
    consumers_before_dispatch_starts: int = 0
    time_before_dispatch_starts: int = 0
    lazy_dispatch: bool = False

    def rank(self, consumer: "Consumer") -> int:
        """Return a consumer's priority as far as it counts here; the highest comes first."""
        return consumer.request.priority if self.use_consumer_priority else 0

    def start_delay(self) -> int:
        """Return how long dispatch waits after the first consumer at most, in ms."""
        if self.time_before_dispatch_starts:
            return self.time_before_dispatch_starts
        return START_PATIENCE if self.consumers_before_dispatch_starts else 0

    def wants_exclusivity(self, consumer: "Consumer") -> bool:
        """Tell whether a consumer would have the queue for itself."""
        return consumer.request.exclusive or self.all_consumers_exclusive_by_default

    def takes_over(self, consumer: "Consumer", owner: "Consumer | None") -> bool:
        """Tell whether a consumer that comes now has the queue for itself from now on."""
        if not self.wants_exclusivity(consumer):
            return False
        priority = consumer.request.priority
        # ActiveMQ's way to take a queue over on purpose: the highest priority of all.
        return owner is None or priority > owner.request.priority or priority == PRIORITY_MAX

    def successor(self, consumers: "Iterable[Consumer]") -> "Consumer | None":
        """Return who has the queue for itself when the one that had it has left."""
        willing = [consumer for consumer in consumers if self.wants_exclusivity(consumer)]
        return max(willing, key=_priority_of, default=None)


def _priority_of(consumer: "Consumer") -> int:
    return consumer.request.priority
