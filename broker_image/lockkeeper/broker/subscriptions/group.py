"""Durable subscriptions as their clients know them: to a topic, or to all a wildcard stands for."""

from collections.abc import Callable, Sequence

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.context import Context
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.selectors import Selector
from lockkeeper.broker.subscriptions.consumer import Consumer, own_prefix
from lockkeeper.broker.subscriptions.durable import DurableSubscription
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Receipt, RecoveredSubscription, Subscription


class DurableGroup:
    """A durable subscription, with a part for each of its topics: one, unless it is open.

    `subscription` says what was subscribed to. `offline_since` is when the last consumer left
    (ms of `steady`), or when the broker read the subscription; None while there is a consumer.
    `strays` are of ActiveMQ, where a list or a wildcard may be a topic of that name, too, or of
    a queue, in a journal that no broker should have written.
    """

    __slots__ = (
        "_context",
        "_keeps_active",
        "_own",
        "_removed",
        "_selector",
        "_topics",
        "consumer",
        "offline_since",
        "parts",
        "strays",
        "subscription",
    )

    def __init__(
        self,
        context: Context,
        subscription: Subscription,
        selector: Selector | None,
        keeps_active: bool,
        removed: Callable[[DurableSubscription], None],
    ) -> None:
        """*keeps_active* says whether messages that are not persistent are collected offline.

        *removed* is called with every part that ends before its consumers do.
        """
        self._context = context
        self._removed = removed
        self._topics: dict[Destination, Topic] = {}
        self._selector = selector
        self._keeps_active = keeps_active
        self._own: bytes | None = None
        self.subscription = subscription
        self.parts: dict[Destination, DurableSubscription] = {}
        self.strays: list[RecoveredSubscription] = []
        self.consumer: Consumer | None = None
        self.offline_since: int | None = context.steady

    @property
    def destination(self) -> Destination:
        """The destination, pattern or composite that the client subscribed to."""
        return self.subscription.destination

    @property
    def owner(self) -> tuple[str, str]:
        """The client id, and the name that the client knows it by."""
        return self.subscription.client_id, self.subscription.name

    @property
    def is_open(self) -> bool:
        """Tell whether the group gets a part for each topic to come that it is for."""
        return self.destination.is_pattern or self.destination.is_composite

    def is_as(self, wanted: Subscription) -> bool:
        """Tell whether a client that wants this subscription may go on with this one."""
        stored = [part.subscription for part in self.parts.values()]
        chosen = (wanted.selector, wanted.no_local)
        return self.subscription == wanted and all(
            each is not None and (each.selector, each.no_local) == chosen for each in stored
        )

    def add(self, topic: Topic, subscription: Subscription) -> DurableSubscription:
        """Begin to collect what comes to *topic*, for the consumer if there is one."""
        part = topic.add_durable(subscription, self._selector, self._keeps_active)
        self.parts[topic.destination] = part
        self._topics[topic.destination] = topic
        part.disown(self._own)
        if self.consumer is not None:
            self._hand(part, self.consumer)
        return part

    def extend(self, topics: Sequence[Topic], receipt: Receipt | None = None) -> None:
        """Begin to collect for good what comes to *topics*; *receipt* is for when that is stored.

        ActiveMQ, too, stores one record for each topic, and none for a wildcard itself.
        """
        fresh = [
            topic
            for topic in topics
            if topic.destination not in self.parts and not is_advisory(topic.destination)
        ]
        for topic in fresh:
            wanted = self.destination if self.is_open else None
            subscription = self.subscription._replace(destination=topic.destination, wanted=wanted)
            self.add(topic, subscription)
            is_last = topic is fresh[-1]
            self._context.store.subscribe(subscription, receipt if is_last else None)
        if not fresh and receipt is not None:
            receipt.settle()

    def resume(self, consumer: Consumer) -> None:
        """Go on with a consumer: it has what all parts collect."""
        self.consumer = consumer
        self.offline_since = None
        self._own = own_prefix(consumer.connection) if consumer.no_local else None
        for part in self.parts.values():
            self._hand(part, consumer)

    def _hand(self, part: DurableSubscription, consumer: Consumer) -> None:
        consumer.backlogs.append(part)
        self._topics[part.destination].resume_durable(part, consumer)

    def pause(self) -> None:
        """Go on without a consumer; its parts do so on their own."""
        self.consumer = None
        self.offline_since = self._context.steady

    def remove(self, part: DurableSubscription) -> None:
        """Stop collecting what comes to one of several topics, and forget what came."""
        assert part.subscription is not None
        del self.parts[part.destination]
        self._end(part)
        self._context.store.unsubscribe(part.subscription, None)

    def _end(self, part: DurableSubscription) -> None:
        self._topics.pop(part.destination).remove_durable(part)
        self._removed(part)

    def close(self, receipt: Receipt | None) -> None:
        """End the subscription; *receipt* is for when that is stored."""
        store = self._context.store
        ended = []
        for part in self.parts.values():
            assert part.subscription is not None
            self._end(part)
            ended.append(part.subscription)
        for stray in self.strays:
            for reference in stray.pending:
                store.release(reference)
            ended.append(stray.subscription)
        for subscription in ended:
            is_last = subscription is ended[-1]
            store.unsubscribe(subscription, receipt if is_last else None)
        if not ended and receipt is not None:
            receipt.settle()
