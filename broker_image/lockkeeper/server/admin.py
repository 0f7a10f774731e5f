"""The admin endpoint: health, status and destinations over HTTP, JSON only."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

StatusOf = Callable[[], dict[str, Any]]
DestinationsOf = Callable[[], list[dict[str, Any]] | None]


class Admin:
    """Serves one process, whatever its role; it binds before the role is known."""

    def __init__(self, status: StatusOf, destinations: DestinationsOf) -> None:
        self._status = status
        self._destinations = destinations
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on *host*:*port*. Raises OSError when another program does."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/readyz", self._ready),
                web.get("/api/v1/status", self._show_status),
                web.get("/api/v1/destinations", self._show_destinations),
            ]
        )
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _ready(self, request: web.Request) -> web.Response:
        """Ready for clients: only the master is."""
        role = self._status()["role"]
        return web.json_response({"role": role}, status=200 if role == "master" else 503)

    async def _show_status(self, request: web.Request) -> web.Response:
        return web.json_response(self._status())

    async def _show_destinations(self, request: web.Request) -> web.Response:
        destinations = self._destinations()
        if destinations is None:
            error = {"error": "this process is not the master", "role": self._status()["role"]}
            return web.json_response(error, status=409)
        return web.json_response({"destinations": destinations})
