"""Bridges as the core knows them: a connection with another broker at its end."""

from lockkeeper.broker.connections import Connection, NetworkPeer
from lockkeeper.broker.core import Broker


def begin_bridge(
    broker: Broker, connection: Connection, peer: NetworkPeer, is_forwarded_to: bool
) -> None:
    """Note that a connection is a bridge from now on, until it ends.

    With *is_forwarded_to* messages go to the other broker.
    """
    peer.is_forwarded_to = is_forwarded_to
    broker.context.events.bridge_started(connection, peer)
