"""Bridges as the core knows them: a connection over which messages go to another broker."""

from lockkeeper.broker.connections import Connection, NetworkPeer
from lockkeeper.broker.core import Broker


def begin_forwarding(broker: Broker, connection: Connection, peer: NetworkPeer) -> None:
    """Note that messages go to another broker from now on, until the connection ends."""
    peer.is_forwarded_to = True
    broker.context.advisories.bridge_started(connection, peer)
