"""Making temporary destinations, and removing destinations of any kind."""

from collections.abc import Sequence

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.inactive_destinations import is_used
from lockkeeper.broker.regions.registry import Registry
from lockkeeper.broker.routing.names import is_own
from lockkeeper.broker.routing.router import Router
from lockkeeper.broker.routing.rule import QueueFollower, Rule
from lockkeeper.broker.subscription_manager import SubscriptionManager
from lockkeeper.broker.transaction_manager import TransactionManager
from lockkeeper.broker.transactions import SentRun
from lockkeeper.message.destination import Destination
from lockkeeper.store.base import Receipt


class Destinations:
    """Creation and removal of destinations; the registry finds them."""

    def __init__(
        self,
        context: Context,
        registry: Registry,
        router: Router,
        subscriptions: SubscriptionManager,
        transactions: TransactionManager,
        connections: dict[str, Connection],
        temporary_max: int,
    ) -> None:
        """A connection may have *temporary_max* temporary destinations."""
        self._context = context
        self._registry = registry
        self._router = router
        self._subscriptions = subscriptions
        self._transactions = transactions
        self._connections = connections
        self._limit = temporary_max

    def route_anew(self, rule: Rule, destinations: Sequence[Destination]) -> None:
        """Ask a rule that came, or that applies to others now, where messages go from here on."""
        self._router.add(rule)
        for destination in destinations:
            region = self._registry.find(destination)
            if region is not None:
                self._router.opened(region)
        for connection in self._connections.values():
            connection.last_destination = connection.last_route = None

    def follow_queues(self, follower: QueueFollower) -> None:
        """Tell somebody of the queues that there are, and of those that come and go."""
        self._router.follow(follower)
        for region in list(self._registry):
            if region.destination.is_queue:
                follower.opened(region)

    def awaiting(self) -> set[Destination]:
        """Return where messages are to come that nobody sees yet, or to go from.

        They are those of transactions, and of the broker's own messages that are being written.
        """
        found = {run.route.destination for run in self.arriving()}
        for transaction in self._transactions.unfinished():
            found.update(transaction.destinations())
        return found

    def arriving(self) -> list[SentRun]:
        """Return the broker's own messages that are being written: those of feeds and the like."""
        return [*self._context.arriving.values()]

    def create_temporary(self, connection: Connection, destination: Destination) -> None:
        """Make a temporary destination that lives as long as its connection."""
        if destination in self._subscriptions.temporary:
            return
        limit = self._limit
        if len(connection.temporary) >= limit:
            raise ResourceAllocationError(
                f"the connection has {limit} temporary destinations already "
                "(limits.temporaryDestinations)"
            )
        # Whose it is, the advisory tells; where it is refused, it is nobody's.
        self._subscriptions.temporary[destination] = connection
        try:
            self._registry.open(self._context, destination)
        except Exception:
            del self._subscriptions.temporary[destination]
            raise
        connection.temporary.add(destination)

    def remove_temporary(self, connection: Connection, destination: Destination) -> None:
        """Remove a temporary destination of this connection."""
        if destination not in connection.temporary:
            return
        connection.temporary.discard(destination)
        self._subscriptions.close_all(destination)
        self._forget(destination)
        del self._subscriptions.temporary[destination]

    def remove(self, destination: Destination, receipt: Receipt | None) -> None:
        """Remove a destination with its messages. Raises BrokerError while it has consumers."""
        if is_own(destination):
            raise InvalidDestinationError(f"{destination} is the broker's own: it stays")
        region = self._registry.find(destination)
        if region is not None and region.is_subscribed():
            raise InvalidDestinationError(
                f"Destination still has an active subscription: {destination}"
            )
        self._forget(destination)
        self._context.store.remove_destination(destination, receipt)

    def remove_with_users(self, destination: Destination, receipt: Receipt | None) -> None:
        """Remove a destination whoever uses it: consumers and durable subscriptions end, too."""
        self._subscriptions.close_all(destination)
        self.remove(destination, receipt)

    def remove_unused(self, destination: Destination) -> None:
        """Remove a destination that nobody uses any more."""
        self._forget(destination)
        self._context.store.remove_destination(destination, None)

    def _forget(self, destination: Destination) -> None:
        region = self._registry.find(destination)
        if region is not None:
            region.close()
            region.is_gone = True
            for backlog in region.backlogs():
                self._transactions.backlog_ended(backlog)
            self._transactions.route_ended(region)
            self._forget_mirror(destination)
        self._registry.forget(destination)
        self._context.advisories.destination_removed(destination)
        for connection in self._connections.values():
            connection.last_destination = None

    def _forget_mirror(self, queue: Destination) -> None:
        """Remove the mirror of a queue that is gone, unless somebody uses it."""
        mirror = self._router.mirror_of(queue)
        region = None if mirror is None else self._registry.find(mirror)
        if region is not None and not is_used(region):
            region.is_gone = True
            self._transactions.route_ended(region)
            self._registry.forget(region.destination)
            self._context.advisories.destination_removed(region.destination)
