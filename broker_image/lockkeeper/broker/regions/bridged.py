"""Bridges' share of a queue: messages that are sent back, and how many are forwarded at a time.

A message is stranded that came over a bridge and that nobody takes here. It may go back to a broker
that it has left, one step nearer to a consumer: so it goes in no circle, as each step is on the
shortest way.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from lockkeeper.broker.message_properties import property_lookup
from lockkeeper.broker.policies.network_bridge_filter import NetworkBridgeFilterPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.selectors import Lookup
from lockkeeper.message.broker_path import broker_path
from lockkeeper.message.message import Message
from lockkeeper.message.stamps import arrival

if TYPE_CHECKING:
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.regions.consumer_sets import Interest
    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.broker.timers import Timer

# Longer paths are those of messages whose consumers never stay.
REPLAY_PATH_MAX: Final = 1000
# What is due one after the other is looked at together.
LOOK_MS: Final = 250


class Forwarding(Protocol):
    """A queue, as its bridges' share knows it."""

    policy: DestinationPolicy

    @property
    def context(self) -> "Context":
        """The services of the core."""

    @property
    def consumers(self) -> "Sequence[Consumer]":
        """Consumers that take messages."""

    def activate(self) -> None:
        """Have the queue dispatch at the end of this tick."""

    def sort_anew(self) -> None:
        """Have all messages judged again that were already."""


_NOTHING_ASKED: Final = NetworkBridgeFilterPolicy()


def adopted(queue: Forwarding, known: "Bridged | None") -> "Bridged | None":
    """Return what a queue's policy asks of bridges, None for nothing; *known* is it so far."""
    policy = queue.policy.network_bridge_filter
    if known is not None:
        if known.policy == policy:
            return known
        known.end()
    return None if policy == _NOTHING_ASKED else Bridged(queue, policy)


class _Spent:
    """Number of messages that a bridge was sent since `begun` (ms of `steady`)."""

    __slots__ = ("begun", "count")

    def __init__(self, begun: int) -> None:
        self.begun = begun
        self.count = 0


class Bridged:
    """Policy of a queue for its bridges, and what follows from it."""

    def __init__(self, queue: Forwarding, policy: NetworkBridgeFilterPolicy) -> None:
        self.policy = policy
        self._queue = queue
        self._look: Timer | None = None
        self._renewal: Timer | None = None
        self._spent: dict[Consumer, _Spent] = {}

    def end(self) -> None:
        """Do nothing later."""
        for timer in (self._look, self._renewal):
            if timer is not None:
                timer.cancel()
        self._look = self._renewal = None

    # Messages that are sent back

    def ways_back(
        self, interests: "Iterable[Interest]", message: Message, lookup: Lookup
    ) -> "tuple[Interest, ...]":
        """See `WaysBack`; what has not been here for long enough is judged again later."""
        takers = {id(each) for each in self._nearest(message, lookup)}
        found = tuple(
            interest
            for interest in interests
            if any(id(consumer) in takers for consumer in interest.consumers)
        )
        left = self._ms_to_stay(message) if found else 0
        if left > 0 and self._look is None:
            self._look = self._call_after(max(left, LOOK_MS), self._judge_again)
        return () if left > 0 else found

    def is_way_back(self, consumer: "Consumer", message: Message) -> bool:
        """Tell whether a message that nobody takes here may go back by a bridge's consumer now."""
        nearest = self._nearest(message, property_lookup(message))
        return consumer in nearest and self._ms_to_stay(message) <= 0

    def _nearest(self, message: Message, lookup: Lookup) -> "list[Consumer]":
        """Return the bridges' consumers by which a message would go back on a shortest way.

        None if no broker that it has left is nearest to a consumer that wants it.
        """
        path = broker_path(message.body)
        if not path or len(path) > REPLAY_PATH_MAX or self._is_served_here():
            return []
        ways = [
            (distance, consumer)
            for consumer in self._queue.consumers
            if (route := consumer.request.network) is not None
            and (distance := route.nearest(lookup)) is not None
        ]
        nearest = min((distance for distance, _ in ways), default=0)
        return [
            consumer
            for distance, consumer in ways
            if distance == nearest
            and (route := consumer.request.network) is not None
            and route.broker in path
        ]

    def _is_served_here(self) -> bool:
        """Tell whether somebody consumes here, whatever its selector refuses."""
        if not self.policy.replay_when_no_consumers:
            return True
        if self.policy.selector_aware:
            return False
        return any(each.request.network is None for each in self._queue.consumers)

    def _ms_to_stay(self, message: Message) -> int:
        """Return for how many ms a message has to stay here, 0 or less if it may go."""
        context, delay = self._queue.context, self.policy.replay_delay
        # A clock that was set back makes nobody wait for longer.
        return min(arrival(message.body) + delay - context.now, delay)

    def _judge_again(self) -> None:
        self._look = None
        self._queue.sort_anew()

    def _call_after(self, milliseconds: int, action: "Callable[[], None]") -> "Timer":
        context = self._queue.context
        return context.timers.call_at(context.steady + milliseconds, action)

    # How many at a time

    def room(self, consumer: "Consumer") -> int:
        """Return how many messages a consumer may be sent now."""
        credit, limit = consumer.credit(), self.policy.rate_limit
        if not limit or consumer.request.network is None:
            return credit
        now = self._queue.context.steady
        spent = self._spent.get(consumer)
        if spent is None or now - spent.begun >= self.policy.rate_duration:
            spent = self._spent[consumer] = _Spent(now)
        left = limit - spent.count
        if left <= 0 < credit and self._renewal is None:
            wait = spent.begun + self.policy.rate_duration - now
            self._renewal = self._call_after(wait, self._renew)
        return min(credit, left)

    def is_spent(self, consumer: "Consumer") -> bool:
        """Tell whether a consumer was sent what the limit allows, and waits."""
        spent, now = self._spent.get(consumer), self._queue.context.steady
        if not self.policy.rate_limit or spent is None:
            return False
        is_over = now - spent.begun >= self.policy.rate_duration
        return spent.count >= self.policy.rate_limit and not is_over

    def sent(self, consumer: "Consumer", count: int) -> None:
        """Note that a consumer was sent messages."""
        spent = self._spent.get(consumer)
        if spent is not None:
            spent.count += count

    def left(self, consumer: "Consumer") -> None:
        """Forget a consumer."""
        self._spent.pop(consumer, None)

    def _renew(self) -> None:
        self._renewal = None
        self._queue.activate()
