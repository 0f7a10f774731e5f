"""Stands between an operator and the API server, and misbehaves when told to."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import aiohttp
from aiohttp import web

WRITES = ("POST", "PUT", "PATCH", "DELETE")
DROPPED = {"host", "content-length", "transfer-encoding", "content-encoding", "connection"}

GONE = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "code": 410,
        "reason": "Expired",
        "message": "too old resource version",
    },
}


class FaultyProxy:
    """Plain HTTP on this side, TLS on the other.

    *busy* says of a request whether it is answered with 429. While *down*, connections are cut
    before they are answered, watches too. *writes* lists what was let through.
    """

    def __init__(self, url: str, authority: Path) -> None:
        self._url = url
        self._context = ssl.create_default_context(cafile=str(authority))
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._watches: set[asyncio.Task[None]] = set()
        self.url = ""
        self.down = False
        self.busy: Callable[[str, str], bool] = lambda _verb, _path: False
        self.hangs: Callable[[str, str], bool] = lambda _verb, _path: False
        """Says of a request whether it is taken and not answered for a minute."""
        self.holds: Callable[[str, str], bool] = lambda _verb, _path: False
        """Says of a request whether it has to wait for as long as that is so."""
        self.user = ""
        """On whose behalf requests are made, empty for that of who makes them."""
        self.limit: int | None = None
        """Goes down after so many writes."""
        self.writes: list[str] = []
        self.renewals: list[str] = []
        self.reads: list[str] = []
        self.outdated = False
        """Answers the next watch of each kind with `410 Gone`, as after a long silence."""
        self.brief = False
        """Ends each watch as soon as it has begun."""
        self.gaps = 0
        self.watched = 0
        self.kinds: set[str] = set()
        """How many watches were told that they are outdated, and begun; and of what."""
        self._told: set[str] = set()

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        connector = aiohttp.TCPConnector(ssl=self._context, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop listening."""
        self.cut()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    def cut(self) -> int:
        """Cut all watches; returns how many there were."""
        cut = list(self._watches)
        for watch in cut:
            watch.cancel()
        return len(cut)

    def go_down(self) -> None:
        """Be out of reach from now on."""
        self.down = True
        self.cut()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return _cut_off(request)
        if self.busy(request.method, request.path_qs):
            return web.json_response(
                {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "busy"},
                status=429,
                headers={"Retry-After": "1"},
            )
        if request.method == "GET":
            self.reads.append(request.path_qs)
        while self.holds(request.method, request.path_qs):
            await asyncio.sleep(0.05)
        if self.hangs(request.method, request.path_qs):
            await asyncio.sleep(60)
            return _cut_off(request)
        if request.method == "PUT" and "/leases/" in request.path:
            self.renewals.append(request.path)
        if request.method in WRITES and "/leases/" not in request.path:
            self.writes.append(f"{request.method} {request.path}")
            if self.limit is not None and len(self.writes) > self.limit:
                self.go_down()
                return _cut_off(request)
        if "watch=true" in request.query_string:
            self.watched += 1
            self.kinds.add(request.path)
            if self.brief:
                return web.Response(content_type="application/json")
            if self.outdated and request.path not in self._told:
                self._told.add(request.path)
                self.gaps += 1
                return web.json_response(GONE)
        assert self._session is not None
        headers = {k: v for k, v in request.headers.items() if k.lower() not in DROPPED}
        if self.user:
            headers["Impersonate-User"] = self.user
        async with self._session.request(
            request.method,
            self._url + request.path_qs,
            headers=headers,
            data=await request.read() or None,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in DROPPED}
            response = web.StreamResponse(status=answer.status, headers=kept)
            if "watch=true" not in request.query_string:
                body = await answer.read()
                return web.Response(status=answer.status, headers=kept, body=body)
            await response.prepare(request)
            await self._stream(request, answer, response)
            return response

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, to: web.StreamResponse
    ) -> None:
        async def copy() -> None:
            async for chunk in answer.content.iter_any():
                await to.write(chunk)

        task = asyncio.create_task(copy())
        self._watches.add(task)
        try:
            await asyncio.wait({task})
            if task.cancelled() or task.exception() is not None:
                _cut_off(request)
        finally:
            task.cancel()
            self._watches.discard(task)


def _cut_off(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=503)
