"""Topics: each message goes to every subscription that wants it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockkeeper.broker.context import Context
from lockkeeper.broker.regions.levels import priority_of
from lockkeeper.broker.regions.residency import Residency
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.broker.subscriptions.topic import DurableSubscription, TopicSubscription
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import VOLATILE, Receipt, Reference, Subscription

if TYPE_CHECKING:
    from lockkeeper.broker.routing.rule import Rule
    from lockkeeper.broker.subscriptions.consumer import Consumer


class Topic:
    """A topic, its consumers' subscriptions and its durable ones.

    `rules` forward what is sent to it.
    """

    __slots__ = (
        "context",
        "destination",
        "durables",
        "fresh",
        "is_active",
        "policy",
        "residency",
        "rules",
        "statistics",
        "volatiles",
    )

    def __init__(self, context: Context, destination: Destination) -> None:
        self.context = context
        self.destination = destination
        self.policy = context.policies.find(destination)
        self.statistics = Statistics()
        self.residency = Residency(context, destination, self.policy.memory_limit)
        self.is_active = False
        self.fresh: list[Reference] = []
        self.volatiles: list[TopicSubscription] = []
        self.durables: list[DurableSubscription] = []
        self.rules: tuple[Rule, ...] = ()

    def accept(self, message: Message, receipt: Receipt | None) -> None:
        """Take a message; see `Route.accept`."""
        reference = Reference(message, len(message.body))
        if self.stores(reference):
            self.context.store.add(self.destination, reference, receipt)
        elif receipt is not None:
            receipt.settle()
        self.admit(reference)

    def stores(self, reference: Reference) -> bool:
        """Tell whether a durable subscription may need the message after a restart.

        Its priority is noted if that counts.
        """
        if self.policy.prioritized_messages:
            reference.priority = priority_of(reference.loaded)
        if not self.durables or not reference.loaded.persistent:
            return False
        reference.holders = len(self.durables)
        return True

    def admit(self, reference: Reference) -> None:
        """Make a message visible; subscriptions are offered it at the end of this tick."""
        self.statistics.enqueued += 1
        if not self.volatiles and not self.durables:
            return
        self.residency.charge(reference)
        self.fresh.append(reference)
        if not self.is_active:
            self.is_active = True
            self.context.active.append(self)

    def dispatch(self) -> None:
        """Offer new messages to every subscription that wants them, all at once to each."""
        fresh, self.fresh = self.fresh, []
        if not fresh:
            return
        everybody = [taker for taker in self.volatiles if not taker.is_selective]
        for reference in fresh:
            stored_for = 0 if reference.state == VOLATILE else reference.holders
            reference.holders = stored_for + len(everybody)
        selected = [*self._select(fresh), *self._collect(fresh)]
        for taker in everybody:
            taker.offer(fresh)
        for taker, chosen in selected:
            taker.offer(chosen)
        self.residency.refund([reference for reference in fresh if reference.holders <= 0])

    def _select(
        self, fresh: list[Reference]
    ) -> Iterator[tuple[TopicSubscription, list[Reference]]]:
        """Yield what each consumer wants that does not want everything."""
        for taker in self.volatiles:
            if taker.is_selective:
                chosen = [reference for reference in fresh if taker.accepts(reference.loaded)]
                for reference in chosen:
                    reference.holders += 1
                yield taker, chosen

    def _collect(
        self, fresh: list[Reference]
    ) -> Iterator[tuple[TopicSubscription, list[Reference]]]:
        """Yield what each durable subscription wants; the store learns what it does not."""
        for durable in self.durables:
            chosen = []
            for reference in fresh:
                if durable.accepts(reference.loaded):
                    chosen.append(reference)
                    reference.holders += reference.state == VOLATILE
                elif reference.state != VOLATILE:
                    # ActiveMQ records the refusal too; a replay would deliver the message else.
                    self.context.store.remove(
                        self.destination, reference, None, durable.subscription
                    )
            yield durable, chosen

    def memory_full(self) -> bool:
        """Tell whether the topic's own memory limit is reached."""
        return self.residency.is_full()

    def attach(self, consumer: "Consumer") -> TopicSubscription:
        """Let a consumer take part that is not durable, from the next message on."""
        self.dispatch()
        subscription = TopicSubscription(self.context, self, consumer)
        self.volatiles.append(subscription)
        consumer.backlogs.append(subscription)
        return subscription

    def detach(self, subscription: TopicSubscription) -> None:
        """End a consumer's part, and forget what it was not sent."""
        self.volatiles.remove(subscription)
        subscription.close()

    def add_durable(self, subscription: Subscription) -> DurableSubscription:
        """Begin to collect for a durable subscription, from the next message on."""
        self.dispatch()
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
