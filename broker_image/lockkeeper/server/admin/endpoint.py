"""The admin endpoint's socket, and the themes that are answered there."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from lockkeeper.server.admin.answers import SILENT_SECONDS_MAX, Serving, StatusOf
from lockkeeper.server.admin.callers import Callers
from lockkeeper.server.admin.configuring import Configuring, Take
from lockkeeper.server.admin.destinations import Destinations
from lockkeeper.server.admin.diagnostics import Diagnostics
from lockkeeper.server.admin.encryption import AdminEncryption, refuse_in_the_clear
from lockkeeper.server.admin.fencing import Fencing
from lockkeeper.server.admin.figures import Figures
from lockkeeper.server.admin.standing import Standing
from lockkeeper.server.admin.streams import Streams
from lockkeeper.server.admin.token import TokenCheck
from lockkeeper.server.admin.transactions import Transactions

REQUEST_BYTES_MAX = 64 * 1024
KEPT_SECONDS = 45.0
"""How long a connection is kept on which nothing is asked: an operator's, which asks every 30 s at
the latest, needs no handshake each time."""
logger = logging.getLogger(__name__)


def _is_ours(record: logging.LogRecord) -> bool:
    """Tell whether something went wrong here; a request that is no HTTP was only answered so."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


logger.addFilter(_is_ours)


class Admin:
    """Serves one process, whatever its role; it binds before the role is known."""

    def __init__(
        self,
        status: StatusOf,
        serving: Serving,
        take: Take,
        fence: Callable[[bool], None],
        secrets: Path | None = None,
    ) -> None:
        """*serving* returns None while the process is not the master; *take* is `Reloading`'s.

        *fence* puts a fence up, or takes it away. *secrets* is the directory in which the token
        may lie.
        """
        self._token = TokenCheck(secrets)
        self._themes = (
            Standing(status),
            Figures(status, serving),
            Configuring(take),
            Fencing(fence),
            Destinations(status, serving),
            Transactions(status, serving),
            Streams(status, serving),
            Diagnostics(status, serving),
        )
        self._callers = Callers()
        self._runner: web.AppRunner | None = None
        self._listening: list[asyncio.Server] = []
        self.port = 0

    def routes(self) -> list[web.RouteDef]:
        """Return all that is answered; docs/reference/admin-api.md tells of each."""
        return [route for theme in self._themes for route in theme.routes()]

    async def start(
        self,
        host: str,
        port: int,
        encryption: AdminEncryption | None = None,
        tls_port: int = 0,
    ) -> None:
        """Listen on *host*:*port*, and with *encryption* on *tls_port*, too.

        Raises OSError when another program does.
        """
        checks = [self._callers.attend, self._token.check_request]
        if encryption is not None:
            checks.insert(1, refuse_in_the_clear)
        app = web.Application(client_max_size=REQUEST_BYTES_MAX, middlewares=checks)
        app.add_routes(self.routes())
        # What is compressed would be unpacked as it comes, before anybody is asked for a token.
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=logger,
            auto_decompress=False,
            keepalive_timeout=KEPT_SECONDS,
        )
        await runner.setup()
        assert runner.server is not None
        self._runner, self._callers.server = runner, runner.server
        try:
            await self._listen(host, port)
            if encryption is not None:
                await self._listen(host, tls_port, encryption.context)
        except OSError:
            await self.stop()
            raise
        self.port = self._listening[0].sockets[0].getsockname()[1]

    async def _listen(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        timeout = None if context is None else SILENT_SECONDS_MAX
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(
            self._callers, host, port, ssl=context, ssl_handshake_timeout=timeout
        )
        self._listening.append(listening)

    async def stop(self) -> None:
        """Stop listening."""
        for listening in self._listening:
            listening.close()
        if self._runner is not None:
            await self._runner.cleanup()
