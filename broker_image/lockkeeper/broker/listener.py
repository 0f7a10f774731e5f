"""Who is told of connections, consumers and producers as they come and go: the flight recorder.

Calls come where advisories are made, once in the life of each, never for a message.
"""

from typing import TYPE_CHECKING, Protocol

from lockkeeper.message.destination import Destination

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.subscriptions.consumer import Consumer


class Listener(Protocol):
    """What the core tells; a listener keeps what it needs and returns at once."""

    def connected(self, connection: "Connection") -> None:
        """Hear of a new connection."""

    def disconnected(self, connection: "Connection") -> None:
        """Hear that a connection has ended; its consumers and producers have before."""

    def consumer_added(self, consumer: "Consumer") -> None:
        """Hear of a new consumer."""

    def consumer_removed(self, consumer: "Consumer") -> None:
        """Hear that a consumer has ended."""

    def producer_added(
        self, connection: "Connection", identifier: object, destination: Destination | None
    ) -> None:
        """Hear of a new producer; without destination, each message names its own."""

    def producer_removed(
        self, connection: "Connection", identifier: object, destination: Destination | None
    ) -> None:
        """Hear that a producer has ended."""


class Nobody:
    """Listens to nothing."""

    def connected(self, connection: "Connection") -> None:
        """Do nothing."""

    def disconnected(self, connection: "Connection") -> None:
        """Do nothing."""

    def consumer_added(self, consumer: "Consumer") -> None:
        """Do nothing."""

    def consumer_removed(self, consumer: "Consumer") -> None:
        """Do nothing."""

    def producer_added(
        self, connection: "Connection", identifier: object, destination: Destination | None
    ) -> None:
        """Do nothing."""

    def producer_removed(
        self, connection: "Connection", identifier: object, destination: Destination | None
    ) -> None:
        """Do nothing."""
