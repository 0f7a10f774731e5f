"""Queues: each message goes to one consumer, in turn."""

from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from lockkeeper.broker.context import END_BYTES, SHARE_BYTES_MAX, Context
from lockkeeper.broker.policies.message_groups import GroupOwners
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.backlog import PAGE_MESSAGES_MAX, Backlog
from lockkeeper.broker.regions.body_cache import ENDED, BodyCache
from lockkeeper.broker.regions.bridged import adopted
from lockkeeper.broker.regions.dispatch_gate import DispatchGate
from lockkeeper.broker.regions.dispatch_order import DispatchOrder
from lockkeeper.broker.regions.dispatch_pass import DispatchPass
from lockkeeper.broker.regions.line import NOTHING, Segment
from lockkeeper.broker.regions.priority_queue import PriorityQueue, priority_of, put_back
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.broker.regions.sub_queues import SubQueues
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import WRITTEN, Receipt, Reference
from lockkeeper.store.packed import PackedRun

if TYPE_CHECKING:
    from lockkeeper.broker.routing.rule import Rule
    from lockkeeper.broker.subscriptions.consumer import Consumer

# How many messages in a row one of several consumers gets while a backlog waits: fewer wake-ups
# for the same messages. With less waiting than this for each consumer, strict turns.
BURST: Final = 8


