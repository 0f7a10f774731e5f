"""Health, readiness and status: answered in every role."""

from aiohttp import web

from lockkeeper.server.admin.answers import StatusOf
from lockkeeper.server.roles import MASTER


class Standing:
    """Tells how the process is."""

    def __init__(self, status: StatusOf) -> None:
        self._status = status

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [
            web.get("/healthz", self._health),
            web.get("/readyz", self._ready),
            web.get("/api/v1/status", self._show_status),
        ]

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _ready(self, request: web.Request) -> web.Response:
        """Ready for clients: only the master is."""
        role = self._status()["role"]
        return web.json_response({"role": role}, status=200 if role == MASTER else 503)

    async def _show_status(self, request: web.Request) -> web.Response:
        return web.json_response(self._status())
