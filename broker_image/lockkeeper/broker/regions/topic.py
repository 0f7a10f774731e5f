"""Topics: each message goes to every subscription that wants it."""

from typing import TYPE_CHECKING

from lockkeeper.broker.context import Context
from lockkeeper.broker.regions.residency import Residency
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.broker.subscriptions.topic import DurableSubscription, TopicSubscription
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import VOLATILE, Receipt, Reference, Subscription

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer


class Topic:
    """A topic, its consumers' subscriptions and its durable ones."""

    __slots__ = (
        "context",
        "destination",
        "durables",
        "policy",
        "residency",
        "statistics",
        "volatiles",
    )

    def __init__(self, context: Context, destination: Destination) -> None:
        self.context = context
        self.destination = destination
        self.policy = context.policies.find(destination)
        self.statistics = Statistics()
        self.residency = Residency(context, self.policy.memory_limit)
        self.volatiles: list[TopicSubscription] = []
        self.durables: list[DurableSubscription] = []

    def accept(self, message: Message, receipt: Receipt | None) -> None:
        """Take a message; see `Route.accept`."""
        reference = Reference(message, len(message.body))
        if self.stores(reference):
            self.context.store.add(self.destination, reference, receipt)
        elif receipt is not None:
            receipt.settle()
        self.admit(reference)

    def stores(self, reference: Reference) -> bool:
        """Tell whether a durable subscription exists that may need the message after a restart."""
        if not self.durables or not reference.loaded.persistent:
            return False
        reference.holders = len(self.durables)
        return True

    def admit(self, reference: Reference) -> None:
        """Offer a message to every subscription whose storing is in order."""
        self.statistics.enqueued += 1
        message = reference.loaded
        takers = [
            taker for taker in self.volatiles if not taker.is_selective or taker.accepts(message)
        ]
        if self.durables:
            takers += self._durable_takers(reference)
        if reference.state == VOLATILE:
            reference.holders = len(takers)
        else:
            reference.holders += sum(taker.subscription is None for taker in takers)
        if not takers:
            return
        self.residency.charge(reference)
        sent = 0
        for taker in takers:
            if taker.offer(reference):
                sent += 1
        self.statistics.dispatched += sent

    def _durable_takers(self, reference: Reference) -> list[TopicSubscription]:
        """Return the durable subscriptions that want a message; the store learns of the others."""
        takers: list[TopicSubscription] = []
        for durable in self.durables:
            if durable.accepts(reference.loaded):
                takers.append(durable)
            elif reference.state != VOLATILE:
                # ActiveMQ records the refusal too; a replay would deliver the message else.
                self.context.store.remove(self.destination, reference, None, durable.subscription)
        return takers

    def memory_full(self) -> bool:
        """Tell whether the topic's own memory limit is reached."""
        return self.residency.is_full()

    def attach(self, consumer: "Consumer") -> TopicSubscription:
        """Let a consumer take part that is not durable."""
        subscription = TopicSubscription(self.context, self, consumer)
        self.volatiles.append(subscription)
        consumer.backlogs.append(subscription)
        return subscription

    def detach(self, subscription: TopicSubscription) -> None:
        """End a consumer's part, and forget what it was not sent."""
        self.volatiles.remove(subscription)
        subscription.close()

    def add_durable(self, subscription: Subscription) -> DurableSubscription:
        """Begin to collect for a durable subscription."""
        durable = DurableSubscription(self.context, self, subscription)
        self.durables.append(durable)
        return durable

    def remove_durable(self, durable: DurableSubscription) -> None:
        """Stop collecting for a durable subscription, and forget what it collected."""
        self.durables.remove(durable)
        durable.close()

    def depth(self) -> int:
        """Return how many messages wait for durable subscriptions, each counted for each."""
        return sum(durable.depth() for durable in self.durables)
