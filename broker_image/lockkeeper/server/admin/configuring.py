"""Another configuration for a process that runs, from the operator or from a person."""

from collections.abc import Callable
from typing import TypeAlias

from aiohttp import web

from lockkeeper.server.admin.answers import read_json, refusal, refuse_other_types
from lockkeeper.server.configuration import (
    TEXT_BYTES_MAX,
    RefusedConfigurationError,
    Sources,
    hash_of,
)

SOURCE = "configuration"
"""What the text is called where it is said what is wrong with it."""
FORM = '{"text": "the whole file", "hash": "of it"} is needed'
Take: TypeAlias = Callable[[Sources], str]
"""Takes over a configuration; returns its hash. Raises RefusedConfigurationError."""


class Configuring:
    """Hands on configurations, in every role."""

    def __init__(self, take: Take) -> None:
        self._take = take

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [web.post("/api/v1/configuration", self._change)]

    async def _change(self, request: web.Request) -> web.Response:
        refused = refuse_other_types(request)
        if refused is not None:
            return refused
        # Longer than other requests may be: twice the text, for what JSON escapes.
        wanted = request.clone(client_max_size=2 * TEXT_BYTES_MAX)
        try:
            said = await read_json(wanted)
            text, expected = said["text"], said.get("hash")
        except (ValueError, LookupError, TypeError, AttributeError):
            return refusal(400, FORM)
        if not isinstance(text, str):
            return refusal(400, FORM)
        sources = [(SOURCE, text)]
        if expected != hash_of(sources):
            return refusal(400, f"hash: expected {hash_of(sources)}, which is that of the text")
        try:
            return web.json_response({"configuration": self._take(sources)})
        except RefusedConfigurationError as error:
            return refusal(422, str(error), refused=expected)
