"""Consumers come and go: queues, topics, wildcards, composites, browsers, durable subscriptions."""

from lockkeeper.broker.access.guard import Guard
from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import (
    BrokerError,
    InvalidClientIdError,
    InvalidDestinationError,
    InvalidSelectorError,
    ResourceAllocationError,
)
from lockkeeper.broker.outputs import ConsumerClosed, WindowChanged
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.registry import Registry
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.selectors import InvalidSelectorError as BadSelectorError
from lockkeeper.broker.selectors import Selector, compile_selector
from lockkeeper.broker.settings import NEVER, BrokerSettings
from lockkeeper.broker.subscriptions.browser import Browse, begin_browsing
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.durable import DurableSubscription
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.broker.subscriptions.volatile import VolatileSubscription
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Receipt, RecoveredSubscription, Reference, Subscription

DELIVERED_NOTHING, DELIVERED_UNKNOWN = -1, -2
# How long a client may take to close a consumer that it was told to close (ActiveMQ's).
CLOSE_MS_MAX = 1000


class Subscribing:
    """Everything about a consumer but its messages."""

    def __init__(
        self, context: Context, registry: Registry, settings: BrokerSettings, guard: Guard
    ) -> None:
        self._guard = guard
        self._context = context
        self._registry = registry
        self._settings = settings
        self.durables: dict[str, DurableSubscription] = {}
        self.temporary: dict[Destination, Connection] = {}

    def recover(self, recovered: RecoveredSubscription) -> None:
        """Take back a durable subscription of the store."""
        durable = self._add_durable(recovered.subscription)
        durable.restore(recovered.pending)

    def start(self) -> None:
        """Begin to look for durable subscriptions that were offline for too long, if asked to."""
        settings = self._settings
        period = settings.offline_durable_subscriber_task_schedule
        if NEVER not in (settings.offline_durable_subscriber_timeout, period):
            self._context.timers.call_at(self._context.now + period, self._drop_abandoned)

    def _drop_abandoned(self) -> None:
        oldest = self._context.now - self._settings.offline_durable_subscriber_timeout
        for durable in list(self.durables.values()):
            if durable.offline_since is not None and durable.offline_since <= oldest:
                self._drop(durable, None)
        self.start()

    def subscribe(
        self, connection: Connection, request: ConsumeRequest, receipt: Receipt | None
    ) -> Consumer:
        """Make a consumer. Raises BrokerError, with nothing changed."""
        selector = _compiled(request.selector)
        self._check(connection, request)
        consumer = Consumer(connection, request, selector)
        if request.subscription_name is not None:
            self._attach_durable(consumer, receipt)
        else:
            for destination in request.destination.parts():
                self._attach(consumer, destination)
            if consumer.browser:
                begin_browsing(consumer)
            if receipt is not None:
                receipt.settle()
        connection.consumers[request.identifier] = consumer
        self._context.advisories.consumer_added(consumer)
        self._context.listener.consumer_added(consumer)
        return consumer

    def _check(self, connection: Connection, request: ConsumeRequest) -> None:
        if not connection.identifier:
            raise BrokerError("a consumer before its connection was announced")
        if request.identifier in connection.consumers:
            raise BrokerError(f"the consumer {request.identifier} exists already")
        most = self._settings.limits.consumers
        if len(connection.consumers) >= most:
            raise ResourceAllocationError(
                f"the connection has {most} consumers already (limits.consumers)"
            )
        if connection.rights is not None:
            self._guard.check_consuming(connection.rights, request.destination, request.browser)
        for destination in request.destination.parts():
            owner = self.temporary.get(destination)
            if destination.is_temporary and owner is not connection:
                raise InvalidDestinationError(
                    f"Cannot use a temporary destination of another connection: {destination}"
                )

    def _attach(self, consumer: Consumer, destination: Destination) -> None:
        """Attach a consumer to one destination, or to all that its wildcard stands for."""
        if destination.is_pattern and not is_advisory(destination):
            if not consumer.browser:
                self._registry.open_claimed(self._context, destination)
            regions = self._registry.matching(destination)
            self._registry.watch(destination, consumer)
        elif destination.is_pattern:
            # Advisories come to the wildcard itself.
            regions = [self._registry.ensure(self._context, destination)]
        else:
            regions = [self._registry.open(self._context, destination)]
        self._apply_prefetch(consumer, self._context.policies.find(destination), destination)
        for region in regions:
            if not consumer.browser:
                region.attach(consumer)
            elif isinstance(region, Queue):
                consumer.backlogs.append(Browse(region, consumer))
        if is_advisory(destination):
            self._context.advisories.replay(consumer, destination)

    def _apply_prefetch(
        self, consumer: Consumer, policy: DestinationPolicy, destination: Destination
    ) -> None:
        """Let the policy choose the window where the client did not (ActiveMQ's rule)."""
        chosen = policy.prefetch.window(consumer, destination.is_queue)
        if consumer.prefetch != chosen:
            consumer.prefetch = chosen
            consumer.connection.put(WindowChanged(consumer, chosen))

    def _attach_durable(self, consumer: Consumer, receipt: Receipt | None) -> None:
        """Resume a durable subscription or begin it (openwire.md section 7.4)."""
        subscription = self._wanted(consumer)
        durable = self.durables.get(subscription.key)
        if durable is not None and durable.consumer is not None:
            raise BrokerError(
                f"Durable consumer is in use for client: {subscription.client_id} and "
                f"subscriptionName: {subscription.name}"
            )
        if durable is None or durable.subscription != subscription:
            if durable is not None:
                _check_reading(consumer.connection.rights, durable)
                self._drop(durable, None)
            durable = self._add_durable(subscription)
            self._context.store.subscribe(subscription, receipt)
        elif receipt is not None:
            receipt.settle()
        self._apply_prefetch(consumer, durable.policy, durable.destination)
        consumer.backlogs.append(durable)
        durable.topic.resume_durable(durable, consumer)

    def _wanted(self, consumer: Consumer) -> Subscription:
        client_id, name = consumer.connection.client_id, consumer.subscription_name
        if not client_id:
            raise InvalidClientIdError("a durable subscription needs a client id")
        if not consumer.destination.is_topic or len(consumer.destination.parts()) > 1:
            raise InvalidDestinationError(
                f"a durable subscription is for one topic, not {consumer.destination}"
            )
        if is_advisory(consumer.destination):
            raise BrokerError("Cannot create a durable subscription for an advisory Topic")
        text = consumer.request.selector
        selector = text if text and text.strip() else None
        destination, no_local = consumer.destination, consumer.no_local
        return Subscription(client_id, name or "", destination, selector, no_local)

    def _add_durable(self, subscription: Subscription) -> DurableSubscription:
        region = self._registry.open(self._context, subscription.destination)
        assert isinstance(region, Topic)
        keeps_active = self._settings.keep_durable_subs_active
        selector = _compiled(subscription.selector)
        durable = region.add_durable(subscription, selector, keeps_active)
        self.durables[subscription.key] = durable
        return durable

    def unsubscribe(self, consumer: Consumer, last_delivered: int) -> None:
        """End a consumer; what it holds unacknowledged goes back (openwire.md section 7.5)."""
        if consumer.closed:
            return
        consumer.closed = True
        consumer.connection.consumers.pop(consumer.identifier, None)
        self._registry.unwatch(consumer)
        unacknowledged = list(consumer.dispatched.values())
        consumer.dispatched = {}
        _count_redeliveries(unacknowledged, last_delivered)
        for backlog in consumer.backlogs:
            self._detach(consumer, backlog)
            backlog.give_back(
                [kept for kept in unacknowledged if kept.loaded.destination == backlog.destination]
            )
        self._context.advisories.consumer_removed(consumer)
        self._context.listener.consumer_removed(consumer)

    def _detach(self, consumer: Consumer, backlog: object) -> None:
        if isinstance(backlog, Queue):
            backlog.detach(consumer)
        elif isinstance(backlog, DurableSubscription):
            backlog.pause()
        elif isinstance(backlog, VolatileSubscription):
            backlog.topic.detach(backlog)

    def close(self, consumer: Consumer) -> None:
        """Have a client close its consumer; it goes anyway if that takes the client too long."""
        consumer.connection.put(ConsumerClosed(consumer))
        due = self._context.now + CLOSE_MS_MAX
        self._context.timers.call_at(due, lambda: self.unsubscribe(consumer, DELIVERED_UNKNOWN))

    def close_all(self, destination: Destination) -> None:
        """End all consumers and subscriptions of a destination that is about to go."""
        region = self._registry.find(destination)
        consumers: list[Consumer | None] = []
        durables: list[DurableSubscription] = []
        if isinstance(region, Topic):
            durables += region.durables
            consumers += [entry.consumer for entry in (*region.volatiles, *durables)]
        elif region is not None:
            consumers += region.consumers
        for consumer in consumers:
            if consumer is not None:
                consumer.connection.put(ConsumerClosed(consumer))
                self.unsubscribe(consumer, DELIVERED_UNKNOWN)
        for durable in durables:
            self._end_durable(durable, None)

    def forget_subscription(
        self, client_id: str, name: str, receipt: Receipt | None, rights: Rights | None = None
    ) -> None:
        """Delete a durable subscription. Raises BrokerError when unknown, in use or forbidden."""
        durable = self.durables.get(f"{client_id}:{name}")
        if durable is None:
            raise InvalidDestinationError(
                f"No durable subscription exists for clientID: {client_id} and "
                f"subscriptionName: {name}"
            )
        if durable.consumer is not None:
            raise BrokerError("Durable consumer is in use")
        _check_reading(rights, durable)
        self._end_durable(durable, receipt)

    def _end_durable(self, durable: DurableSubscription, receipt: Receipt | None) -> None:
        self._drop(durable, receipt)
        assert durable.subscription is not None
        self._context.advisories.subscription_removed(durable.subscription)

    def _drop(self, durable: DurableSubscription, receipt: Receipt | None) -> None:
        subscription = durable.subscription
        assert subscription is not None
        del self.durables[subscription.key]
        durable.topic.remove_durable(durable)
        self._context.store.unsubscribe(subscription, receipt)


def _check_reading(rights: Rights | None, durable: DurableSubscription) -> None:
    """Make sure that who ends a durable subscription could read it. Raises AccessDeniedError."""
    if rights is not None:
        rights.check(Right.READ, durable.destination)


def _compiled(selector: str | None) -> Selector | None:
    if not selector or not selector.strip():
        return None
    try:
        return compile_selector(selector)
    except BadSelectorError as error:
        raise InvalidSelectorError(str(error)) from None


def _count_redeliveries(references: list[Reference], last_delivered: int) -> None:
    """Count a failed delivery for what the application has seen (openwire.md section 7.5)."""
    if last_delivered == DELIVERED_NOTHING:
        return
    if last_delivered == DELIVERED_UNKNOWN:
        seen = len(references)
    else:
        sequences = [reference.loaded.sequence for reference in references]
        seen = sequences.index(last_delivered) + 1 if last_delivered in sequences else 0
    for reference in references[:seen]:
        reference.redeliveries += 1
