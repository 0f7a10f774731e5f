"""Subscriptions of topics: each a backlog of its own, for one consumer, durable or not."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from lockkeeper.broker.context import END_BYTES, OFFERED_BYTES_MAX, Context
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.body_cache import BodyCache
from lockkeeper.broker.regions.line import LINE_MESSAGES_MIN, Line
from lockkeeper.broker.regions.priority_queue import PriorityQueue
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.broker.shared_references import SharedReferences
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference, Subscription

DROPPED_AT_ONCE: Final = 1000
# What ends with its consumer is never delivered again; it is the same for all of them.
_NO_FAILURES: dict[bytes, int] = {}


class Source(Protocol):
    """A topic, as its subscriptions know it; see `Topic`."""

    destination: Destination
    statistics: Statistics
    body_cache: BodyCache

    @property
    def durables(self) -> Sequence[object]:
        """The durable subscriptions of the topic."""


class TopicSubscription(Backlog):
    """Messages that one consumer of a topic has not been sent yet.

    With `is_selective` it must be asked for each message whether it wants it. The next
    `unexamined` messages, after those given back, were collected without asking. `failures` counts
    deliveries that failed here, by message: those of other subscriptions are their own matter.
    """

    __slots__ = ("_source", "consumer", "failures", "is_selective", "unexamined")

    def __init__(
        self,
        context: Context,
        source: Source,
        consumer: Consumer | None,
        subscription: Subscription | None = None,
    ) -> None:
        super().__init__(
            context, source.destination, source.statistics, source.body_cache, subscription
        )
        # Nearly every subscription lets something wait, unlike queues.
        self.begun()
        self._source = source
        self.consumer = consumer
        self.is_selective = consumer is not None and consumer.is_selective()
        self.unexamined = 0
        self.failures: dict[bytes, int] = _NO_FAILURES

    def accepts(self, message: Message) -> bool:
        """Tell whether the subscription wants *message*."""
        return self.consumer is not None and self.consumer.accepts(message)

    def offer(self, references: Sequence[Reference], size: int) -> None:
        """Take messages of *size* bytes; the consumer has them at once if it has room.

        They wait for a turn of its own if others wait already, if it is too much at once, or if
        many others were given as much.
        """
        consumer = self.consumer
        room = 0 if consumer is None or self.ready else consumer.credit()
        if (
            consumer is None
            or room < len(references)
            or size > consumer.connection.burst_bytes
            or self.context.unsent > OFFERED_BYTES_MAX
        ):
            self.let_wait(references)
        else:
            self.statistics.dispatched += len(references)
            consumer.deliver(references)

    def takers(self) -> "Sequence[Consumer]":
        """Return the consumer that is there, if one is."""
        return () if self.consumer is None else (self.consumer,)

    def let_wait(self, references: Sequence[Reference]) -> None:
        """Add messages at the end; long backlogs have one list of them for all."""
        ready = self.ready
        if (
            isinstance(references, SharedReferences)
            and len(ready) >= LINE_MESSAGES_MIN
            and not isinstance(ready, PriorityQueue)
            and self.may_be_long
        ):
            if isinstance(ready, deque):
                self.ready = ready = Line(ready)
            ready.append_shared(references)
        else:
            ready.extend(references)
        self.hold_back(references)

    @property
    def may_be_long(self) -> bool:
        """True if any number of messages may wait."""
        return True

    def hold_back(self, references: Sequence[Reference]) -> None:
        """Let messages wait that were just added to `ready`."""
        self.activate()

    def abandon(self, references: Iterable[Reference]) -> None:
        """Let go of messages that end with this subscription, which held them."""
        held = list(references)
        self._drop(held)
        self.body_cache.let_go(held)

    def _drop(self, references: Sequence[Reference]) -> None:
        """End this subscription's part in messages that it was not sent."""
        for reference in references:
            self._let_go(reference)
        self._refund(references)

    def dispatch(self) -> None:
        """Send what the consumer has room for."""
        consumer, ready = self.consumer, self.ready
        if consumer is None or not ready:
            return
        room, size, now = consumer.credit(), 0, self.context.now
        memory = self.context.memory
        chosen: list[Reference] = []
        if memory.used > memory.limit and self.subscription and not self.may_hold(consumer, chosen):
            return
        reference: Reference | None = None
        try:
            while ready and len(chosen) < room:
                if size >= consumer.connection.burst_bytes:
                    self.context.postpone(self)
                    break
                reference = ready.popleft()
                message = reference.message
                if message is None:
                    ready.appendleft(reference)
                    if not self.may_hold(consumer, chosen):
                        break
                    self.page_in()
                    reference = ready.popleft()
                    message = reference.loaded
                if self.unexamined and not self.examine(reference):
                    size += END_BYTES
                elif 0 < message.expiration < now:
                    size += END_BYTES
                    self.expire(reference)
                else:
                    chosen.append(reference)
                    size += reference.size
            self.context.unsent += size
            if chosen:
                self.statistics.dispatched += len(chosen)
                consumer.deliver(chosen, self._marked(chosen) if self.failures else None)
        except Exception:
            self.put_back(chosen if reference is None else [*chosen, reference])
            raise
        if ready and self.policy.advisories.advisory_for_slow_consumers:
            self.context.advisories.slow(consumer, self.destination)

    def _marked(self, references: Sequence[Reference]) -> list[Reference]:
        """Return what the consumer is to see: how often a delivery failed here."""
        shown = []
        for reference in references:
            failures = self.failures.get(reference.loaded.key)
            if failures:
                reference = Reference(reference.loaded, reference.size)
                reference.redeliveries = failures
            shown.append(reference)
        return shown

    def count_failures(self, references: Sequence[Reference]) -> None:
        """Count nothing: what its consumer had ends with the subscription."""

    def failures_of(self, reference: Reference) -> int:
        """Return how many deliveries of a message failed here."""
        return self.failures.get(reference.loaded.key, 0)

    def put_back(self, taken: Iterable[Reference]) -> None:
        """Let those of *taken* wait again that its consumer has not got and that have not ended.

        Dispatch failed with them in hand. The last one may be the culprit: it goes to the end.
        """
        known = set(self.ready)
        if self.consumer is not None:
            known.update(self.consumer.dispatched.values())
        lost = [each for each in dict.fromkeys(taken) if each not in known and each.holders > 0]
        self.ready.extendleft(reversed(lost[:-1]))
        self.ready.extend(lost[-1:])

    def examine(self, reference: Reference) -> bool:
        """Tell whether the subscription wants an unexamined message it took; end it if not."""
        return True

    def consumed(
        self, consumer: Consumer, references: Sequence[Reference], receipt: Receipt | None
    ) -> None:
        """Forget acknowledged messages; the receipt is for when that is durable."""
        super().consumed(consumer, references, receipt)
        if self._source.durables or self.body_cache.is_tight():
            self.body_cache.let_go(references)

    def _remove(self, reference: Reference, receipt: Receipt | None = None) -> Receipt | None:
        """End this subscription's part in a message."""
        store = self.context.store
        if self.subscription is not None and reference.state:
            store.remove(self.destination, reference, receipt, self.subscription)
        else:
            self._let_go(reference)
            if receipt is not None and self.subscription is not None:
                # The acknowledgement may end persistent messages, too, whose removals wait.
                self.context.settle_behind(receipt)
            elif receipt is not None:
                receipt.settle()
        return None

    def forget_applied(self, references: Sequence[Reference], at: int) -> None:
        """Let go of messages whose removal a committed transaction has stored."""
        for reference in references:
            if self.subscription is None or not reference.state:
                self._let_go(reference)
        super().forget_applied(references, at)
        self.body_cache.let_go(references)

    def poison(self, reference: Reference, cause: str) -> None:
        """End a message that a consumer holds and could not process."""
        super().poison(reference, cause)
        self.body_cache.let_go((reference,))

    def _refund(self, references: Sequence[Reference]) -> None:
        """Give the memory back of messages that no other subscription waits for."""
        ended = [reference for reference in references if reference.holders <= 0]
        if ended:
            self.body_cache.refund(ended)

    def kept(self, references: Sequence[Reference]) -> list[Reference]:
        """See `Backlog.kept`: for a durable subscription."""
        return [] if self.subscription is None else super().kept(references)

    def _let_go(self, reference: Reference) -> None:
        if reference.state:
            self.context.store.release(reference)
        else:
            reference.holders -= 1

    def close(self) -> None:
        """Let go of everything that waits: the subscription is gone."""
        self.expiry.stop()
        if isinstance(self.ready, Line):
            self.ready.leave_packed(self.context.store.release_run)
        while self.ready:
            self._drop([self.ready.popleft() for _ in range(min(len(self.ready), DROPPED_AT_ONCE))])
