"""Messages that wait for consumers, in order: bodies in memory, or only on disk.

A queue is one, and so is each subscription of a topic. Bodies that left the memory come back
a page at a time when their turn comes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from lockkeeper.broker.context import HELD_BYTES_MAX, MESSAGE_BYTES, Context
from lockkeeper.broker.policies.dead_letters import (
    CAUSE_PROPERTY,
    dead_letter,
    dead_letter_destination,
    is_dead_letter_queue_of,
)
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.redelivery import redelivery
from lockkeeper.broker.regions.body_cache import ENDED, BodyCache
from lockkeeper.broker.regions.expiry import Expiry
from lockkeeper.broker.regions.line import NOTHING, Line, Segment, packed, withdraw
from lockkeeper.broker.regions.priority_queue import PriorityQueue
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.message import Message, UnreadableMessage
from lockkeeper.message.rewrite import decoded
from lockkeeper.store.base import (
    REMOVED,
    SKIPPED,
    WAITING,
    WRITTEN,
    GoneError,
    Receipt,
    Reference,
    StoreError,
    Subscription,
)
from lockkeeper.store.packed import PackedReferences

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer

PAGE_BYTES: Final = 1 << 20
_CAUSE = CAUSE_PROPERTY.encode()
PAGE_MESSAGES_MAX: Final = 1000


class Backlog:
    """An ordered backlog of one destination; subclasses decide who gets the next message."""

    __slots__ = (
        "body_cache",
        "context",
        "destination",
        "expiry",
        "is_active",
        "is_prioritized",
        "policy",
        "ready",
        "statistics",
        "subscription",
    )

    def __init__(
        self,
        context: Context,
        destination: Destination,
        statistics: Statistics,
        body_cache: BodyCache,
        subscription: Subscription | None = None,
    ) -> None:
        self.context = context
        self.destination = destination
        self.subscription = subscription
        self.policy = context.policies.find(destination)
        self.is_prioritized = self.policy.prioritized_messages
        self.ready: deque[Reference] | Line | PriorityQueue
        self.ready = PriorityQueue() if self.is_prioritized else NOTHING
        self.expiry = Expiry(self)
        self.is_active = False
        self.statistics = statistics
        self.body_cache = body_cache

    def adopt(self, policy: DestinationPolicy) -> None:
        """Go by another policy; whether priorities count is settled once and for all."""
        changes = policy.expiry != self.policy.expiry
        self.policy = replace(policy, prioritized_messages=self.is_prioritized)
        if changes:
            self.expiry.restart()

    def dispatch(self) -> None:
        """Send what can be sent; subclasses say to whom."""
        raise NotImplementedError

    def takers(self) -> "Sequence[Consumer]":
        """Return the consumers that are sent what waits."""
        raise NotImplementedError

    def waiting(self) -> Iterable[Reference]:
        """Return what waits, in order."""
        return self.ready

    def first(self) -> Reference | None:
        """Return which message comes next, None when none waits."""
        return self.ready[0] if self.ready else None

    def loose(self) -> Iterable[Reference]:
        """Return what waits and is not packed, in order."""
        return self.ready if isinstance(self.ready, deque) else self.ready.loose()

    def segments(self) -> list[Segment]:
        """Return what waits, in order, packed or not."""
        ready = self.ready
        return [ready] if isinstance(ready, deque) else ready.segments()

    def pack(self) -> None:
        """Pack the middle of a long backlog that is only on disk."""
        if isinstance(self.ready, PriorityQueue):
            self.ready.pack()
        else:
            self.ready = packed(self.ready)

    def depth(self) -> int:
        """Return how many messages wait."""
        return len(self.ready)

    def kept(self, references: Sequence[Reference]) -> list[Reference]:
        """Return those of *references* that the store knows, so that it must learn of their end."""
        return [reference for reference in references if reference.state in (WAITING, WRITTEN)]

    def activate(self) -> None:
        """Have `dispatch` called at the end of this tick."""
        if not self.is_active:
            self.is_active = True
            self.context.active.append(self)

    def begun(self) -> deque[Reference] | Line | PriorityQueue:
        """Return what waits, to add to it: before the first message there is `NOTHING`."""
        if self.ready is NOTHING:
            self.ready = deque()
        return self.ready

    def admit(self, reference: Reference) -> None:
        """Add a message at the end."""
        self.body_cache.charge(reference)
        self.begun().append(reference)
        if not self.is_active:
            self.activate()

    def restore(self, references: Iterable[Reference]) -> None:
        """Add what the store held when the broker started."""
        if isinstance(references, PackedReferences) and not isinstance(self.ready, PriorityQueue):
            line = Line(self.ready)
            for run in references.runs:
                line.append_run(run)
            self.ready, references = line, references.rest
        for reference in references:
            self.body_cache.charge(reference)
            self.begun().append(reference)
        self.pack()
        if self.ready:
            self.expiry.watch_unknown()
        self.activate()

    def requeue(self, references: Sequence[Reference]) -> None:
        """Give messages back to the head, in their order, for another consumer."""
        self.body_cache.let_go(references)
        self.begun().extendleft(reversed(references))
        self.activate()

    def put_back(self, taken: Iterable[Reference]) -> None:
        """Let those of *taken* wait again that nobody has and that have not ended."""
        known = set(self.waiting())
        lost = [each for each in taken if each not in known and each.held != ENDED]
        self.begun().extendleft(lost)

    def withdraw(self, references: set[Reference]) -> None:
        """Take messages out of what waits, wherever they are; see `loose`."""
        if isinstance(self.ready, PriorityQueue):
            self.ready.withdraw(references)
        else:
            withdraw(self.ready, references)

    def page_in(self, count: int = PAGE_MESSAGES_MAX) -> None:
        """Read the bodies of the next *count* messages back, about a page of them at most."""
        page: list[Reference] = []
        size = 0
        ready = self.ready
        for reference in islice(ready if isinstance(ready, deque) else ready.upcoming(), count):
            if reference.message is None:
                page.append(reference)
                size += reference.size
            if size > PAGE_BYTES:
                break
        self.body_cache.load(page)

    def detach(self, consumer: "Consumer") -> None:
        """End a consumer's part; what it held is given back separately."""

    def may_hold(self, consumer: "Consumer", chosen: list[Reference]) -> bool:
        """Tell whether there is memory for a consumer to hold more; if not, it gets it later.

        Whoever has nothing gets something however full the memory is, unless it has consumed much
        in a transaction that is not over.
        """
        if self.context.has_room():
            return True
        if not (chosen or consumer.dispatched) and _undecided(consumer) < HELD_BYTES_MAX:
            return True
        self.context.starve(self)
        return False

    def peek(self, reference: Reference) -> Message | None:
        """Return a body, read for the caller alone when it is only on disk; None: it is gone.

        A reference that somebody kept may not know that: it was packed meanwhile, and others
        took its place.
        """
        if reference.message is not None:
            return reference.message
        if reference.state == REMOVED:
            return None
        copy = Reference(None, reference.size, reference.location, reference.state)
        try:
            self.context.store.load([copy], self.context.next_sequence())
        except GoneError:
            return None
        if copy.message is not None:
            copy.message.destination = self.destination
        return copy.message

    def is_expired(self, message: Message) -> bool:
        """Tell whether the message's time is over."""
        return 0 < message.expiration < self.context.now

    def consumed(
        self, consumer: "Consumer", references: Sequence[Reference], receipt: Receipt | None
    ) -> None:
        """Forget acknowledged messages; the receipt is for when that is durable."""
        consumer.shrink(len(references))
        self.statistics.acknowledged(references, self.context.now)
        self._end_consumed(references, receipt)
        self._refund(references)
        if not self.is_active:
            self.activate()

    def _end_consumed(self, references: Sequence[Reference], receipt: Receipt | None) -> None:
        """End acknowledged messages in the store."""
        last = references[-1]
        for reference in references:
            wanted = receipt if reference is last else None
            if not reference.state and wanted is None:
                reference.holders -= 1
                continue
            freed = self._remove(reference, wanted)
            if reference.state == SKIPPED:
                self.statistics.never_written += 1
                if freed is not None:
                    freed.settle()

    def forget_applied(self, references: Sequence[Reference], at: int) -> None:
        """Let go of messages that a transaction has consumed; it was committed *at* (ms)."""
        self.statistics.acknowledged(references, at)
        self._refund(references)
        self.activate()

    def _remove(self, reference: Reference, receipt: Receipt | None = None) -> Receipt | None:
        """End a message in the store; returns its producer's receipt, as the store does."""
        return self.context.store.remove(
            self.destination, reference, receipt, self.subscription, not self.policy.recorded
        )

    def _refund(self, references: Sequence[Reference]) -> None:
        """Give the memory of ended messages back."""
        self.body_cache.refund(references)

    def end_by(self, end: Callable[[Reference], None], reference: Reference) -> None:
        """End a message that nobody holds any more; one that cannot be ended so is set aside."""
        try:
            end(reference)
        except StoreError:
            raise
        except Exception as error:
            try:
                self.quarantine(reference, error)
            except Exception:
                # Nowhere else to put it: it waits again.
                self.requeue((reference,))
                raise

    def expire_held(self, reference: Reference) -> None:
        """End a message of a consumer whose time was over when it came there."""
        self.end_by(self.expire, reference)
        self.body_cache.let_go((reference,))

    def poison_held(self, reference: Reference, cause: str) -> None:
        """End a message that its consumer could not process."""
        self.end_by(partial(self.poison, cause=cause), reference)

    def expire(self, reference: Reference) -> None:
        """End a message whose time is over: to the dead letters by policy, or gone."""
        if isinstance(reference.message, UnreadableMessage):
            self.quarantine(reference, MalformedMessageError(reference.message.defect))
            return
        self.statistics.expired += 1
        self._bury(reference, "The message has expired", expired=True)

    def poison(self, reference: Reference, cause: str) -> None:
        """End a message that its consumers could not process, unless it is to come again."""
        policy = self.policy.redelivery
        if policy is None or not self.destination.is_queue:
            self._bury(reference, cause, expired=False)
            return
        message = self.body_of(reference)
        sequence = self.context.next_sequence()
        try:
            later = redelivery(policy, message, reference.redeliveries, sequence)
        except MalformedMessageError as error:
            self.quarantine(reference, error)
            return
        if later is not None:
            self.statistics.redelivered += 1
            self.context.deliver_later(later.message, later.delay)
            self._remove_moved(reference)
        elif policy.send_to_dlq_if_max_retries_exceeded:
            self._bury(reference, cause, expired=False)
        else:
            self._discard(reference)

    def _bury(self, reference: Reference, cause: str, expired: bool) -> None:
        message, advisories = self.body_of(reference), self.context.advisories
        if expired:
            advisories.expired(self.destination, self.policy.advisories, message)
        policy = self.policy.dead_letters
        key = None if self.subscription is None else self.subscription.key
        target = dead_letter_destination(policy, self.destination, message, expired, key)
        audit = self.context.dead_letter_audit
        if (
            target is None
            or self._is_dead_letter(message)
            or not audit.is_new(policy, self.destination, message.key, key or "")
        ):
            self._discard(reference)
            return
        self._bury_at(reference, target, cause)

    def _bury_at(self, reference: Reference, target: Destination, cause: str) -> None:
        message, policy = reference.loaded, self.policy.dead_letters
        self.statistics.dequeued += 1
        self.statistics.dead_lettered += 1
        expiration = self.context.now + policy.expiration if policy.expiration else 0
        message_id = self.context.copy_id(message)
        buried = dead_letter(message, target, cause, message_id, expiration)
        self.context.find_route(target).accept(buried, None)
        tell_of = self.context.advisories.dead_lettered
        tell_of(self.destination, self.policy.advisories, message)
        self._remove_moved(reference)

    def abandon(self, references: Iterable[Reference]) -> None:
        """Let go of messages that end with this backlog; subclasses say how."""
        raise NotImplementedError

    def _is_dead_letter(self, message: Message) -> bool:
        """Tell whether a message is here because it died before: it does so only once.

        Otherwise each queue of dead letters could have one of its own, without end.
        """
        if _CAUSE not in message.body:
            return isinstance(message, UnreadableMessage) and self.destination == queue(
                self.policy.dead_letters.queue
            )
        origin = decoded(message).original_destination
        if origin is None:
            return False
        policy = self.context.policies.find(origin).dead_letters
        return is_dead_letter_queue_of(policy, origin, self.destination)

    def quarantine(self, reference: Reference, error: Exception) -> None:
        """End a message that cannot be dealt with, as a dead letter: it is nobody else's matter."""
        self.context.containment.note_error("message", self.destination, error)
        message, cause = self.body_of(reference), f"{type(error).__name__}: {error}"
        if not self._is_dead_letter(message):
            self._bury(reference, cause, expired=False)
        elif isinstance(message, UnreadableMessage):
            self._bury_at(reference, self.destination, cause)
        else:
            # There is no better place for it, and it must not be lost.
            raise error

    def body_of(self, reference: Reference) -> Message:
        """Return a message, read from the store if it is only there."""
        if reference.message is None:
            self.body_cache.load([reference])
        return reference.loaded

    def tell_consumed(self, references: Sequence[Reference]) -> None:
        """Tell of messages that were consumed, if the policy asks for that."""
        policy = self.policy.advisories
        if policy.advisory_for_consumed:
            self.context.advisories.consumed(self.destination, policy, references)

    def drop(self, count: int) -> int:
        """End up to *count* messages that wait, for good; returns how many there were."""
        ready = self.ready
        dropped = [ready.popleft() for _ in range(min(count, len(ready)))]
        for reference in dropped:
            self._discard(reference)
        return len(dropped)

    def _discard(self, reference: Reference) -> None:
        """End a message for good."""
        self.statistics.dequeued += 1
        freed = self._remove(reference)
        self._refund((reference,))
        if freed is not None:
            freed.settle()

    def _remove_moved(self, reference: Reference) -> None:
        """End a message that another backlog has taken.

        After that: a crash between the two records leaves the message twice, never lost.
        """
        freed = self._remove(reference)
        self._refund((reference,))
        if freed is not None:
            # Its producer still waits: now for the record of the other one.
            self.context.settle_behind(freed)

    def count_failures(self, references: Sequence[Reference]) -> None:
        """Count a delivery that failed, for each of these messages."""
        for reference in references:
            reference.redeliveries += 1

    def failures_of(self, reference: Reference) -> int:
        """Return how many deliveries of a message failed."""
        return reference.redeliveries

    def give_back(self, references: Sequence[Reference]) -> None:
        """Requeue messages of a consumer that is gone, or bury those tried too often."""
        limit = self.policy.dead_letters.maximum_redeliveries
        kept = []
        for reference in references:
            failures = self.failures_of(reference) if limit >= 0 else 0
            if 0 <= limit < failures:
                self.poison(reference, f"Delivery[{failures}] exceeds the policy's limit")
            else:
                kept.append(reference)
        self.statistics.redelivered += len(kept)
        self.requeue(kept)


def _undecided(consumer: "Consumer") -> int:
    """Return the bytes of what a consumer has consumed in transactions that are not over."""
    return sum(
        MESSAGE_BYTES + reference.size
        for transaction in consumer.connection.transactions.values()
        for run in transaction.consumed
        if run.consumer is consumer
        for reference in run.references
    )
