"""Registry of durable subscriptions, and of the topics that each of them collects from."""

from collections.abc import Callable

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import (
    BrokerError,
    InvalidClientIdError,
    InvalidDestinationError,
    InvalidSelectorError,
)
from lockkeeper.broker.regions.registry import Registry
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.selectors import Selector
from lockkeeper.broker.settings import NEVER, BrokerSettings
from lockkeeper.broker.subscriptions.choosing import compiled
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.durable import DurableSubscription
from lockkeeper.broker.subscriptions.group import DurableGroup
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Receipt, RecoveredSubscription, Subscription


class Durables:
    """All durable subscriptions, in `groups` by their key."""

    def __init__(
        self,
        context: Context,
        registry: Registry,
        settings: BrokerSettings,
        removed: Callable[[DurableSubscription], None],
    ) -> None:
        """*removed* is called with every subscription of a topic that ends."""
        self._context = context
        self._registry = registry
        self._settings = settings
        self._removed = removed
        self.groups: dict[str, DurableGroup] = {}

    # With the broker

    def recover(self, recovered: RecoveredSubscription) -> None:
        """Take back what the store has of a durable subscription, for one topic."""
        subscription = recovered.subscription
        group = self.groups.get(subscription.key)
        if group is None:
            wanted = subscription.wanted or subscription.destination
            own = subscription._replace(destination=wanted, wanted=None)
            group = self._begin(own, self._understood(own))
        place = subscription.destination
        if place.is_queue or place.is_composite or place.is_pattern:
            group.strays.append(recovered)
            return
        topic = self._registry.ensure_topic(self._context, place)
        group.add(topic, subscription).restore(recovered.pending)

    def _understood(self, subscription: Subscription) -> Selector | None:
        """Return the selector of a subscription in the journal.

        One that is not understood, such as ActiveMQ's XPATH, selects everything, so that nothing
        is lost; a client cannot go on with that subscription here.
        """
        try:
            return compiled(subscription.selector)
        except InvalidSelectorError as error:
            self._context.containment.note_error("message", subscription.key, error)
            return None

    def start(self) -> None:
        """Go on collecting once all is recovered; look for what was offline for too long."""
        for group in self.groups.values():
            if group.is_open:
                group.extend(self._follow(group))
        settings = self._settings
        period = settings.offline_durable_subscriber_task_schedule
        if NEVER not in (settings.offline_durable_subscriber_timeout, period):
            self._context.timers.call_at(self._context.steady + period, self._drop_abandoned)

    def _drop_abandoned(self) -> None:
        settings = self._settings
        oldest = self._context.steady - settings.offline_durable_subscriber_timeout
        for group in list(self.groups.values()):
            if group.offline_since is not None and group.offline_since <= oldest:
                self._drop(group, None)
        due = self._context.steady + settings.offline_durable_subscriber_task_schedule
        self._context.timers.call_at(due, self._drop_abandoned)

    # With consumers

    def find(self, consumer: Consumer, receipt: Receipt | None) -> DurableGroup:
        """Return the durable subscription that a consumer wants, begun if need be.

        What is known by the same name but is for something else ends (openwire.md section 7.4).
        Raises BrokerError.
        """
        wanted = _wanted(consumer)
        group = self.groups.get(wanted.key)
        if group is not None:
            _require_owner(group, wanted)
        if group is not None and group.consumer is not None:
            raise BrokerError(
                f"Durable consumer is in use for client: {wanted.client_id} and "
                f"subscriptionName: {wanted.name}"
            )
        if group is not None and group.is_as(wanted):
            if receipt is not None:
                receipt.settle()
            return group
        if group is not None:
            _check_reading(consumer.connection.rights, group)
        for destination in wanted.destination.parts():
            if not destination.is_pattern:
                self._registry.open(self._context, destination)
        if group is not None:
            self._drop(group, None)
        group = self._begin(wanted, consumer.selector)
        group.extend(self._follow(group), receipt)
        return group

    def left(self, consumer: Consumer) -> None:
        """Note that a consumer has ended, if it was one of a durable subscription."""
        if consumer.subscription_name is not None:
            key = f"{consumer.connection.client_id}:{consumer.subscription_name}"
            group = self.groups.get(key)
            if group is not None and group.consumer is consumer:
                group.pause()

    def forget(
        self, client_id: str, name: str, receipt: Receipt | None, rights: Rights | None = None
    ) -> None:
        """Delete a durable subscription. Raises BrokerError when unknown, in use or forbidden."""
        group = self.groups.get(f"{client_id}:{name}")
        if group is None or group.owner != (client_id, name):
            raise InvalidDestinationError(
                f"No durable subscription exists for clientID: {client_id} and "
                f"subscriptionName: {name}"
            )
        if group.consumer is not None:
            raise BrokerError("Durable consumer is in use")
        _check_reading(rights, group)
        self._end(group, receipt)

    # With topics

    def topic_ends(self, durable: DurableSubscription) -> None:
        """End a durable subscription whose topic goes; if it is for others, too, only this part."""
        assert durable.subscription is not None
        group = self.groups[durable.subscription.key]
        if group.is_open:
            group.remove(durable)
        else:
            self._end(group, None)

    def _follow(self, group: DurableGroup) -> list[Topic]:
        """Return the topics that a new group is for; to those to come it will be extended."""
        topics: dict[Destination, Topic] = {}
        for pattern in group.destination.parts():
            if not pattern.is_pattern:
                self._registry.ensure(self._context, pattern)
            for topic in self._registry.matching_topics(pattern):
                topics[topic.destination] = topic
            if group.is_open:
                self._registry.follow(pattern, group)
        return list(topics.values())

    def _begin(self, subscription: Subscription, selector: Selector | None) -> DurableGroup:
        keeps_active = self._settings.keep_durable_subs_active
        group = DurableGroup(self._context, subscription, selector, keeps_active, self._removed)
        self.groups[subscription.key] = group
        return group

    def _end(self, group: DurableGroup, receipt: Receipt | None) -> None:
        self._drop(group, receipt)
        self._context.advisories.subscription_removed(group.subscription)

    def _drop(self, group: DurableGroup, receipt: Receipt | None) -> None:
        del self.groups[group.subscription.key]
        self._registry.unfollow(group)
        group.close(receipt)


def _wanted(consumer: Consumer) -> Subscription:
    """Return the subscription that a consumer asks for. Raises BrokerError."""
    client_id, name = consumer.connection.client_id, consumer.subscription_name
    destination, text = consumer.destination, consumer.request.selector
    if not client_id:
        raise InvalidClientIdError("a durable subscription needs a client id")
    if not all(part.is_topic for part in destination.parts()):
        raise InvalidDestinationError(f"a durable subscription is for topics, not {destination}")
    if any(is_advisory(part) for part in destination.parts()):
        raise BrokerError("Cannot create a durable subscription for an advisory Topic")
    selector = text if text and text.strip() else None
    return Subscription(client_id, name or "", destination, selector, consumer.no_local)


def _require_owner(group: DurableGroup, wanted: Subscription) -> None:
    """Raise BrokerError where another client's subscription has the same key in the journal."""
    held = group.subscription
    if group.owner != (wanted.client_id, wanted.name):
        raise BrokerError(
            f"The durable subscription {wanted.name} of {wanted.client_id} would be stored as "
            f"{held.key}, as the durable subscription {held.name} of {held.client_id} is: choose "
            "another name"
        )


def _check_reading(rights: Rights | None, group: DurableGroup) -> None:
    """Make sure that who ends a durable subscription could read it. Raises AccessDeniedError."""
    if rights is not None:
        rights.require(Right.READ, group.destination)
