"""Fences: an order that a process let go of everything and take nothing, or stand by again."""

from collections.abc import Callable

from aiohttp import web

from lockkeeper.server.admin.answers import read_json, refusal, refuse_other_types

FORM = '{"fenced": true or false} is needed'


class Fencing:
    """Hands on the order, in every role; the role tells when it has been carried out."""

    def __init__(self, put: Callable[[bool], None]) -> None:
        self._put = put

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [web.post("/api/v1/fence", self._change)]

    async def _change(self, request: web.Request) -> web.Response:
        refused = refuse_other_types(request)
        if refused is not None:
            return refused
        try:
            fenced = (await read_json(request))["fenced"]
        except (ValueError, LookupError, TypeError):
            return refusal(400, FORM)
        if not isinstance(fenced, bool):
            return refusal(400, FORM)
        self._put(fenced)
        return web.json_response({"fenced": fenced})
