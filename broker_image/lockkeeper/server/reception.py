"""Receives the clients of one listener: who may come in, and what becomes of it."""

import logging

from lockkeeper.protocols.handover import Acceptor
from lockkeeper.protocols.registry import PROTOCOLS
from lockkeeper.server.conversion import milliseconds
from lockkeeper.server.descriptors import connections_possible
from lockkeeper.server.engine import Engine
from lockkeeper.server.settings import listener_settings
from lockkeeper.server.strangers import FULL
from lockkeeper.transport.peer import Guest, Peer
from lockkeeper_api.broker import Listener

logger = logging.getLogger(__name__)


class Reception:
    """The clients of one listener; `transport.listener.Host` is its interface."""

    def __init__(
        self,
        listener: Listener,
        engine: Engine,
        acceptor: Acceptor | None = None,
        port: int = 0,
    ) -> None:
        """*port* is where it listens: the listener may take any."""
        self._listener = listener
        self._engine = engine
        self._settings = listener_settings(listener, acceptor, port)
        if acceptor is not None and self._settings.cluster is not None:
            acceptor.inform(self._settings.cluster)
        self._make_session = PROTOCOLS[listener.protocol]
        self._patience = milliseconds(listener.login_timeout)
        self.handshake_seconds = self._patience / 1000
        self._connections_max = min(listener.connections_max, connections_possible())
        if self._connections_max < listener.connections_max:
            logger.warning(
                "%s: at most %d clients instead of connectionsMax %d: more would take the file "
                "descriptors that the journal needs; raise the limit (ulimit -n)",
                listener.name,
                self._connections_max,
                listener.connections_max,
            )

    def receive(self, guest: Guest) -> None:
        """See `Host.receive`."""
        strangers = self._engine.strangers
        strangers.make_room(self._listener.connections_before_login_max)
        strangers.came(guest, self._engine.stamp(), self._patience)

    def make_peer(self, address: str, before: Guest | None) -> Peer | None:
        """See `Host.make_peer`."""
        engine, strangers = self._engine, self._engine.strangers
        if engine.is_closed:
            # It came in while the broker ended: nobody would answer it, or end its connection.
            return None
        if before is not None and before not in strangers:
            return None
        if len(engine.peers) >= self._connections_max and not strangers.displace(before):
            strangers.refused(address, FULL)
            return None
        session = self._make_session(engine.broker, self._settings, address)
        peer = Peer(engine, session, engine.stamp())
        if before is None:
            self.receive(peer)
        else:
            strangers.went_on(before, peer)
        return peer

    def lost(self, guest: Guest) -> None:
        """See `Host.lost`."""
        self._engine.strangers.gone(guest)
