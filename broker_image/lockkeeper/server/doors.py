"""The listeners of one process: their ports are taken before the journal is touched.

So a process that cannot have its ports has changed nothing. Clients come in once the journal is
read.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Sequence

from lockkeeper.protocols.registry import PROTOCOLS
from lockkeeper.server.engine import Engine
from lockkeeper.server.errors import listening_failed
from lockkeeper.server.settings import LOOPBACK, listener_settings
from lockkeeper.transport.listener import bind, listen
from lockkeeper.transport.peer import Peer
from lockkeeper_api.broker import Listener

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.05


class Doors:
    """The sockets of all listeners; `ports` has the port of each by its name."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self.ports: dict[str, int] = {}
        self._listeners = listeners
        self._bound: dict[str, list[socket.socket]] = {}
        self._servers: list[asyncio.Server] = []

    async def bind(self, patience: float) -> None:
        """Take the ports; one in use is tried for *patience* seconds. Raises CannotRunError."""
        for listener in self._listeners:
            sockets = await _bind(listener, time.monotonic() + patience)
            self._bound[listener.name] = sockets
            self.ports[listener.name] = sockets[0].getsockname()[1]

    async def open(self, engine: Engine) -> None:
        """Let clients in. Raises CannotRunError when another program was faster."""
        for listener in self._listeners:
            for bound in self._bound.pop(listener.name):
                try:
                    self._servers.append(await _listen(bound, listener, engine))
                except OSError as error:
                    bound.close()
                    raise _refused(listener, error) from error
            host, port = listener.host or LOOPBACK, self.ports[listener.name]
            logger.info("listens on %s:%d (%s)", host, port, listener.protocol)

    def close(self) -> None:
        """Let nobody in any more."""
        for server in self._servers:
            server.close()
        for sockets in self._bound.values():
            for bound in sockets:
                bound.close()


async def _bind(listener: Listener, deadline: float) -> list[socket.socket]:
    while True:
        try:
            return await bind(listener.host or LOOPBACK, listener.port)
        except OSError as error:
            if time.monotonic() > deadline:
                raise _refused(listener, error) from error
            await asyncio.sleep(RETRY_SECONDS)


async def _listen(bound: socket.socket, listener: Listener, engine: Engine) -> asyncio.Server:
    settings = listener_settings(listener)
    make_session = PROTOCOLS[listener.protocol]

    def make_peer(address: str) -> Peer | None:
        if len(engine.peers) >= listener.connections_max:
            logger.warning("%s refused: connectionsMax is %d", address, listener.connections_max)
            return None
        return Peer(engine, make_session(engine.broker, settings, address), engine.stamp())

    return await listen(bound, make_peer)


def _refused(listener: Listener, error: OSError) -> Exception:
    way_out = "choose another one: spec.listeners[].port, or --listen of one broker"
    what, host = f"listener {listener.name}", listener.host or LOOPBACK
    return listening_failed(what, host, listener.port, error, way_out)
