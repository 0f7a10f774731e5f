"""Queues: each message goes to one consumer, in turn."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lockkeeper.broker.context import Context
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.lanes import Lanes
from lockkeeper.broker.regions.residency import Residency
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer

# How many messages in a row one consumer gets while a backlog waits: fewer wake-ups for the
# same messages. With less waiting than this for each consumer, strict turns.
BURST = 8


class Queue(Backlog):
    """A queue and its consumers; `lanes` only while one of them is selective.

    A temporary queue stores nothing: it ends with its connection.
    """

    __slots__ = ("consumers", "is_stored", "lanes", "turn")

    def __init__(self, context: Context, destination: Destination) -> None:
        limit = context.policies.find(destination).memory_limit
        super().__init__(context, destination, Statistics(), Residency(context, limit))
        self.consumers: list[Consumer] = []
        self.is_stored = not destination.is_temporary
        self.turn = 0
        self.lanes: Lanes | None = None

    def accept(self, message: Message, receipt: Receipt | None) -> None:
        """Take a message; see `Route.accept`."""
        reference = Reference(message, len(message.body))
        if message.persistent and self.is_stored:
            self.context.store.add(self.destination, reference, receipt)
        elif receipt is not None:
            receipt.settle()
        self.admit(reference)

    def admit(self, reference: Reference) -> None:
        """Make a message visible whose storing is in order."""
        self.statistics.enqueued += 1
        self.residency.charge(reference)
        self.ready.append(reference)
        if not self.is_active:
            self.activate()

    def stores(self, reference: Reference) -> bool:
        """Tell whether the message must go to the store."""
        return reference.loaded.persistent and self.is_stored

    def memory_full(self) -> bool:
        """Tell whether the queue's own memory limit is reached."""
        return self.residency.is_full()

    def waiting(self) -> Iterable[Reference]:
        """Return what waits, in order."""
        if self.lanes is None:
            return self.ready
        return [*self.lanes.in_order(), *self.ready]

    def depth(self) -> int:
        """Return how many messages wait."""
        return len(self.ready) + (self.lanes.depth() if self.lanes else 0)

    def in_flight(self) -> int:
        """Return how many messages consumers hold."""
        return sum(len(consumer.dispatched) for consumer in self.consumers)

    def requeue(self, references: Iterable[Reference]) -> None:
        """Give messages back to the head, in their order."""
        self._dissolve_lanes()
        super().requeue(list(references))
        self._form_lanes()

    def attach(self, consumer: "Consumer") -> None:
        """Let a consumer take part."""
        self.consumers.append(consumer)
        consumer.backlogs.append(self)
        self._dissolve_lanes()
        self._form_lanes()
        self.activate()

    def detach(self, consumer: "Consumer") -> None:
        """End a consumer's part; what it held is given back separately."""
        self.consumers.remove(consumer)
        self._dissolve_lanes()
        self._form_lanes()

    def _form_lanes(self) -> None:
        if any(consumer.is_selective() for consumer in self.consumers):
            self.lanes = Lanes(self)

    def _dissolve_lanes(self) -> None:
        if self.lanes is not None:
            self.ready.extendleft(reversed(self.lanes.in_order()))
            self.lanes = None

    def close(self) -> None:
        """Let go of everything that waits: the queue is gone."""
        waiting = list(self.waiting())
        self.residency.refund(waiting)
        for reference in waiting:
            if reference.state:
                self.context.store.release(reference)

    def dispatch(self) -> None:
        """Send what consumers have room for."""
        if self.lanes is not None:
            self.lanes.dispatch()
            return
        ready = self.ready
        burst = BURST if len(ready) >= BURST * len(self.consumers) else 1
        while ready:
            consumer = self._next_consumer()
            if consumer is None:
                return
            self._send(consumer, min(consumer.credit(), burst))

    def _next_consumer(self) -> "Consumer | None":
        """Return the next consumer in turn that has room."""
        consumers = self.consumers
        count = len(consumers)
        for step in range(count):
            turn = (self.turn + step) % count
            if consumers[turn].credit() > 0:
                self.turn = turn + 1
                return consumers[turn]
        return None

    def _send(self, consumer: "Consumer", count: int) -> None:
        """Send up to *count* messages to a consumer that has room for them."""
        ready, now = self.ready, self.context.now
        chosen: list[Reference] = []
        while ready and len(chosen) < count:
            if ready[0].message is None:
                self.page_in()
            reference = ready.popleft()
            message = reference.message
            assert message is not None
            if 0 < message.expiration < now:
                self.expire(reference)
            else:
                chosen.append(reference)
        if chosen:
            self.hand_over(consumer, chosen)

    def hand_over(self, consumer: "Consumer", references: list[Reference]) -> None:
        """Send messages that are in memory and not expired."""
        self.statistics.dispatched += len(references)
        consumer.deliver(references)
