"""The broker: commands of connections come in, outputs go to their outboxes."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from lockkeeper.broker.access.authenticator import Authenticator
from lockkeeper.broker.access.guard import Guard, SendingGuard
from lockkeeper.broker.acknowledging import acknowledge
from lockkeeper.broker.advisories.advisories import Advisories
from lockkeeper.broker.advisories.composer import Composer
from lockkeeper.broker.advisories.virtual_demand import VirtualDemand
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import DELIVERY_BITS, Context
from lockkeeper.broker.destinations import Destinations
from lockkeeper.broker.errors import (
    BrokerError,
    InvalidClientIdError,
    InvalidDestinationError,
    ResourceAllocationError,
)
from lockkeeper.broker.events import Heard
from lockkeeper.broker.flow.control import FlowControl
from lockkeeper.broker.inactive_destinations import InactiveDestinations
from lockkeeper.broker.interceptors.interceptor import Interceptor, interceptors
from lockkeeper.broker.interceptors.statistics_queries import StatisticsQueries
from lockkeeper.broker.names import check_name
from lockkeeper.broker.outputs import Disconnect
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.policies.prefetch import WINDOW_MAX
from lockkeeper.broker.producer_audit import ProducerAudit
from lockkeeper.broker.pulling import pull
from lockkeeper.broker.recovering import give_back
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.registry import Registry
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.requests.requests import Requests
from lockkeeper.broker.routing.forwarding import Forwarding
from lockkeeper.broker.routing.router import Router
from lockkeeper.broker.scheduling.making import SchedulerMaker
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.broker.streams.streams import Streams
from lockkeeper.broker.subscription_manager import DELIVERED_UNKNOWN, SubscriptionManager
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.timers import NEVER
from lockkeeper.broker.transaction_manager import TransactionManager
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import Identity, Past, Receipt, Store, StoreFullError, Subscription


class Broker:
    """The core of one broker; one thread calls it, and `tick` after each round of commands.

    `dirty` lists the connections whose outbox is not empty.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        broker_id: str,
        policies: PolicyMap,
        settings: BrokerSettings,
        now: int,
        authenticator: Authenticator | None = None,
    ) -> None:
        """Without an *authenticator* everybody may connect and do everything."""
        self.name, self.broker_id, self.authenticator = name, broker_id, authenticator
        self.store = store
        self.dirty: list[Connection] = []
        self.connections: dict[str, Connection] = {}
        self.settings = settings
        self.router = Router(settings, self.route)
        self.registry = Registry(self.router, settings.limits.destinations)
        self.context = Context(
            store,
            broker_id,
            policies,
            settings.system_usage.memory_usage.limit,
            now,
            self._find_route,
        )
        self.context.slow_consumers.abort = self.abort
        self.memory, self.containment = self.context.memory, self.context.containment
        # Each message that comes takes the next one: without a call of a method.
        self.sequences: Iterator[int] = self.context.sequences
        self.acknowledge = acknowledge
        self.guard = Guard(self.registry, self.router)
        self.audit = ProducerAudit()
        self.transactions = TransactionManager(
            self.context, self.audit, self._find_backlog, self.connections, settings.limits
        )
        self.subscriptions = SubscriptionManager(
            self.context, self.registry, settings, self.guard, self.transactions.backlog_ended
        )
        self._composer = Composer(broker_id, name)
        self.context.advisories = self.context.listen(self._make_advisories())
        self.flow = FlowControl(self.context, settings.system_usage, self._take_message)
        self.forwarding = Forwarding(self.context, self.router, self.flow, self.transactions)
        temporary_max = settings.limits.temporary_destinations
        places = (self.context, self.registry, self.router)
        self.destinations = Destinations(
            *places, self.subscriptions, self.transactions, self.connections, temporary_max
        )
        self.inactive_destinations = InactiveDestinations(
            self.context,
            self.registry,
            self.connections,
            self.destinations.awaiting,
            self.destinations.remove_unused,
            settings.schedule_period_for_destination_purge,
            settings.max_purged_destinations_per_sweep,
        )
        figures = (self.context, self.registry, self.connections, name, broker_id)
        take = self._take_message
        self.requests = Requests(self.context, self.guard, take, self.flow.forget)
        self._statistics = StatisticsQueries(*figures, self.requests)
        jobs = (self.context, self.transactions, self.registry, settings.scheduler, broker_id)
        ways = (self.requests, take, self.forwarding.check_later, self.flow.count_blocked)
        self.schedulers = SchedulerMaker(*jobs, *ways)
        self.interceptors = self._make_interceptors(policies)
        self.streams = Streams(self.context, settings.streams, self.destinations)

    def _make_interceptors(self, policies: PolicyMap) -> tuple[Interceptor, ...]:
        scheduler = self.schedulers.make(policies)
        found = interceptors(self.context, self.settings, scheduler, self._statistics)
        if self.authenticator is None or not found:
            return found
        return SendingGuard(self.guard), *found

    def _make_advisories(self) -> Advisories:
        settings = self.settings
        sources = self.router.sources if settings.use_virtual_dest_subs else lambda _: ()
        on_creation = settings.use_virtual_dest_subs_on_creation
        return Advisories(
            self.context,
            self.registry,
            self.connections,
            self.subscriptions.temporary,
            self._composer,
            VirtualDemand(sources, on_creation, f"{self.broker_id}-virtual"),
            settings.advisory_support,
        )

    def recover(self) -> Past:
        """Take back what the store holds; blocks while it is read."""
        recovered = self.context.store.open()
        keepers = (self.registry, self.subscriptions, self.transactions, self.schedulers)
        give_back(recovered, self.context, *keepers, self.audit, self.streams)
        if recovered.identity is not None and recovered.identity.name == self.name:
            self._be_known_as(recovered.identity.broker_id)
        return Past(recovered.last_trace, recovered.epoch)

    def _be_known_as(self, broker_id: str) -> None:
        """Be the broker of before, for other brokers: messages tell by its id where they were.

        What this process makes has ids of its own.
        """
        self.broker_id = self._composer.broker_id = self._statistics.broker_id = broker_id

    @property
    def identity(self) -> Identity:
        """Name and id of this broker."""
        return Identity(self.name, self.broker_id)

    # Connections

    def open_connection(self, address: str) -> Connection:
        """Return the connection of a peer at *address* that has not said who it is yet."""
        return Connection(self.dirty, address, self.audit)

    def connect(
        self, connection: Connection, identifier: str, client_id: str, steals: bool = False
    ) -> None:
        """Announce a connection. Raises BrokerError when that was done, or the client id is taken.

        One that *steals* ends the other one instead (ActiveMQ's allowLinkStealing). A connection
        that comes back after a failover replaces its half-dead predecessor.
        """
        predecessor = self.connections.get(identifier)
        is_foreign = predecessor is not None and predecessor.user_name != connection.user_name
        if is_foreign and connection.rights is not None:
            raise InvalidClientIdError(f"the connection {identifier} is another user's")
        if self.connections.get(connection.identifier) is connection:
            raise BrokerError(f"the connection is announced already, as {connection.identifier}")
        if predecessor is not None:
            self.end(predecessor, InvalidClientIdError("the client connected again"))
        for other in [*self.connections.values()] if client_id else ():
            if other.client_id != client_id:
                continue
            if not steals:
                raise InvalidClientIdError(
                    f"Broker: {self.name} - Client: {client_id} already connected from "
                    f"{other.address}"
                )
            reason = f"{client_id} connected from {connection.address}"
            self.end(other, InvalidClientIdError(reason))
        connection.identifier = identifier
        connection.client_id = client_id
        self.connections[identifier] = connection
        self.context.events.connected(connection)

    def end(self, connection: Connection, error: BrokerError) -> None:
        """End a connection against its will."""
        connection.put(Disconnect(error))
        connection.is_ended = True
        self.disconnect(connection)

    def disconnect(self, connection: Connection, last_delivered: int = DELIVERED_UNKNOWN) -> None:
        """End a connection, cleanly or not: all it held goes back, also what came after its end."""
        if was_there := self.connections.get(connection.identifier) is connection:
            del self.connections[connection.identifier]
        drop = partial(self.context.containment.call, "connection")
        drop(self.transactions.abandon, connection)
        for consumer in list(connection.consumers.values()):
            drop(self.subscriptions.unsubscribe, consumer, last_delivered)
        for producer in list(connection.producers):
            drop(self.remove_producer, connection, producer)
        for destination in list(connection.temporary):
            drop(self.destinations.remove_temporary, connection, destination)
        drop(self.flow.forget, connection)
        drop(self.requests.forget, connection)
        drop(self.streams.forget, connection)
        if was_there:
            self.context.events.disconnected(connection)

    # Producers

    def route(self, destination: Destination) -> Queue | Topic:
        """Return where messages for *destination* go. Raises BrokerError."""
        if destination.is_temporary and destination not in self.subscriptions.temporary:
            raise InvalidDestinationError(f"Cannot publish to a deleted Destination: {destination}")
        return self.registry.open(self.context, destination)

    def _find_route(self, destination: Destination) -> Queue | Topic:
        """Return where the broker's own messages for *destination* go, whatever the limits."""
        return self.registry.ensure(self.context, destination)

    def declare(self, destination: Destination) -> None:
        """Have a destination exist for good: it is never removed for want of use."""
        self.registry.open(self.context, destination)
        self.inactive_destinations.kept.add(destination)

    def add_producer(
        self, connection: Connection, identifier: object, destination: Destination | None
    ) -> None:
        """Note a producer, and make its destination. Raises BrokerError, with nothing changed.

        One that was noted already keeps its destination, as in ActiveMQ.
        """
        limit = self.settings.limits.producers
        if len(connection.producers) >= limit and identifier not in connection.producers:
            raise ResourceAllocationError(
                f"the connection has {limit} producers already (limits.producers)"
            )
        if destination is not None:
            check_name(destination)
            if connection.rights is not None:
                self.guard.check_sending(connection.rights, destination)
            for part in destination.parts():
                self.route(part)
        if identifier not in connection.producers:
            connection.producers[identifier] = destination
            self.context.events.producer_added(connection, identifier, destination)

    def remove_producer(self, connection: Connection, identifier: object) -> None:
        """Forget a producer, if it is there."""
        if identifier in connection.producers:
            destination = connection.producers.pop(identifier)
            self.context.events.producer_removed(connection, identifier, destination)

    def send(self, connection: Connection, message: Message, receipt: Receipt | None) -> None:
        """Take a message from a client. Raises BrokerError, with nothing changed.

        The receipt is settled when the message is as durable as it asks to be. Without room
        for it, the message waits, and `connection.stalled` says whether to stop reading.
        """
        if message.destination is not connection.last_destination:
            check_name(message.destination)
        for interceptor in self.interceptors:
            going_on = interceptor.intercept(connection, message, receipt)
            if going_on is None:
                return
            message = going_on
        self._take_message(connection, message, receipt)

    def send_run(
        self, connection: Connection, messages: list[Message], receipts: list[Receipt | None]
    ) -> bool:
        """Take messages that begin alike, as `send` takes each.

        Returns False, with nothing changed, when one of them may need a closer look.
        """
        route, first = connection.last_route, messages[0]
        if route is None or first.destination is not connection.last_destination:
            return False
        if connection.reconnected or not self.flow.has_room(route, messages):
            return False
        if self.interceptors and not all(each.passes(messages) for each in self.interceptors):
            return False
        if first.transaction_id is not None:
            transaction = connection.transactions.get(first.transaction_id)
            if transaction is None:
                return False
            self.transactions.send_run(transaction, route, messages)
            for receipt in receipts:
                if receipt is not None:
                    receipt.settle()
            return True
        route.accept_run(messages, receipts)
        if connection.fault_tolerant:
            for message in messages:
                if message.persistent:
                    connection.audit.record(message)
        return True

    def _take_message(
        self,
        connection: Connection,
        message: Message,
        receipt: Receipt | None,
        is_admitted: bool = False,
    ) -> None:
        """Take a message as it is; one that *is admitted* has waited for room already."""
        destination = message.destination
        route = connection.last_route
        if route is None or destination is not connection.last_destination:
            if connection.rights is not None:
                self.guard.check_sending(connection.rights, destination)
            self.schedulers.check_sending(connection, destination)
            found = self.registry.find(destination)
            if found is None and not destination.is_composite:
                found = self.route(destination)
            if found is None or found.rules:
                self.forwarding.forward(connection, message, receipt, is_admitted)
                return
            route = found
            connection.last_destination, connection.last_route = destination, route
        if connection.reconnected and connection.audit.is_duplicate(message):
            # It is stored already, and needs no room.
            self.transactions.leave_out(connection, message.transaction_id, receipt)
            return
        memory = self.context.memory
        if (
            memory.used >= memory.gate or (route.policy.memory_limit and route.memory_full())
        ) and not (is_admitted or self.flow.admits(connection, message, receipt, (route,))):
            return
        if message.persistent:
            try:
                self.context.store.check_full()
            except StoreFullError:
                if not (is_admitted or self.flow.admits(connection, message, receipt, (route,))):
                    return
        if message.transaction_id is not None:
            transaction = self.transactions.find(connection, message.transaction_id)
            self.transactions.send(transaction, route, message)
            if receipt is not None:
                receipt.settle()
            return
        route.accept(message, receipt)
        if connection.fault_tolerant:
            connection.audit.record(message)

    # Consumers

    def poison(
        self, consumer: Consumer, last: int, count: int, cause: str, receipt: Receipt | None
    ) -> None:
        """End messages that their consumer could not process."""
        for reference in consumer.take_dispatched(last, count):
            consumer.backlog_of(reference).poison_held(reference, cause)
        if receipt is not None:
            self.context.settle_behind(receipt)
        consumer.shrink(count)
        consumer.reactivate()

    def abort(self, consumer: Consumer, with_connection: bool) -> None:
        """End a consumer that does not keep up, or its whole connection."""
        if not with_connection:
            self.subscriptions.close(consumer)
            return
        reason = f"the consumer {consumer.identifier} of {consumer.destination} was too slow"
        connection = self.connections[consumer.connection.identifier]
        self.end(connection, ResourceAllocationError(reason))

    def _find_backlog(self, destination: Destination, subscription: Subscription | None) -> Backlog:
        """Return the backlog a recovered transaction consumed from."""
        if subscription is not None:
            return self.subscriptions.durables[subscription.key].parts[destination]
        return self.registry.ensure_queue(self.context, destination)

    def resize(self, consumer: Consumer, prefetch: int) -> None:
        """Change a consumer's window."""
        consumer.prefetch = min(max(0, prefetch), WINDOW_MAX)
        consumer.reactivate()

    def pull(self, consumer: Consumer, timeout: int) -> None:
        """Ask for one message; *timeout* is in ms, see `pulling`."""
        pull(self.context, consumer, timeout)

    def next_deadline(self) -> int | None:
        """Return when `tick` is due at the latest, if anything waits (ms of `steady`)."""
        context = self.context
        if context.timers.earliest == context.calendar.earliest == NEVER:
            return None
        due = context.timers.next_due()
        dated = None if context.calendar.earliest == NEVER else context.calendar.next_due()
        if dated is None:
            return due
        dated += context.steady - context.now
        return dated if due is None else min(due, dated)

    # Time

    def settle(self, receipts: Sequence[Receipt]) -> None:
        """Go on with what waited for the store."""
        self.context.containment.settle(receipts, self.context.call_soon)

    def settle_behind(self, receipt: Receipt) -> None:
        """Settle when everything handed to the store so far is durable."""
        self.context.settle_behind(receipt)

    @property
    def policies(self) -> PolicyMap:
        """The policies in force; see `adopting`."""
        return self.context.policies

    @property
    def now(self) -> int:
        """The time of people: ms since the epoch, by a clock that may be set."""
        return self.context.now

    @property
    def steady(self) -> int:
        """The time that only passes, in ms since an instant of no meaning."""
        return self.context.steady

    def take_dirty(self) -> list[Connection]:
        """Return the connections whose outbox is not empty; they are no longer `dirty`."""
        dirty = self.dirty[:]
        self.dirty.clear()
        return dirty

    def set_clock(self, now: int, steady: int) -> None:
        """Tell what time it is; see `Context`."""
        self.context.now, self.context.steady = now, steady

    def call_after(self, milliseconds: int, action: Callable[[], None]) -> None:
        """Have *action* called by the first tick after so long."""
        self.context.timers.call_at(self.context.steady + milliseconds, action)

    def has_work(self) -> bool:
        """Tell whether there is something to dispatch already."""
        return bool(self.context.postponed or self.context.active)

    def is_due_before(self, steady: int) -> bool:
        """Tell whether something may be due before *steady*, or by a clock that may be set."""
        return self.context.timers.earliest < steady or self.context.calendar.earliest < NEVER

    def listen(self, listener: Heard) -> Heard:
        """Have *listener* told of all clients; returns it with methods that raise nothing."""
        return self.context.listen(listener)

    def tick(self, now: int, steady: int | None = None) -> None:
        """Dispatch what can be dispatched, and end what waited long enough; see `Context`.

        Without *steady* the clock was never set.
        """
        context = self.context
        context.now = now
        context.steady = steady = now if steady is None else steady
        if now > context.numbered_at:
            context.numbered_at = now
            context.delivery = max(context.delivery, now << DELIVERY_BITS)
        if self.flow.lines:
            context.containment.call("command", self.flow.resume)
        if context.timers.earliest <= steady:
            context.unsent = 0
            context.containment.call("timer", context.timers.run, steady, context.spend_on_timer)
        if context.calendar.earliest <= now:
            context.unsent = 0
            context.containment.call("timer", context.calendar.run, now, context.spend_on_timer)
        if context.starved and context.has_room():
            context.containment.call("memory", context.feed)
        active = context.active
        if context.postponed:
            active, context.postponed = context.postponed + active, []
        if active:
            context.containment.call("backlog", context.dispatch, active)
        if context.relievable:
            context.containment.call("memory", context.relieve)
