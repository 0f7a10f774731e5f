"""The admin endpoint's socket, and the themes that are answered there."""

import logging
from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from lockkeeper.server.admin.answers import Serving, StatusOf
from lockkeeper.server.admin.configuring import Configuring, Take
from lockkeeper.server.admin.destinations import Destinations
from lockkeeper.server.admin.encryption import AdminEncryption, refuse_in_the_clear
from lockkeeper.server.admin.explaining import Explaining
from lockkeeper.server.admin.fencing import Fencing
from lockkeeper.server.admin.figures import Figures
from lockkeeper.server.admin.standing import Standing
from lockkeeper.server.admin.token import TokenCheck
from lockkeeper.server.admin.transactions import Transactions

REQUEST_BYTES_MAX = 64 * 1024
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
            Explaining(status, serving),
        )
        self._runner: web.AppRunner | None = None
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
        checks = [self._token.check]
        if encryption is not None:
            checks.insert(0, refuse_in_the_clear)
        app = web.Application(client_max_size=REQUEST_BYTES_MAX, middlewares=checks)
        app.add_routes(self.routes())
        runner = web.AppRunner(app, access_log=None, logger=logger)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            if encryption is not None:
                await web.TCPSite(runner, host, tls_port, ssl_context=encryption.context).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
