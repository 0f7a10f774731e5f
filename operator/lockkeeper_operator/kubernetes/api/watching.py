"""The connections that kopf lists and watches through, and what is to be seen on them.

kopf keeps watches up by itself, but tells nobody that it has listed anew, that it is refused, or
that a kind is gone; and it asks again without delay where a server ends each watch at once. A
layer below it sees the requests themselves.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from lockkeeper_operator.kubernetes.api.errors import NOT_FOUND, error_of
from lockkeeper_operator.kubernetes.api.kinds import Kind
from lockkeeper_operator.kubernetes.api.server import FAILURES, ApiServer

SHORT_SECONDS = 0.5
"""A watch that ends sooner is followed by a delay, which grows while that goes on."""
DELAY_SECONDS_MIN, DELAY_SECONDS_MAX = 0.2, 10.0
ABSENT_SECONDS = 5.0
"""How often it is asked for a kind that the server does not know (any more)."""
BUFFER_BYTES = 1 << 21


@dataclass(frozen=True, slots=True)
class Place:
    """One kind, in one namespace or (None) all."""

    kind: Kind
    namespace: str | None

    def __str__(self) -> str:
        return f"{self.kind.plural} in {self.namespace}" if self.namespace else self.kind.plural


class Watcher(Protocol):
    """Is told what is seen of lists and watches."""

    def begun(self, place: Place, what: str) -> None:
        """Take note of a `list` or `watch` that the server has begun to answer."""

    def listed(self, place: Place) -> None:
        """Take note that a place was listed whole, and is watched from there."""

    def absent(self, place: Place) -> None:
        """Take note of a kind that the server does not know."""


class WatchedRequests:
    """Middleware of kopf's session: adds the credentials, and sees what comes of requests."""

    def __init__(self, api: ApiServer, places: tuple[Place, ...], watcher: Watcher) -> None:
        self._api, self._watcher = api, watcher
        self._places: Mapping[str, Place] = {
            place.kind.path(place.namespace): place for place in places
        }
        self._listing: set[Place] = set()
        self._begun: dict[Place, float] = {}
        self._short: dict[Place, int] = {}
        self.problems: dict[Place, str] = {}
        """Why a place is not kept up to date at present."""

    def session(self) -> aiohttp.ClientSession:
        """Return a new session, which whoever asks for it closes."""
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._api.tls),
            read_bufsize=BUFFER_BYTES,
            trust_env=True,
            middlewares=(self,),
        )

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send *request*; one for a kind that is not there is held back until it is."""
        credentials = await self._api.credentials()
        if credentials:
            request.headers["Authorization"] = credentials
        place = self._places.get(request.url.path)
        if place is None:
            return await handler(request)
        watches = request.url.query.get("watch") == "true"
        if watches:
            await asyncio.sleep(self._delay(place))
        while True:
            response = await self._send(request, handler, place)
            if response.status != NOT_FOUND:
                break
            response.release()
            self._watcher.absent(place)
            await asyncio.sleep(ABSENT_SECONDS)
        if response.status < 300:
            self._note(place, watches)
        return response

    async def _send(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType, place: Place
    ) -> aiohttp.ClientResponse:
        try:
            response = await handler(request)
        except FAILURES as error:
            self._api.count("GET", "none")
            self.problems[place] = str(error) or type(error).__name__
            raise
        self._api.count("GET", str(response.status))
        if response.status < 300:
            self.problems.pop(place, None)
        else:
            self.problems[place] = str(error_of(response.status, await response.read()))
        return response

    def _note(self, place: Place, watches: bool) -> None:
        if not watches:
            if place not in self._listing:
                self._watcher.begun(place, "list")
            self._listing.add(place)
            return
        self._begun[place] = asyncio.get_running_loop().time()
        self._watcher.begun(place, "watch")
        if place in self._listing:
            self._listing.discard(place)
            self._watcher.listed(place)

    def _delay(self, place: Place) -> float:
        """Return the seconds to wait before a watch."""
        lasted = asyncio.get_running_loop().time() - self._begun.get(place, float("-inf"))
        if lasted >= SHORT_SECONDS:
            self._short[place] = 0
            return 0.0
        self._short[place] = row = self._short.get(place, 0) + 1
        return min(DELAY_SECONDS_MAX, DELAY_SECONDS_MIN * 2.0 ** min(row - 1, 10))
