"""The listeners of one process: their ports are taken before the journal is touched.

So a process that cannot have its ports has changed nothing. Clients come in once the journal is
read.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from socket import gethostname
from typing import TypeAlias

from lockkeeper.protocols.handover import Acceptor
from lockkeeper.server.certificates import Encryption, encryption
from lockkeeper.server.engine import Engine
from lockkeeper.server.errors import listening_failed
from lockkeeper.server.networks.multicast import Announcer
from lockkeeper.server.reception import Reception
from lockkeeper.server.secrets import Signature
from lockkeeper.server.settings import EVERYWHERE, LOOPBACK
from lockkeeper.transport.listener import EncryptedListener, bind, listen
from lockkeeper_api.broker import Listener
from lockkeeper_api.multicast_uris import read_multicast_uri
from lockkeeper_api.network_uris import PeerAddress, read_found_address

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.05
Watch: TypeAlias = Callable[[Sequence[Path], Callable[[], None], Signature], None]
"""See `Reloading.watch`."""


class Listeners:
    """The sockets of all listeners; `ports` has the port of each by its name."""

    def __init__(
        self, listeners: Sequence[Listener], secrets: Path | None = None, watch: Watch | None = None
    ) -> None:
        """*secrets* is the directory with certificates, *watch* tells when they change."""
        self.ports: dict[str, int] = {}
        self._listeners = listeners
        self._secrets = secrets
        self._watch = watch
        self._encryptions: dict[str, Encryption] = {}
        self._encrypted: dict[str, list[EncryptedListener]] = {}
        self._bound: dict[str, list[socket.socket]] = {}
        self._servers: list[asyncio.Server] = []
        self._announcers: list[Announcer] = []

    async def bind(self, patience: float) -> None:
        """Take the ports; one in use is tried for *patience* seconds. Raises CannotRunError."""
        for listener in self._listeners:
            found = encryption(listener, self._secrets)
            if found is not None:
                self._encryptions[listener.name] = found
            sockets = await _bind(listener, time.monotonic() + patience)
            self._bound[listener.name] = sockets
            self.ports[listener.name] = sockets[0].getsockname()[1]

    async def open(self, engine: Engine, acceptor: Acceptor | None = None) -> None:
        """Let clients in, and other brokers by the *acceptor*.

        Raises CannotRunError when another program was faster.
        """
        for listener in self._listeners:
            self._follow(listener.name)
            for bound in self._bound.pop(listener.name):
                reception = Reception(listener, engine, acceptor, self.ports[listener.name])
                try:
                    await self._let_in(bound, listener, reception)
                except OSError as error:
                    bound.close()
                    raise _refused(listener, error) from error
            host, port = listener.host or LOOPBACK, self.ports[listener.name]
            tls = " over TLS" if listener.name in self._encryptions else ""
            logger.info("listens on %s:%d (%s%s)", host, port, listener.protocol, tls)
            self._announce(listener)

    @property
    def announced(self) -> frozenset[str]:
        """Addresses that multicast groups are told of."""
        return frozenset(each.uri for each in self._announcers)

    def _announce(self, listener: Listener) -> None:
        """Tell a multicast group of a listener, if it is to be found there."""
        if listener.discovery_uri is None:
            return
        group, _ = read_multicast_uri(listener.discovery_uri)
        encrypted = listener.name in self._encryptions
        announcer = Announcer(group, _found_at(listener, self.ports[listener.name], encrypted))
        self._announcers.append(announcer)
        announcer.begin()

    async def _let_in(self, bound: socket.socket, listener: Listener, reception: Reception) -> None:
        """Let clients in at one socket, over TLS where that is asked for. Raises OSError."""
        encryption = self._encryptions.get(listener.name)
        if encryption is None:
            self._servers.append(await listen(bound, reception))
            return
        encrypted = EncryptedListener(bound, reception, encryption.context)
        self._encrypted.setdefault(listener.name, []).append(encrypted)

    def _follow(self, name: str) -> None:
        """Have the listener called *name* go on with new certificates when they come."""
        encryption = self._encryptions.get(name)
        if encryption is None or self._watch is None:
            return

        def change() -> None:
            encryption.reload()
            for encrypted in self._encrypted.get(name, ()):
                encrypted.context = encryption.context

        self._watch(encryption.files, change, encryption.seen)

    def close(self) -> None:
        """Let nobody in any more."""
        for announcer in self._announcers:
            announcer.close()
        for server in self._servers:
            server.close()
        for encrypted in chain(*self._encrypted.values()):
            encrypted.close()
        for sockets in self._bound.values():
            for bound in sockets:
                bound.close()


def _found_at(listener: Listener, port: int, is_encrypted: bool) -> str:
    """Return the address by which others find a listener."""
    for url in listener.advertised_urls:
        # Others dial what they understand.
        with suppress(ValueError):
            return str(read_found_address(url))
    host = listener.host or LOOPBACK
    return str(PeerAddress(gethostname() if host in EVERYWHERE else host, port, is_encrypted))


async def _bind(listener: Listener, deadline: float) -> list[socket.socket]:
    while True:
        try:
            return await bind(listener.host or LOOPBACK, listener.port)
        except OSError as error:
            if time.monotonic() > deadline:
                raise _refused(listener, error) from error
            await asyncio.sleep(RETRY_SECONDS)


def _refused(listener: Listener, error: OSError) -> Exception:
    way_out = "choose another one: spec.listeners[].port, or --listen of one broker"
    what, host = f"listener {listener.name}", listener.host or LOOPBACK
    return listening_failed(what, host, listener.port, error, way_out)
