"""Interface of what takes over a connection whose peer is another broker."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from lockkeeper.broker.connections import Connection
from lockkeeper.message.openwire import BrokerInfo, ConsumerInfo
from lockkeeper.protocols.cluster import Cluster
from lockkeeper.protocols.openwire.agreement import Agreement
from lockkeeper.protocols.openwire.frames import Piece


class HandedOver(NamedTuple):
    """A connection whose peer has said that it is a broker, and has logged in.

    `pieces` are still to be sent, and `rest` is what came behind the login. `subscriptions` are
    the durable ones that it has told of, None if it has not.
    """

    connection: Connection
    peer: BrokerInfo
    agreement: Agreement
    pieces: Sequence[Piece]
    rest: bytes
    subscriptions: Sequence[ConsumerInfo] | None = None


class Acceptor(Protocol):
    """Takes over connections of other brokers."""

    def client_id(self, peer: BrokerInfo, client_id: str) -> str:
        """Return what the connection of *peer* is to be called, which says *client_id*.

        Raises BrokerError when the peer cannot be understood.
        """

    def inform(self, cluster: Cluster) -> None:
        """Have a listener's clients told of the brokers that bridges lead to."""

    def accept(self, handed_over: HandedOver) -> None:
        """Go on with a connection, whose session does nothing any more."""
