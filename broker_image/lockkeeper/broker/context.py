"""What every region shares: the store, the memory, the clock, and the regions with work to do."""

from typing import TYPE_CHECKING, Protocol

from lockkeeper.broker.dead_letter_audit import DeadLetterAudit
from lockkeeper.broker.listener import Listener, Nobody
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.subscriptions.slow import SlowConsumers
from lockkeeper.broker.timers import Timers
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from lockkeeper.broker.advisories.advisories import Advisories
    from lockkeeper.broker.regions.residency import Residency
    from lockkeeper.broker.regions.route import Route
    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.message.message import Message


# So many deliveries fit into a millisecond before their numbers run ahead of the time.
DELIVERY_BITS = 20


class Memory:
    """Bytes of message bodies in memory, against a limit.

    From `gate` bytes on every message is asked whether it may come in: that is the limit, or 0
    while others wait before it.
    """

    __slots__ = ("gate", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = self.gate = limit
        self.used = 0


class Active(Protocol):
    """Something with work to do at the end of a tick."""

    is_active: bool

    def dispatch(self) -> None:
        """Send what can be sent."""


class Context:
    """The services of the core. `now` is in ms since the epoch, set once a tick.

    `abort` ends a consumer against its will; True as its second argument ends the connection.
    `delivery` numbers what is sent to consumers of queues, in order; its bits above
    DELIVERY_BITS are the time.
    """

    def __init__(
        self,
        store: Store,
        policies: PolicyMap,
        memory_limit: int,
        now: int,
        find_route: "Callable[[Destination], Route]",
        abort: "Callable[[Consumer, bool], None]",
    ) -> None:
        self.store = store
        self.policies = policies
        self.memory = Memory(memory_limit)
        self.now = now
        self.find_route = find_route
        self.abort = abort
        # Made by the core when what they tell of is there.
        self.advisories: Advisories
        # Whoever wants to know takes this place.
        self.listener: Listener = Nobody()
        # The scheduler's, there when a policy redelivers: a message and the ms until then.
        self.deliver_later: Callable[[Message, int], None]
        self.dead_letter_audit = DeadLetterAudit()
        self.timers = Timers()
        self.slow_consumers = SlowConsumers(self)
        self.active: list[Active] = []
        self.relievable: list[Residency] = []
        # Ids must not repeat those of an earlier broker whose messages clients still hold.
        self.sequence = now << 20
        self.delivery = now << DELIVERY_BITS

    def next_sequence(self, count: int = 1) -> int:
        """Return a new brokerSequenceId, the first of *count*."""
        first = self.sequence + 1
        self.sequence += count
        return first
