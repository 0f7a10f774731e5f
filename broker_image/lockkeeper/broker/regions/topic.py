"""Topics: each message goes to every subscription that wants it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lockkeeper.broker.context import Context
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.subscription_recovery import (
    RecoveryStrategy,
    SubscriptionRecoveryPolicy,
    kept_messages,
)
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.body_cache import BodyCache
from lockkeeper.broker.regions.line import Line, pack_shared
from lockkeeper.broker.regions.priority_queue import priority_of
from lockkeeper.broker.regions.statistics import Statistics
from lockkeeper.broker.selectors import Selector
from lockkeeper.broker.shared_references import SharedReferences
from lockkeeper.broker.subscriptions.durable import DurableSubscription
from lockkeeper.broker.subscriptions.topic import TopicSubscription
from lockkeeper.broker.subscriptions.volatile import VolatileSubscription
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import VOLATILE, Receipt, Reference, Subscription

if TYPE_CHECKING:
    from lockkeeper.broker.routing.rule import Rule
    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.broker.timers import Timer


class Topic:
    """A topic, its consumers' subscriptions and its durable ones.

    With `is_advising`, it tells of messages that arrive. `kept` is what the recovery policy keeps
    for consumers to come; None if it keeps nothing. `rules` forward what is sent to it.
    `expected` are messages whose commit waits for the disk, with the durable subscriptions that
    they were stored for. One that `is_gone` was removed; there may be another of its name.
    """

    __slots__ = (
        "body_cache",
        "context",
        "destination",
        "durables",
        "expected",
        "fresh",
        "is_active",
        "is_advising",
        "is_gone",
        "kept",
        "policy",
        "rules",
        "statistics",
        "sweep_timer",
        "volatiles",
    )

    def __init__(self, context: Context, destination: Destination) -> None:
        self.context = context
        self.destination = destination
        self.policy = context.policies.find(destination)
        self.statistics = Statistics()
        self.body_cache = BodyCache(context, destination, self.policy)
        self.body_cache.pack = self.pack
        self.kept = kept_messages(self.policy.subscription_recovery)
        self.sweep_timer: Timer | None = None
        self.is_active = False
        self.is_advising = self.policy.advisories.is_about_arrival
        self.is_gone = False
        self.fresh: list[Reference] = []
        self.expected: dict[Reference, list[DurableSubscription]] = {}
        self.volatiles: list[VolatileSubscription] = []
        self.durables: list[DurableSubscription] = []
        self.rules: tuple[Rule, ...] = ()

    def adopt(self, policy: DestinationPolicy) -> None:
        """Go by another policy; whether priorities count is settled once and for all."""
        prioritized = self.policy.prioritized_messages
        self.policy = replace(policy, prioritized_messages=prioritized)
        self.body_cache.adopt(policy)
        self.is_advising = policy.advisories.is_about_arrival
        for subscription in (*self.volatiles, *self.durables):
            subscription.adopt(policy)
        self._adopt_recovery(policy.subscription_recovery)

    def _adopt_recovery(self, policy: SubscriptionRecoveryPolicy) -> None:
        if self.sweep_timer is not None:
            self.sweep_timer.cancel()
            self.sweep_timer = None
        if policy.strategy is RecoveryStrategy.NO_SUBSCRIPTION:
            self.close()
        elif self.kept is None:
            self.kept = kept_messages(policy)
        else:
            self.kept.adopt(policy)
            self._sweep()

    def accept(self, message: Message, receipt: Receipt | None) -> None:
        """Take a message; see `Route.accept`."""
        reference = Reference(message, len(message.body))
        if self.stores(reference):
            self.context.store.add(self.destination, reference, receipt)
        elif receipt is not None:
            receipt.settle()
        self.admit_run((reference,))

    def accept_run(self, messages: Sequence[Message], receipts: Sequence[Receipt | None]) -> None:
        """See `Route.accept_run`."""
        for message, receipt in zip(messages, receipts, strict=True):
            self.accept(message, receipt)

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

    def stored_later(self, references: Sequence[Reference]) -> Sequence[Reference]:
        """See `Route.stored_later`: who subscribes until they are visible comes after them."""
        stored = [reference for reference in references if self.stores(reference)]
        for reference in stored:
            self.expected[reference] = self.durables.copy()
        return stored

    def stores_never(self, references: Sequence[Reference]) -> None:
        """See `Route.stores_never`."""
        for reference in references:
            self.expected.pop(reference, None)

    def admit(self, reference: Reference) -> None:
        """Make a message visible; subscriptions are offered it at the end of this tick."""
        self.statistics.enqueued += 1
        if self.expected:
            takers = self.expected.pop(reference, self.durables)
            if takers != self.durables:
                self.dispatch()
                self.body_cache.charge(reference)
                self._offer([reference], takers)
                return
        if not self.volatiles and not self.durables and self.kept is None:
            if self.is_advising:
                self._tell_arrived((reference,), is_wanted=False)
            return
        self.body_cache.charge(reference)
        self.fresh.append(reference)
        if not self.is_active:
            self.is_active = True
            self.context.active.append(self)

    def admit_run(self, references: Sequence[Reference]) -> None:
        """See `Route.admit_run`."""
        for reference in references:
            try:
                self.admit(reference)
            except Exception as error:
                self.context.containment.note_error("receipt", self.destination, error)
                self.context.call_soon(partial(self._readmit, reference))

    def _readmit(self, reference: Reference) -> None:
        """Make visible what could not become so at once."""
        if reference not in self.fresh:
            self.admit(reference)

    def dispatch(self) -> None:
        """Offer new messages to every subscription that wants them, all at once to each."""
        fresh, self.fresh = self.fresh, []
        if fresh:
            self._offer(fresh, self.durables)

    def _offer(self, fresh: list[Reference], durables: list[DurableSubscription]) -> None:
        """Offer new messages to consumers and to these durable subscriptions."""
        if self.kept is not None:
            self._keep(fresh)
        everybody = [taker for taker in self.volatiles if not taker.is_selective]
        lasting = [taker for taker in durables if not taker.is_selective]
        takers, collectors = len(everybody), len(lasting)
        for reference in fresh:
            # The store has counted every durable subscription already.
            stored_for = collectors if reference.state == VOLATILE else reference.holders
            reference.holders = stored_for + takers
        selected = [*self._select(fresh), *self._collect(fresh, durables)]
        shared = SharedReferences(fresh) if takers + collectors > 1 else fresh
        size = sum([reference.size for reference in fresh])
        for taker in (*everybody, *lasting):
            self.context.unsent += size
            try:
                taker.offer(shared, size)
            except Exception as error:
                self._give_later(taker, shared, error)
        for taker, chosen in selected:
            size = sum([reference.size for reference in chosen])
            self.context.unsent += size
            try:
                taker.offer(chosen, size)
            except Exception as error:
                self._give_later(taker, chosen, error)
        unwanted = [reference for reference in fresh if reference.holders <= 0]
        if self.is_advising:
            self._tell_arrived([each for each in fresh if each.holders > 0], is_wanted=True)
            self._tell_arrived(unwanted, is_wanted=False)
        self.body_cache.refund(unwanted)

    def _give_later(
        self, taker: TopicSubscription, references: Sequence[Reference], error: Exception
    ) -> None:
        """Let messages wait for a subscription that could not take them."""
        taker.put_back(references)
        self.context.set_aside(taker, error)

    def _tell_arrived(self, references: Iterable[Reference], is_wanted: bool) -> None:
        for reference in references:
            self.context.advisories.arrived(
                self.destination, self.policy.advisories, reference.loaded, is_wanted
            )

    def _select(
        self, fresh: list[Reference]
    ) -> Iterator[tuple[TopicSubscription, list[Reference]]]:
        """Yield what each consumer wants that does not want everything."""
        for taker in self.volatiles:
            if taker.is_selective:
                chosen = [reference for reference in fresh if self._wants(taker, reference)]
                for reference in chosen:
                    reference.holders += 1
                yield taker, chosen

    def _collect(
        self, fresh: list[Reference], durables: list[DurableSubscription]
    ) -> Iterator[tuple[TopicSubscription, list[Reference]]]:
        """Yield what durable subscriptions want that do not want everything.

        The store learns of each what it does not want.
        """
        for durable in durables:
            if not durable.is_selective:
                continue
            chosen = []
            for reference in fresh:
                if self._wants(durable, reference):
                    chosen.append(reference)
                    reference.holders += reference.state == VOLATILE
                elif reference.state != VOLATILE:
                    # ActiveMQ records the refusal too; a replay would deliver the message else.
                    self.context.store.remove(
                        self.destination, reference, None, durable.subscription
                    )
            yield durable, chosen

    def _wants(self, taker: TopicSubscription, reference: Reference) -> bool:
        """Tell whether a subscription wants a message; one that it cannot judge it does not."""
        try:
            return taker.accepts(reference.loaded)
        except Exception as error:
            self.context.containment.note_error("message", self.destination, error)
            return taker.subscription is not None

    def backlogs(self) -> "Sequence[Backlog]":
        """Return what keeps messages until they are acknowledged: durable subscriptions."""
        return self.durables

    def takers(self) -> "list[Consumer]":
        """Return the consumers that are there."""
        subscriptions = (*self.volatiles, *self.durables)
        return [each.consumer for each in subscriptions if each.consumer is not None]

    def upcoming(self) -> Iterable[Reference]:
        """Return messages that subscriptions were not offered yet."""
        return self.fresh

    def first(self) -> Reference | None:
        """Return None: messages wait for subscriptions, not for the topic."""
        return None

    def is_subscribed(self) -> bool:
        """Tell whether there are consumers, or durable subscriptions."""
        return bool(self.volatiles or self.durables)

    def is_wanted(self, message: Message) -> bool:
        """See `Region.is_wanted`."""
        return any(each.accepts(message) for each in (*self.volatiles, *self.durables))

    def keeps_messages(self) -> bool:
        """See `Region.keeps_messages`."""
        return bool(self.volatiles or self.durables)

    def keeps_on_disk(self) -> bool:
        """See `Region.keeps_on_disk`."""
        return bool(self.durables)

    def is_read(self) -> bool:
        """See `Region.is_read`."""
        return bool(self.volatiles)

    def memory_used(self) -> int:
        """See `Region.memory_used`."""
        return self.body_cache.used

    def memory_full(self) -> bool:
        """Tell whether the topic's own memory limit is reached."""
        return self.body_cache.is_full()

    def in_flight(self) -> int:
        """Return 0: what consumers of topics hold is counted with each of them."""
        return 0

    # Consumers

    def attach(self, consumer: "Consumer") -> TopicSubscription:
        """Let a consumer take part that is not durable, from the next message on.

        A retroactive one gets what is kept, too.
        """
        self.dispatch()
        subscription = VolatileSubscription(self.context, self, consumer, self._detach)
        self.volatiles.append(subscription)
        consumer.backlogs.append(subscription)
        self.context.slow_consumers.watch(consumer, self.policy.slow_consumers)
        if consumer.request.retroactive or self.policy.always_retroactive:
            self.replay_kept(subscription)
        return subscription

    def _detach(self, subscription: VolatileSubscription) -> None:
        """End a consumer's part, and forget what it was not sent."""
        self.volatiles.remove(subscription)
        subscription.close()

    def add_durable(
        self, subscription: Subscription, selector: Selector | None, keeps_active: bool
    ) -> DurableSubscription:
        """Begin to collect for a durable subscription, from the next message on."""
        self.dispatch()
        durable = DurableSubscription(self.context, self, subscription, selector, keeps_active)
        self.durables.append(durable)
        return durable

    def resume_durable(self, durable: DurableSubscription, consumer: "Consumer") -> None:
        """Let a consumer have what a durable subscription collects.

        A retroactive one gets what is kept if nothing was collected for it (ActiveMQ's rule).
        """
        self.dispatch()
        durable.resume(consumer)
        self.context.slow_consumers.watch(consumer, self.policy.slow_consumers)
        if consumer.request.retroactive and not durable.ready:
            self.replay_kept(durable)

    def remove_durable(self, durable: DurableSubscription) -> None:
        """Stop collecting for a durable subscription, and forget what it collected."""
        self.dispatch()
        self.durables.remove(durable)
        durable.close()
        for reference, takers in self.expected.items():
            if durable in takers:
                takers.remove(durable)
                self.context.store.release(reference)

    def pack(self) -> None:
        """Pack what waits for subscriptions on the disk alone."""
        if self.kept is None:
            subscriptions = (*self.volatiles, *self.durables)
            for subscription in subscriptions:
                subscription.pack()
            lines = [each.ready for each in subscriptions]
            pack_shared([line for line in lines if isinstance(line, Line)])

    def depth(self) -> int:
        """Return how many messages wait for durable subscriptions, each counted for each."""
        return sum(durable.depth() for durable in self.durables)

    # What is kept for consumers to come

    def _keep(self, fresh: list[Reference]) -> None:
        """Keep messages as the policy says; in need of memory, only the last one."""
        kept, body_cache = self.kept, self.body_cache
        assert kept is not None
        for reference in kept.add(fresh, self.context.steady):
            body_cache.charge(reference)
        body_cache.refund(kept.trim(self.context.steady))
        while body_cache.is_tight() and len(kept.entries) > 1:
            body_cache.refund((kept.forget_oldest(),))
        self._sweep_later()

    def _sweep_later(self) -> None:
        due = self.kept.next_sweep(self.context.steady) if self.kept is not None else None
        if due is not None and self.sweep_timer is None:
            self.sweep_timer = self.context.timers.call_at(due, self._sweep)

    def _sweep(self) -> None:
        """Forget what has been kept long enough although nothing new comes."""
        self.sweep_timer = None
        if self.kept is not None:
            self.body_cache.refund(self.kept.trim(self.context.steady))
            self._sweep_later()

    def replay_kept(self, subscription: TopicSubscription) -> None:
        """Offer what is kept to a subscription that begins."""
        if self.kept is not None:
            self.body_cache.refund(self.kept.trim(self.context.steady))
            self.replay(subscription, self.kept.messages(self.context.now))

    def replay(self, subscription: TopicSubscription, messages: Iterable[Message]) -> None:
        """Offer one subscription messages that the others have had, or never get."""
        wanted = [message for message in messages if subscription.accepts(message)]
        references = [Reference(message, len(message.body)) for message in wanted]
        for reference in references:
            if self.policy.prioritized_messages:
                reference.priority = priority_of(reference.loaded)
            self.body_cache.charge(reference)
        subscription.offer(references, sum([reference.size for reference in references]))

    def close(self) -> None:
        """Let go of everything that is kept, and of what nobody was offered yet."""
        self.dispatch()
        if self.sweep_timer is not None:
            self.sweep_timer.cancel()
        if self.kept is not None:
            self.body_cache.refund([entry.reference for entry in self.kept.entries])
            self.kept = None
