"""Durable subscriptions: they go on collecting while their consumer is away."""

from collections.abc import Iterable, Sequence

from lockkeeper.broker.context import Context
from lockkeeper.broker.selectors import Selector
from lockkeeper.broker.subscriptions.consumer import Consumer, own_prefix, wants
from lockkeeper.broker.subscriptions.topic import Source, TopicSubscription
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference, Subscription


class DurableSubscription(TopicSubscription):
    """A subscription that outlives its consumers, and the broker.

    Until its next consumer comes, what the connection of the last one sends is still local to it.
    """

    __slots__ = ("_examined", "_keeps_active", "_own", "selector")

    def __init__(
        self,
        context: Context,
        source: Source,
        subscription: Subscription,
        selector: Selector | None,
        keeps_active: bool,
    ) -> None:
        """*keeps_active* says whether messages that are not persistent are collected offline."""
        super().__init__(context, source, None, subscription)
        self.failures = {}
        self.selector = selector
        self._keeps_active = keeps_active
        self._own: bytes | None = None
        self._examined = 0
        self.is_selective = self._is_selective()

    def _is_selective(self) -> bool:
        is_choosy = self.selector is not None or self._own is not None
        return is_choosy or (self.consumer is None and not self._keeps_active)

    def resume(self, consumer: Consumer) -> None:
        """Go on with a consumer."""
        self.consumer = consumer
        self.disown(own_prefix(consumer.connection) if consumer.no_local else None)
        self.activate()

    def disown(self, own: bytes | None) -> None:
        """Want no messages whose id begins with *own*."""
        self._own = own
        self.is_selective = self._is_selective()

    def detach(self, consumer: Consumer) -> None:
        """Go on without a consumer."""
        self.consumer = None
        self.is_selective = self._is_selective()

    def offer(self, references: Sequence[Reference], size: int) -> None:
        """Take messages; without memory for what the consumer would hold, they wait."""
        consumer, memory = self.consumer, self.context.memory
        if memory.used > memory.limit and consumer is not None and not self.may_hold(consumer, []):
            self.let_wait(references)
        else:
            super().offer(references, size)

    def accepts(self, message: Message) -> bool:
        """Tell whether the subscription wants *message*, its consumer there or not."""
        if self.consumer is None and not self._keeps_active and not message.persistent:
            return False
        return wants(message, self.selector, self._own)

    def consumed(
        self, consumer: Consumer, references: Sequence[Reference], receipt: Receipt | None
    ) -> None:
        """Forget acknowledged messages; the receipt is for when that is durable."""
        super().consumed(consumer, references, receipt)
        self.tell_consumed(references)

    def forget_applied(self, references: Sequence[Reference], at: int) -> None:
        """Let go of messages whose removal a committed transaction has stored."""
        super().forget_applied(references, at)
        self.tell_consumed(references)

    def restore(self, references: Iterable[Reference]) -> None:
        """Add what the store held when the broker started.

        An ActiveMQ, or a broker that crashed, may have left messages that the selector refuses:
        each is looked at when its turn comes. Where messages are ordered by priority, nobody
        knows which they are, and all are looked at.
        """
        super().restore(references)
        if self.selector is not None:
            self.unexamined = len(self.ready)

    def examine(self, reference: Reference) -> bool:
        """Tell whether the subscription wants an unexamined message it took; end it if not."""
        if self._examined:
            self._examined -= 1
            return True
        if not self.is_prioritized:
            self.unexamined -= 1
        if self.accepts(reference.loaded):
            return True
        self._remove(reference)
        self._refund((reference,))
        return False

    def count_failures(self, references: Sequence[Reference]) -> None:
        """Count a delivery that failed, for each of these messages."""
        for reference in references:
            key = reference.loaded.key
            self.failures[key] = self.failures.get(key, 0) + 1

    def _refund(self, references: Sequence[Reference]) -> None:
        """Give the memory of ended messages back, and forget which of their deliveries failed."""
        if self.failures:
            for reference in references:
                if reference.message is not None:
                    self.failures.pop(reference.message.key, None)
        super()._refund(references)

    def drop(self, count: int) -> int:
        """End up to *count* messages that wait, for good; returns how many there were."""
        dropped = super().drop(count)
        if not self.ready:
            self.failures.clear()
        return dropped

    def hold_back(self, references: Sequence[Reference]) -> None:
        """Let messages wait that were just added to `ready`."""
        super().hold_back(references)
        self.expiry.watch_all(references)

    def withdraw(self, references: set[Reference]) -> None:
        """Take messages out of what waits; the others are looked at again, if some have to be."""
        super().withdraw(references)
        if self.unexamined:
            self._examined, self.unexamined = 0, len(self.ready)

    def requeue(self, references: Sequence[Reference]) -> None:
        """Give messages back to the head, in their order, for the next consumer."""
        if self.unexamined and not self.is_prioritized:
            self._examined += len(references)
        super().requeue(references)