class Queue(Backlog):
    """A queue and its consumers.

    `sub_queues` are there only while a consumer is selective or messages have groups; `groups` from
    the first message of a group on, until the last consumer leaves. A temporary queue stores
    nothing: it ends with its connection. `rules` forward what is sent to it. One that `is_gone`
    was removed; there may be another of its name. With `is_advising` it tells of its messages.
    `bridged` is there while its policy asks more of bridges than to forward.
    """

    __slots__ = (
        "bridged",
        "consumers",
        "gate",
        "groups",
        "is_advising",
        "is_gone",
        "is_stored",
        "order",
        "rules",
        "sub_queues",
    )

    def __init__(self, context: Context, destination: Destination) -> None:
        body_cache = BodyCache(context, destination, context.policies.find(destination))
        super().__init__(context, destination, Statistics(), body_cache)
        body_cache.pack = self.pack
        self.order = DispatchOrder(self.policy.dispatch)
        self.consumers = self.order.consumers
        self.gate = DispatchGate(self)
        self.is_gone = False
        self.is_advising = self.policy.advisories.is_about_queue
        self.is_stored = not destination.is_temporary
        self.sub_queues: SubQueues | None = None
        self.groups: GroupOwners | None = None
        self.rules: tuple[Rule, ...] = ()
        self.bridged = adopted(self, None)

    def adopt(self, policy: DestinationPolicy) -> None:
        """Go by another policy; the order of consumers follows with the next that comes or goes."""
        super().adopt(policy)
        self.body_cache.adopt(policy)
        self.order.adopt(policy.dispatch)
        self.is_advising = policy.advisories.is_about_queue
        bridged, self.bridged = self.bridged, adopted(self, self.bridged)
        if self.bridged is not bridged:
            self.sort_anew()
        self.activate()

    def accept(self, message: Message, receipt: Receipt | None) -> None:
        """Take a message; see `Route.accept`."""
        reference = Reference(message, len(message.body))
        if self.is_prioritized:
            reference.priority = priority_of(message)
        if message.persistent and self.is_stored:
            self.context.store.add(self.destination, reference, receipt)
        elif receipt is not None:
            receipt.settle()
        try:
            self.admit(reference)
        except Exception as error:
            self._admit_later((reference,), error)

    def accept_run(self, messages: Sequence[Message], receipts: Sequence[Receipt | None]) -> None:
        """See `Route.accept_run`."""
        references = [Reference(message, len(message.body)) for message in messages]
        # All of them first: what fails here has changed nothing.
        are_stored = [self.stores(reference) for reference in references]
        stored: list[Reference] = []
        for reference, receipt, is_stored in zip(references, receipts, are_stored, strict=True):
            if is_stored:
                reference.receipt = receipt
                stored.append(reference)
            elif receipt is not None:
                receipt.settle()
        if stored:
            self.context.store.add_run(self.destination, stored)
        self.admit_run(references)

    def admit(self, reference: Reference) -> None:
        """Make a message visible whose storing is in order."""
        self.statistics.enqueued += 1
        self.body_cache.charge(reference)
        # As `begun` does, without a call for each message.
        if self.ready is NOTHING:
            self.ready = deque()
        self.ready.append(reference)
        message = reference.message
        if message is not None and message.expiration:
            self.expiry.expect(message.expiration)
        if not self.is_active:
            self.activate()
        if self.is_advising and self.policy.advisories.is_about_arrival:
            self.context.advisories.arrived(
                self.destination, self.policy.advisories, reference.loaded, bool(self.consumers)
            )

    def admit_run(self, references: Sequence[Reference]) -> None:
        """See `Route.admit_run`."""
        try:
            self._admit_together(references)
        except Exception as error:
            self._admit_later(references, error)

    def _admit_together(self, references: Sequence[Reference]) -> None:
        """Do what `admit` does for each, in less steps."""
        if self.is_advising and self.policy.advisories.is_about_arrival:
            for reference in references:
                self.admit(reference)
            return
        self.statistics.enqueued += len(references)
        self.body_cache.charge_run(references)
        self.begun().extend(references)
        for reference in references:
            message = reference.message
            if message is not None and message.expiration:
                self.expiry.expect(message.expiration)
        self.activate()

    def _admit_later(self, references: Sequence[Reference], error: Exception) -> None:
        """Contain an error; what the store has must become visible, too."""
        self.context.containment.note_error("receipt", self.destination, error)
        self.context.call_soon(partial(self._readmit, references))

    def _readmit(self, references: Sequence[Reference]) -> None:
        """Make visible what could not become so at once."""
        self.put_back(reversed(references))
        self.activate()

    def stores(self, reference: Reference) -> bool:
        """Tell whether the message must go to the store, and note its priority if that counts."""
        if self.is_prioritized:
            reference.priority = priority_of(reference.loaded)
        message = reference.message
        return message is not None and message.persistent and self.is_stored

    def stored_later(self, references: Sequence[Reference]) -> Sequence[Reference]:
        """See `Route.stored_later`."""
        return [reference for reference in references if self.stores(reference)]

    def stores_never(self, references: Sequence[Reference]) -> None:
        """See `Route.stores_never`."""

    def backlogs(self) -> "Sequence[Backlog]":
        """Return what keeps messages until they are acknowledged: the queue itself."""
        return (self,)

    def takers(self) -> "list[Consumer]":
        """Return the consumers that are there."""
        return self.consumers

    def is_subscribed(self) -> bool:
        """Tell whether there are consumers."""
        return bool(self.consumers)

    def is_wanted(self, message: Message) -> bool:
        """See `Region.is_wanted`."""
        return any(consumer.accepts(message) for consumer in self.consumers)

    def keeps_messages(self) -> bool:
        """See `Region.keeps_messages`."""
        return True

    def keeps_on_disk(self) -> bool:
        """See `Region.keeps_on_disk`."""
        return self.is_stored

    def is_read(self) -> bool:
        """See `Region.is_read`."""
        return bool(self.consumers)

    def consumed(
        self, consumer: "Consumer", references: Sequence[Reference], receipt: Receipt | None
    ) -> None:
        """Forget acknowledged messages; the receipt is for when that is durable."""
        super().consumed(consumer, references, receipt)
        if self.is_advising:
            self.tell_consumed(references)

    def _end_consumed(self, references: Sequence[Reference], receipt: Receipt | None) -> None:
        """End acknowledged messages in the store: all at once where all of them are written."""
        written = [reference for reference in references if reference.state == WRITTEN]
        if receipt is None and len(written) == len(references):
            self.context.store.remove_run(self.destination, references)
        else:
            super()._end_consumed(references, receipt)

    def forget_applied(self, references: Sequence[Reference], at: int) -> None:
        """Let go of messages whose removal a committed transaction has stored."""
        super().forget_applied(references, at)
        if self.is_advising:
            self.tell_consumed(references)

    def memory_used(self) -> int:
        """See `Region.memory_used`."""
        return self.body_cache.used

    def memory_full(self) -> bool:
        """Tell whether the queue's own memory limit is reached."""
        return self.body_cache.is_full()

    def upcoming(self) -> Iterable[Reference]:
        """Return messages that are to be dispatched, the next ones first; not all of them."""
        return self.ready

    def waiting(self) -> Iterable[Reference]:
        """Return what waits, in order."""
        return self.ready if self.sub_queues is None else self.sub_queues.and_then(self.ready)

    def first(self) -> Reference | None:
        """See `Backlog.first`."""
        first = super().first()
        return first if self.sub_queues is None else self.sub_queues.first(first)

    def loose(self) -> Iterable[Reference]:
        """Return what waits and is not packed, in order."""
        if self.sub_queues is None:
            return super().loose()
        return [*self.sub_queues.in_order(), *super().loose()]

    def segments(self) -> list[Segment]:
        """Return what waits, in order, packed or not."""
        if self.sub_queues is None:
            return super().segments()
        if self.is_prioritized:
            return [deque(self.waiting())]
        return [deque(self.sub_queues.in_order()), *super().segments()]

    def depth(self) -> int:
        """Return how many messages wait."""
        return len(self.ready) + (self.sub_queues.size if self.sub_queues else 0)

    def in_flight(self) -> int:
        """Return how many messages consumers hold."""
        return sum(len(consumer.held_of(self)) for consumer in self.consumers)

    def withdraw(self, references: set[Reference]) -> None:
        """Take messages out of what waits, wherever they are."""
        had_sub_queues = self.sub_queues is not None
        self._dissolve_sub_queues()
        super().withdraw(references)
        if had_sub_queues:
            self.sub_queues = SubQueues(self)

    def drop(self, count: int) -> int:
        """See `Backlog.drop`."""
        had_sub_queues = self.sub_queues is not None
        self._dissolve_sub_queues()
        dropped = super().drop(count)
        if had_sub_queues:
            self.sub_queues = SubQueues(self)
        return dropped

    def requeue(self, references: Sequence[Reference]) -> None:
        """Give messages back: ahead of new ones, in the order in which they had been sent."""
        self.body_cache.let_go(references)
        context = self.context
        for reference in references:
            if not reference.delivery:
                # Sent by an earlier broker, in a transaction that is rolled back now.
                reference.delivery = context.delivery = context.delivery + 1
            reference.delivery = -abs(reference.delivery)
        if self.sub_queues is not None:
            self.sub_queues.give_back(references)
        elif isinstance(ready := self.begun(), PriorityQueue):
            ready.give_back(references)
        else:
            put_back(ready, references)
        self.activate()

    # Consumers

    def attach(self, consumer: "Consumer") -> None:
        """Let a consumer take part."""
        self.order.join(consumer)
        consumer.backlogs.append(self)
        self.context.slow_consumers.watch(consumer, self.policy.slow_consumers)
        if self.sub_queues is not None:
            if not self.sub_queues.join(consumer) or self.bridged is not None:
                self.sort_anew()
        elif consumer.is_selective():
            self.sub_queues = SubQueues(self)
        self.gate.joined()
        self.activate()

    def detach(self, consumer: "Consumer") -> None:
        """End a consumer's part; what it held is given back separately."""
        self.order.leave(consumer)
        if self.sub_queues is not None:
            self.sub_queues.leave(consumer)
        if not self.consumers:
            self.groups = None
        if self.sub_queues is not None and not self._needs_sub_queues():
            self._dissolve_sub_queues()
        if self.bridged is not None:
            self.bridged.left(consumer)
            self.sort_anew()
        self.gate.left()
        self.activate()

    def _needs_sub_queues(self) -> bool:
        if self.groups is not None:
            return True
        return any(consumer.is_selective() for consumer in self.consumers)

    def _dissolve_sub_queues(self) -> None:
        if self.sub_queues is not None:
            self.begun().extendleft(reversed(self.sub_queues.in_order()))
            self.sub_queues = None

    def sort_anew(self) -> None:
        """Have all messages judged again that were already."""
        if self.sub_queues is not None:
            self._dissolve_sub_queues()
            self.sub_queues = SubQueues(self)
            self.activate()

    def meet_groups(self) -> GroupOwners:
        """Keep groups together from now on; returns who owns them."""
        if self.groups is None:
            self.groups = GroupOwners(self.policy.message_groups)
        if self.sub_queues is None:
            self.sub_queues = SubQueues(self)
        return self.groups

    def close(self) -> None:
        """Let go of everything that waits: the queue is gone."""
        self.expiry.stop()
        if self.bridged is not None:
            self.bridged.end()
        for segment in self.segments():
            if not isinstance(segment, PackedRun):
                self.abandon(segment)
            elif segment.is_only_stored():
                self.context.store.release_run(segment)
            else:
                self.abandon(segment.shown())
        # Who works on it over several turns finds nothing more.
        self.sub_queues = None
        self.ready.clear()

    def abandon(self, references: Iterable[Reference]) -> None:
        """Let go of messages that end with the queue."""
        for reference in references:
            self.body_cache.refund((reference,))
            if reference.state:
                self.context.store.release(reference)

    # Dispatch

    def dispatch(self) -> None:
        """Send what consumers have room for."""
        if not self.gate.is_open:
            return
        try:
            ready, order = self.ready, self.order
            waiting, takers = len(ready), len(order.active)
            burst = BURST if waiting >= BURST * takers else 1
            if takers == 1:
                burst = waiting
            context = self.context
            enough = context.unsent + SHARE_BYTES_MAX
            while ready and self.sub_queues is None:
                if context.unsent >= enough:
                    context.postpone(self)
                    return
                consumer = order.next()
                if consumer is None:
                    return
                if not self._send(consumer, min(consumer.credit(), burst)):
                    takers -= 1
                    if takers <= 0:
                        return
            if self.sub_queues is not None and DispatchPass(self, self.sub_queues).run():
                context.postpone(self)
        finally:
            if self.is_advising and self.policy.advisories.advisory_for_slow_consumers:
                self._tell_slow()

    def _tell_slow(self) -> None:
        """Tell of consumers that messages wait for."""
        for consumer in self.consumers if self.depth() else ():
            self.context.advisories.slow(consumer, self.destination)

    def next_ready(self) -> Reference:
        """Take the next message that no sub-queue has, into memory if it is not there."""
        if self.ready[0].message is None:
            self.page_in(self.page_messages())
        return self.ready.popleft()

    def page_messages(self) -> int:
        """Return how many bodies may be read back at once: lazily, what consumers have room for."""
        if not self.policy.dispatch.lazy_dispatch:
            return PAGE_MESSAGES_MAX
        room = sum(max(0, consumer.credit()) for consumer in self.order.active)
        return min(max(1, room), PAGE_MESSAGES_MAX)

    def _send(self, consumer: "Consumer", count: int) -> bool:
        """Send up to *count* messages to a consumer that has room for them.

        Returns False when there is no memory for it to hold more, and it holds some.
        """
        ready, context, size = self.ready, self.context, 0
        chosen: list[Reference] = []
        reference: Reference | None = None
        now, memory = context.now, context.memory
        if memory.used > memory.limit and not self.may_hold(consumer, chosen):
            return False
        try:
            while ready and len(chosen) < count and size < SHARE_BYTES_MAX:
                reference = ready.popleft()
                message = reference.message
                if message is None:
                    ready.appendleft(reference)
                    if not self.may_hold(consumer, chosen):
                        if not chosen:
                            return False
                        break
                    self.page_in(self.page_messages())
                    reference = ready.popleft()
                    message = reference.loaded
                if message.flags_at != message.lead.plain_flags_at and message.group is not None:
                    ready.appendleft(reference)
                    self.meet_groups()
                    break
                if 0 < message.expiration < now:
                    size += END_BYTES
                    self.expire(reference)
                else:
                    chosen.append(reference)
                    size += reference.size
            context.unsent += size
            if chosen:
                self.hand_over(consumer, chosen)
        except Exception:
            self.put_back(chosen if reference is None else [*chosen, reference])
            raise
        return True

    def put_back(self, taken: Iterable[Reference]) -> None:
        """Let those of *taken* wait again that nobody has and that have not ended.

        Dispatch failed with them in hand. The last one may be the culprit: it goes to the end.
        """
        known = {held for each in self.consumers for held in each.dispatched.values()}
        known.update(self.waiting())
        lost = [each for each in dict.fromkeys(taken) if each not in known and each.held != ENDED]
        had_sub_queues = self.sub_queues is not None
        self._dissolve_sub_queues()
        ready = self.begun()
        ready.extendleft(reversed(lost[:-1]))
        ready.extend(lost[-1:])
        if had_sub_queues:
            self.sub_queues = SubQueues(self)

    def hand_over(
        self,
        consumer: "Consumer",
        references: list[Reference],
        shown: list[Reference] | None = None,
    ) -> None:
        """Send messages that are in memory and not expired; see `Consumer.deliver`."""
        self.statistics.dispatched += len(references)
        if self.bridged is not None:
            self.bridged.sent(consumer, len(references))
        consumer.deliver(references, shown)
