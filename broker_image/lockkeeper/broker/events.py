"""Events that the core tells: clients and destinations that come and go, what becomes of messages.

Whoever listens keeps what it needs and returns at once; one that fails harms nobody.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar, cast

from lockkeeper.broker.connections import Connection, NetworkPeer
from lockkeeper.broker.containment import Containment
from lockkeeper.broker.policies.advisories import AdvisoryPolicy
from lockkeeper.broker.shield import Shield
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import Reference, Subscription


class ClientListener(Protocol):
    """Hears of connections, bridges, consumers and producers: once in the life of each."""

    def connected(self, connection: Connection) -> None:
        """Hear of a new connection."""

    def disconnected(self, connection: Connection) -> None:
        """Hear that a connection has ended; its consumers and producers have before."""

    def bridge_started(self, connection: Connection, peer: NetworkPeer) -> None:
        """Hear that a connection is a bridge to another broker, until it ends."""

    def consumer_added(self, consumer: Consumer) -> None:
        """Hear of a new consumer."""

    def consumer_removed(self, consumer: Consumer) -> None:
        """Hear that a consumer has ended."""

    def producer_added(
        self, connection: Connection, producer: object, destination: Destination | None
    ) -> None:
        """Hear of a new producer; without destination, each message names its own."""

    def producer_removed(
        self, connection: Connection, producer: object, destination: Destination | None
    ) -> None:
        """Hear that a producer has ended."""


class MessageListener(Protocol):
    """Hears of destinations, and of messages where the policy of their destination says so."""

    def destination_added(self, destination: Destination) -> None:
        """Hear of a new destination."""

    def destination_removed(self, destination: Destination) -> None:
        """Hear that a destination is gone."""

    def subscription_removed(self, subscription: Subscription) -> None:
        """Hear that a durable subscription was deleted."""

    def replay(self, consumer: Consumer, source: Destination) -> None:
        """Tell a new consumer of advisories what exists already."""

    def arrived(
        self, destination: Destination, policy: AdvisoryPolicy, message: Message, is_wanted: bool
    ) -> None:
        """Hear of a message that reached its destination, and whether anybody is there for it."""

    def consumed(
        self, destination: Destination, policy: AdvisoryPolicy, references: Iterable[Reference]
    ) -> None:
        """Hear of acknowledged messages."""

    def discarded(
        self, consumer: Consumer, destination: Destination, messages: Sequence[Message], count: int
    ) -> None:
        """Hear of messages that a consumer was too slow for; *count* with those before."""

    def expired(self, destination: Destination, policy: AdvisoryPolicy, message: Message) -> None:
        """Hear of a message whose time was over."""

    def dead_lettered(
        self, destination: Destination, policy: AdvisoryPolicy, message: Message
    ) -> None:
        """Hear of a message that went to a dead letter queue."""

    def slow(self, consumer: Consumer, destination: Destination) -> None:
        """Hear that messages wait for a consumer whose window is full."""

    def stalled(self, connection: Connection, message: Message, usage: str, used: int) -> None:
        """Hear of a message that has to wait for room: *used* bytes of *usage* are in use."""


Heard = TypeVar("Heard", bound=ClientListener)


class ClientEvents:
    """Tells all listeners of clients, in the order in which they were added."""

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._listeners: tuple[ClientListener, ...] = ()

    def add(self, listener: Heard) -> Heard:
        """Add a listener; returns it with methods that raise nothing."""
        shielded: Heard = cast("Any", Shield(self._containment, listener))
        self._listeners += (shielded,)
        return shielded

    def connected(self, connection: Connection) -> None:
        """See `ClientListener.connected`."""
        for listener in self._listeners:
            listener.connected(connection)

    def disconnected(self, connection: Connection) -> None:
        """See `ClientListener.disconnected`."""
        for listener in self._listeners:
            listener.disconnected(connection)

    def bridge_started(self, connection: Connection, peer: NetworkPeer) -> None:
        """See `ClientListener.bridge_started`."""
        for listener in self._listeners:
            listener.bridge_started(connection, peer)

    def consumer_added(self, consumer: Consumer) -> None:
        """See `ClientListener.consumer_added`."""
        for listener in self._listeners:
            listener.consumer_added(consumer)

    def consumer_removed(self, consumer: Consumer) -> None:
        """See `ClientListener.consumer_removed`."""
        for listener in self._listeners:
            listener.consumer_removed(consumer)

    def producer_added(
        self, connection: Connection, producer: object, destination: Destination | None
    ) -> None:
        """See `ClientListener.producer_added`."""
        for listener in self._listeners:
            listener.producer_added(connection, producer, destination)

    def producer_removed(
        self, connection: Connection, producer: object, destination: Destination | None
    ) -> None:
        """See `ClientListener.producer_removed`."""
        for listener in self._listeners:
            listener.producer_removed(connection, producer, destination)
