"""Connections of the admin endpoint, limited because the journal needs descriptors, too."""

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from lockkeeper.server.admin.answers import Handler

CALLERS_MAX = 100


class Callers:
    """Makes what serves a connection to `server`; those in `_attended` wait for an answer.

    Who comes when there are too many takes the place of who came first and asks nothing: an
    honest caller has asked within milliseconds.
    """

    def __init__(self) -> None:
        self.server: web.Server
        self._attended: set[RequestHandler] = set()

    def __call__(self) -> RequestHandler:
        """Return what serves somebody who comes now."""
        callers = [each for each in self.server.connections if each.connected]
        if len(callers) >= CALLERS_MAX:
            silent = (each for each in callers if each not in self._attended)
            next(silent, callers[0]).force_close()
        return self.server()

    @web.middleware
    async def attend(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a caller stay who waits for an answer."""
        self._attended.add(request.protocol)
        try:
            return await handler(request)
        finally:
            self._attended.discard(request.protocol)
