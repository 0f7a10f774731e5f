"""Figures for Prometheus: answered in every role, to everybody."""

from itertools import chain

from aiohttp import web

from lockkeeper.server.admin.answers import Serving, StatusOf, in_slices
from lockkeeper.server.metrics import exposition_lines, families
from lockkeeper.server.stream_metrics import stream_families
from lockkeeper.server.stream_views import group_views, stream_views
from lockkeeper.server.views import destination_views

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Figures:
    """Tells figures of the process and, in a master, of its destinations."""

    def __init__(self, status: StatusOf, serving: Serving) -> None:
        self._status = status
        self._serving = serving

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [web.get("/metrics", self._answer_metrics)]

    async def _answer_metrics(self, request: web.Request) -> web.Response:
        engine = self._serving()
        views = () if engine is None else destination_views(engine.broker)
        destinations = await in_slices(views)
        streams = await in_slices(() if engine is None else stream_views(engine.broker))
        groups = await in_slices(() if engine is None else group_views(engine.broker))
        found = chain(families(self._status(), destinations), stream_families(streams, groups))
        lines = await in_slices(exposition_lines(found))
        body = "\n".join(lines) + "\n"
        return web.Response(body=body.encode(), headers={"Content-Type": TEXT})
