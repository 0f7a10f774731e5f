"""Subscriptions of topics: each a backlog of its own, for one consumer, durable or not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockkeeper.broker.context import Context
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt, Reference, Subscription

if TYPE_CHECKING:
    from lockkeeper.broker.regions.topic import Topic
    from lockkeeper.broker.subscriptions.consumer import Consumer


class TopicSubscription(Backlog):
    """What one consumer of a topic has not been sent yet."""

    __slots__ = ("consumer", "is_selective")

    def __init__(
        self,
        context: Context,
        topic: "Topic",
        consumer: "Consumer | None",
        subscription: Subscription | None = None,
    ) -> None:
        super().__init__(
            context, topic.destination, topic.statistics, topic.residency, subscription
        )
        self.consumer = consumer
        self.is_selective = consumer is not None and consumer.is_selective()

    def accepts(self, message: Message) -> bool:
        """Tell whether the subscription wants *message*."""
        return self.consumer is not None and self.consumer.accepts(message)

    def offer(self, references: Sequence[Reference]) -> None:
        """Take messages; the consumer has them at once if it has room and nothing waits."""
        consumer = self.consumer
        room = 0 if consumer is None or self.ready else consumer.credit()
        if consumer is None or room < len(references):
            self.ready.extend(references)
            self.activate()
        else:
            self.statistics.dispatched += len(references)
            consumer.deliver(references)

    def dispatch(self) -> None:
        """Send what the consumer has room for."""
        consumer, ready = self.consumer, self.ready
        while consumer is not None and ready and consumer.credit() > 0:
            if ready[0].message is None:
                self.page_in()
            reference = ready.popleft()
            if self.is_expired(reference.loaded):
                self.expire(reference)
                continue
            self.statistics.dispatched += 1
            consumer.deliver((reference,))

    def _remove(self, reference: Reference, receipt: Receipt | None = None) -> Receipt | None:
        """End this subscription's part in a message."""
        store = self.context.store
        if self.subscription is not None and reference.state:
            store.remove(self.destination, reference, receipt, self.subscription)
        else:
            self._let_go(reference)
            if receipt is not None:
                receipt.settle()
        return None

    def forget_applied(self, references: Sequence[Reference]) -> None:
        """Let go of messages whose removal a committed transaction has stored."""
        for reference in references:
            if self.subscription is None or not reference.state:
                self._let_go(reference)
        super().forget_applied(references)

    def _refund(self, references: Sequence[Reference]) -> None:
        """Give the memory back of messages that no other subscription waits for."""
        ended = [reference for reference in references if reference.holders <= 0]
        if ended:
            self.residency.refund(ended)

    def keeps(self, reference: Reference) -> bool:
        """Tell whether the store must learn that this subscription is done with a message."""
        return self.subscription is not None and super().keeps(reference)

    def _let_go(self, reference: Reference) -> None:
        if reference.state:
            self.context.store.release(reference)
        else:
            reference.holders -= 1

    def close(self) -> None:
        """Let go of everything that waits: the subscription is gone."""
        self.expiry.stop()
        for reference in self.ready:
            self._let_go(reference)
        self._refund([*self.ready])
        self.ready.clear()


class DurableSubscription(TopicSubscription):
    """A subscription that goes on collecting while its consumer is away."""

    __slots__ = ("selective",)

    def __init__(self, context: Context, topic: "Topic", subscription: Subscription) -> None:
        super().__init__(context, topic, None, subscription)
        # Decides what to collect while no consumer is there to do it.
        self.selective: Consumer | None = None

    def accepts(self, message: Message) -> bool:
        """Tell whether the subscription wants *message*, its consumer there or not."""
        return self.selective is None or self.selective.accepts(message)
