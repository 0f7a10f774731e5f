"""The admin endpoint: health, state, and what a person may decide, over HTTP; JSON only."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError
from lockkeeper.message.ids import parse_xid
from lockkeeper.server.engine import Engine
from lockkeeper.server.views import destinations_view, transactions_view
from lockkeeper.server.why import UnknownSubjectError, files_answer, producers_answer, queue_answer

JSON = "application/json"
REQUEST_BYTES_MAX = 64 * 1024
OUTCOMES = {"commit": True, "rollback": False}

StatusOf = Callable[[], dict[str, Any]]
Handler = Callable[[web.Request], Awaitable[web.Response]]


class Admin:
    """Serves one process, whatever its role; it binds before the role is known."""

    def __init__(self, status: StatusOf, serving: Callable[[], Engine | None]) -> None:
        """*serving* returns None while the process is not the master."""
        self._status = status
        self._serving = serving
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on *host*:*port*. Raises OSError when another program does."""
        app = web.Application(client_max_size=REQUEST_BYTES_MAX)
        app.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/readyz", self._ready),
                web.get("/api/v1/status", self._show_status),
                web.get("/api/v1/destinations", self._telling("destinations", destinations_view)),
                web.get("/api/v1/transactions", self._telling("transactions", transactions_view)),
                web.post("/api/v1/transactions", self._decide_transaction),
                web.get("/api/v1/why/{kind}", self._tell_why),
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

    def _telling(self, name: str, view: Callable[[Broker], Any]) -> Handler:
        """Return what answers with a view of the master's core."""

        async def tell(request: web.Request) -> web.Response:
            engine = self._serving()
            if engine is None:
                return self._not_master()
            return web.json_response({name: view(engine.broker)})

        return tell

    async def _tell_why(self, request: web.Request) -> web.Response:
        """Explain a queue, one of its messages, waiting producers, or the journal's files."""
        engine, name = self._serving(), request.query.get("name", "")
        if engine is None:
            return self._not_master()
        engine.stamp()
        try:
            match request.match_info["kind"]:
                case "queue":
                    message_id = request.query.get("message", "")
                    answer = queue_answer(engine.broker, name, message_id)
                case "file":
                    answer = await files_answer(engine.broker, name)
                case "producer":
                    answer = producers_answer(engine.broker, name)
                case kind:
                    return _refusal(404, f"why {kind}: queue, producer and file can be explained")
        except (UnknownSubjectError, ValueError) as error:
            return _refusal(404, str(error))
        return web.json_response(answer)

    def _not_master(self) -> web.Response:
        return _refusal(409, "this process is not the master", role=self._status()["role"])

    async def _decide_transaction(self, request: web.Request) -> web.Response:
        """Commit or roll back a prepared transaction; answers when that is durable."""
        engine = self._serving()
        if engine is None:
            return self._not_master()
        # No page of another site can make a browser send this type without asking first.
        if request.content_type != JSON:
            return _refusal(415, f"Content-Type: {JSON} is needed")
        try:
            wanted = await request.json()
            identifier, commit = parse_xid(wanted["transaction"]), OUTCOMES[wanted["outcome"]]
        except (ValueError, LookupError, TypeError):
            return _refusal(
                400,
                '{"transaction": "XID:[…]", "outcome": "commit" or "rollback"} is needed',
            )
        done = _Done()
        engine.stamp()
        try:
            engine.broker.transactions.force(identifier, commit, done)
        except BrokerError as error:
            return _refusal(404, str(error))
        engine.wake()
        await done.settled.wait()
        return web.json_response(wanted)


class _Done:
    """A receipt that can be awaited."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()

    def settle(self) -> None:
        """Let who waits go on."""
        self.settled.set()


def _refusal(status: int, error: str, **more: str) -> web.Response:
    return web.json_response({"error": error, **more}, status=status)
