"""Consumers come and go: queues, topics, wildcards, composites, browsers, durable subscriptions."""

from collections.abc import Callable
from typing import Final

from lockkeeper.broker.access.guard import Guard
from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.durables import Durables
from lockkeeper.broker.errors import BrokerError, InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.names import check_name, check_text
from lockkeeper.broker.outputs import ConsumerClosed, WindowChanged
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.registry import Registry
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.broker.subscriptions.browser import Browse, begin_browsing
from lockkeeper.broker.subscriptions.choosing import compiled
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.durable import DurableSubscription
from lockkeeper.broker.subscriptions.network import network_selector
from lockkeeper.broker.subscriptions.places import by_destination
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Receipt, Reference

DELIVERED_NOTHING, DELIVERED_UNKNOWN = -1, -2
# How long a client may take to close a consumer that it was told to close (ActiveMQ's).
CLOSE_MS_MAX: Final = 1000


class SubscriptionManager:
    """Everything about a consumer but its messages."""

    def __init__(
        self,
        context: Context,
        registry: Registry,
        settings: BrokerSettings,
        guard: Guard,
        removed: Callable[[DurableSubscription], None],
    ) -> None:
        """*removed* is called with every durable subscription of a topic that ends."""
        self._guard = guard
        self._context = context
        self._registry = registry
        self._settings = settings
        self.lasting = Durables(context, registry, settings, removed)
        self.durables = self.lasting.groups
        self.temporary: dict[Destination, Connection] = {}

    def subscribe(
        self, connection: Connection, request: ConsumeRequest, receipt: Receipt | None
    ) -> Consumer:
        """Make a consumer. Raises BrokerError, with nothing changed."""
        selector = compiled(request.selector)
        if request.network is not None and request.subscription_name is None:
            selector = network_selector(request.network, selector)
        self._check_request(connection, request)
        consumer = Consumer(connection, request, selector)
        if request.subscription_name is not None:
            self._attach_durable(consumer, receipt)
        else:
            try:
                for destination in request.destination.parts():
                    self._attach(consumer, destination)
                if consumer.browser:
                    begin_browsing(consumer)
            except Exception:
                # It may be attached to some of several destinations already.
                self._withdraw(consumer, DELIVERED_NOTHING)
                raise
            if receipt is not None:
                receipt.settle()
        connection.consumers[request.identifier] = consumer
        self._context.events.consumer_added(consumer)
        return consumer

    def _check_request(self, connection: Connection, request: ConsumeRequest) -> None:
        if not connection.identifier:
            raise BrokerError("a consumer before its connection was announced")
        if request.identifier in connection.consumers:
            raise BrokerError(f"the consumer {request.identifier} exists already")
        most = self._settings.limits.consumers
        if len(connection.consumers) >= most:
            raise ResourceAllocationError(
                f"the connection has {most} consumers already (limits.consumers)"
            )
        check_name(request.destination)
        if request.subscription_name is not None:
            check_text(f"{connection.client_id}:{request.subscription_name}")
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
        # A list may name the same one several times, by wildcards too.
        known = {backlog.destination for backlog in consumer.backlogs}
        for region in regions:
            if region.destination in known:
                continue
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
            consumer.connection.put(WindowChanged(consumer.tag, consumer.destination, chosen))

    def _attach_durable(self, consumer: Consumer, receipt: Receipt | None) -> None:
        """Resume a durable subscription or begin it (openwire.md section 7.4)."""
        group = self.lasting.find(consumer, receipt)
        first = group.destination.parts()[0]
        self._apply_prefetch(consumer, self._context.policies.find(first), first)
        group.resume(consumer)

    def unsubscribe(self, consumer: Consumer, last_delivered: int) -> None:
        """End a consumer; what it holds unacknowledged goes back (openwire.md section 7.5)."""
        if consumer.closed:
            return
        consumer.connection.consumers.pop(consumer.identifier, None)
        self._withdraw(consumer, last_delivered)
        self._context.events.consumer_removed(consumer)

    def _withdraw(self, consumer: Consumer, last_delivered: int) -> None:
        """Detach a consumer from wherever it takes part, and give back what it holds."""
        consumer.closed = True
        self._registry.unwatch(consumer)
        unacknowledged = list(consumer.dispatched.values())
        consumer.dispatched = {}
        failed = set(_failed(unacknowledged, last_delivered))
        held = by_destination(unacknowledged)
        self.lasting.left(consumer)
        contained = self._context.containment
        for backlog in consumer.backlogs:
            with contained.at("connection", backlog.destination):
                backlog.detach(consumer)
            own = held.get(backlog.destination, [])
            backlog.count_failures([each for each in own if each in failed])
            try:
                backlog.give_back(own)
            except Exception as error:
                backlog.put_back(own)
                self._context.set_aside(backlog, error)

    def close(self, consumer: Consumer) -> None:
        """Have a client close its consumer; it goes anyway if that takes the client too long."""
        consumer.connection.put(ConsumerClosed(consumer.tag))
        due = self._context.steady + CLOSE_MS_MAX
        self._context.timers.call_at(due, lambda: self.unsubscribe(consumer, DELIVERED_UNKNOWN))

    def close_all(self, destination: Destination) -> None:
        """End all consumers and subscriptions of a destination that is about to go."""
        region = self._registry.find(destination)
        if region is None:
            return
        topic = self._registry.find_topic(destination)
        durables = [] if topic is None else topic.durables.copy()
        for consumer in list(region.takers()):
            consumer.connection.put(ConsumerClosed(consumer.tag))
            self.unsubscribe(consumer, DELIVERED_UNKNOWN)
        for durable in durables:
            self.lasting.topic_ends(durable)


def _failed(references: list[Reference], last_delivered: int) -> list[Reference]:
    """Return what the application has seen and not acknowledged (openwire.md section 7.5)."""
    if last_delivered == DELIVERED_NOTHING:
        return []
    if last_delivered == DELIVERED_UNKNOWN:
        return references
    sequences = [reference.loaded.sequence for reference in references]
    seen = sequences.index(last_delivered) + 1 if last_delivered in sequences else 0
    return references[:seen]
