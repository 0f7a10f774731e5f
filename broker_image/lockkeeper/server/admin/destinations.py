"""Destinations: what there is."""

from aiohttp import web

from lockkeeper.server.admin.answers import Serving, StatusOf, not_master
from lockkeeper.server.views import destinations_view


class Destinations:
    """Tells of the destinations of a master."""

    def __init__(self, status: StatusOf, serving: Serving) -> None:
        self._status = status
        self._serving = serving

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [web.get("/api/v1/destinations", self._list)]

    async def _list(self, request: web.Request) -> web.Response:
        engine = self._serving()
        if engine is None:
            return not_master(self._status()["role"])
        return web.json_response({"destinations": destinations_view(engine.broker)})
