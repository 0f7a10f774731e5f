"""Figures for Prometheus: answered in every role, to everybody."""

from aiohttp import web

from lockkeeper.server.admin.answers import Serving, StatusOf
from lockkeeper.server.metrics import exposition, families
from lockkeeper.server.views import destinations_view

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Figures:
    """Tells figures of the process and, in a master, of its destinations."""

    def __init__(self, status: StatusOf, serving: Serving) -> None:
        self._status = status
        self._serving = serving

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [web.get("/metrics", self._tell)]

    async def _tell(self, request: web.Request) -> web.Response:
        engine = self._serving()
        destinations = [] if engine is None else destinations_view(engine.broker)
        text = exposition(families(self._status(), destinations))
        return web.Response(body=text.encode(), headers={"Content-Type": TEXT})
