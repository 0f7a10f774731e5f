"""Shared services of the regions: the store, the memory, the clock, the regions with work to do."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final, Protocol, cast

from lockkeeper.broker.containment import Containment, retry_delay
from lockkeeper.broker.copy_ids import CopyIds
from lockkeeper.broker.dead_letter_audit import DeadLetterAudit
from lockkeeper.broker.events import ClientEvents, ClientListener, Heard, MessageListener
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.routing.rule import Region
from lockkeeper.broker.shield import Shield
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.slow import SlowConsumers
from lockkeeper.broker.timers import Timers
from lockkeeper.broker.transactions import SentRun
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.ids import MessageId
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference, Store

# What a message counts for in memory beside its bytes (ActiveMQ's DEFAULT_MINIMUM_MESSAGE_SIZE): it
# and its place in a queue weigh about half of that, which makes up for what keeps count of them.
MESSAGE_BYTES: Final = 1024
# So many deliveries fit into a millisecond before their numbers run ahead of the time.
DELIVERY_BITS: Final = 20
# What is dispatched in one tick is in memory a second time until sockets take it.
TICK_BYTES_MAX: Final = 8 << 20
# So much of it is for one backlog.
SHARE_BYTES_MAX: Final = 1 << 20
# So much is offered to the subscriptions of topics at once, many of them at a time.
OFFERED_BYTES_MAX: Final = 32 << 20
# Looking at a message takes as long as sending so many bytes, ending one that has expired as long
# as sending so many: where nothing is sent, a tick has an end all the same.
LOOK_BYTES = 4 << 10
END_BYTES: Final = 16 << 10
# Consumers that hold messages get more of them until so much is in memory beyond the limit: those
# that hold none get some even then.
HELD_BYTES_MAX: Final = 8 << 20


_NOWHERE = queue("")


class Memory:
    """Bytes of messages in memory, against a limit; `partial` of frames not yet whole.

    From `gate` bytes on every message is asked whether it may come in: that is the limit, or 0
    while others wait before it.
    """

    __slots__ = ("gate", "limit", "partial", "used")

    def __init__(self, limit: int) -> None:
        self.limit = self.gate = limit
        self.used = self.partial = 0

    def count_partial(self, size: int) -> None:
        """Count *size* more bytes of frames that are not whole yet, or less of them."""
        self.partial += size
        self.used += size


class Active(Protocol):
    """Something with work to do at the end of a tick."""

    is_active: bool
    destination: Destination

    def dispatch(self) -> None:
        """Send what can be sent."""


class Relievable(Protocol):
    """Something with bodies in memory that may leave it; see `BodyCache`."""

    destination: Destination

    def relieve(self) -> bool:
        """Let bodies leave while memory is tight; return whether some may leave later."""

    def skip(self) -> bool:
        """Leave the next body where it is: that failed. Return as `relieve` does."""


class Context:
    """The services of the core; what time it is is set once a tick.

    `now` is for messages and people: ms since the epoch, by a clock that may be set. `steady` is
    for how long something takes: ms that only pass, counted on from when the broker was made.
    `timers` go by `steady`, `calendar` by `now`.
    `delivery` numbers what is sent to consumers of queues, in order; its bits above
    DELIVERY_BITS are the time, as of `numbered_at`. `unsent` counts the bytes of messages that
    this tick has sent to consumers, and what takes as long (LOOK_BYTES, END_BYTES): beyond
    TICK_BYTES_MAX the rest is `postponed` to the next one.
    What is `starved` waits until consumers may hold more of it. `roused` are consumers of several
    destinations that have asked all of them to send since the last dispatch: once is enough.
    `arriving` are the broker's own messages that are being written, by receipt.
    """

    def __init__(
        self,
        store: Store,
        broker_id: str,
        policies: PolicyMap,
        memory_limit: int,
        now: int,
        find_route: Callable[[Destination], Region],
    ) -> None:
        self.store = store
        self.policies = policies
        self.memory = Memory(memory_limit)
        self.now = self.steady = now
        self.find_route = find_route
        # Made by the core when what they tell of is there.
        self.advisories: MessageListener
        # The scheduler's, there when a policy redelivers: a message and the ms until then.
        self.deliver_later: Callable[[Message, int], None]
        self.copy_ids = CopyIds(broker_id)
        self.dead_letter_audit = DeadLetterAudit()
        self.containment = Containment(lambda: self.now)
        self._listeners = ClientEvents(self.containment)
        self.events: ClientListener = cast("Any", Shield(self.containment, self._listeners))
        self.timers = Timers(self.containment)
        self.calendar = Timers(self.containment)
        self._failures: dict[Active, tuple[int, int]] = {}
        self.slow_consumers = SlowConsumers(self.timers, lambda: self.steady)
        self.active: list[Active] = []
        self.relievable: list[Relievable] = []
        self.postponed: list[Active] = []
        self.starved: list[Active] = []
        self.roused: set[Consumer] = set()
        self.arriving: dict[object, SentRun] = {}
        self.unsent = 0
        # Ids must not repeat those of an earlier broker whose messages clients still hold.
        self.sequences = count((now << 20) + 1)
        self.delivery, self.numbered_at = now << DELIVERY_BITS, now

    def listen(self, listener: Heard) -> Heard:
        """Have *listener* told of all clients; returns it with methods that raise nothing."""
        return self._listeners.add(listener)

    def spend_on_timer(self) -> bool:
        """Count one thing that was due; tell whether this tick has done enough of them."""
        self.unsent += END_BYTES
        return self.unsent > TICK_BYTES_MAX

    def dispatch(self, active: list[Active]) -> None:
        """Have all of *active*, and what that makes active, send what it can, within a tick."""
        self.unsent = 0
        if self.roused:
            self.roused.clear()
        unreached: list[Active] = []
        while active:
            self.active = []
            for backlog in active:
                if self.unsent > TICK_BYTES_MAX:
                    unreached.append(backlog)
                    continue
                backlog.is_active = False
                try:
                    backlog.dispatch()
                except Exception as error:
                    self.set_aside(backlog, error)
            active = self.active
        if unreached:
            self.postponed = unreached + self.postponed

    def set_aside(self, active: Active, error: Exception) -> None:
        """Let something whose dispatch failed rest for a while, whoever asks for it meanwhile."""
        self.containment.note_error("backlog", active.destination, error)
        failures, until = self._failures.get(active, (0, 0))
        failures = failures + 1 if self.steady <= until else 1
        delay = retry_delay(failures)
        self._failures[active] = (failures, self.steady + 3 * delay)
        # Neither is it in the list of the active ones, nor will it enter itself.
        active.is_active = True
        self.timers.call_at(self.steady + delay, partial(self._bring_back, active))

    def call_soon(self, action: Callable[[], None]) -> None:
        """Have *action* called by the next tick, or by a later one as long as it fails."""
        self.timers.call_at(self.steady, action)

    def relieve(self) -> None:
        """Let bodies leave the memory that may."""
        kept = []
        for entry in self.relievable:
            try:
                if entry.relieve():
                    kept.append(entry)
            except Exception as error:
                self.containment.note_error("memory", entry.destination, error)
                if entry.skip():
                    kept.append(entry)
        self.relievable = kept

    def resting(self, active: Active) -> bool:
        """Tell whether something rests because its dispatch failed."""
        return active.is_active and active in self._failures and active not in self.active

    def _bring_back(self, active: Active) -> None:
        for each, (_, until) in list(self._failures.items()):
            if until < self.steady:
                del self._failures[each]
        active.is_active = True
        self.active.append(active)

    def copy_id(self, message: Message) -> MessageId:
        """Return an id for a copy of *message*, with a brokerSequenceId."""
        return self.copy_ids.next_for(message, self.next_sequence())

    def settle_behind(self, receipt: Receipt) -> None:
        """Settle when everything handed to the store so far is durable."""
        self.store.remove(_NOWHERE, Reference(None, 0), receipt)

    def postpone(self, backlog: Active) -> None:
        """Go on with a backlog in the next tick, after everybody else."""
        if not backlog.is_active:
            backlog.is_active = True
            self.postponed.append(backlog)

    def has_room(self) -> bool:
        """Tell whether consumers that hold messages may get more of them."""
        return self.memory.used < self.memory.limit + HELD_BYTES_MAX

    def starve(self, backlog: Active) -> None:
        """Go on with a backlog when there is room."""
        if backlog not in self.starved:
            self.starved.append(backlog)

    def feed(self) -> None:
        """Go on with what waited for memory."""
        starved, self.starved = self.starved, []
        for backlog in starved:
            self.postpone(backlog)

    def next_sequence(self, size: int = 1) -> int:
        """Return a new brokerSequenceId, the first of *size* in a row."""
        first = next(self.sequences)
        for _ in range(1, size):
            next(self.sequences)
        return first
