"""Destinations: what there is, what is declared, removed and emptied; of a master only."""

import asyncio
import json
from heapq import merge
from typing import Any

from aiohttp import web

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.purging import purge
from lockkeeper.message.destination import Destination
from lockkeeper.server.admin.answers import (
    JSON,
    NOT_MASTER,
    Done,
    Serving,
    StatusOf,
    in_slices,
    json_list,
    read_json,
    refusal,
    refuse_other_types,
)
from lockkeeper.server.declarations import (
    KINDS,
    Declarations,
    InvalidDeclarationError,
    is_in_use,
    read_declaration,
)
from lockkeeper.server.engine import Engine
from lockkeeper.server.stream_declarations import StreamDeclarations, is_stream_in_use
from lockkeeper.server.views import destination_views, in_order, place

STREAMS = "streams"
OF_BROKER = (
    "role",
    "takesOver",
    "epoch",
    "configuration",
    "refused",
    "refusal",
    "version",
    "bridges",
)
"""What `status` says that whoever looks after the broker needs to know each time."""
ALL, ONE = "/api/v1/destinations", "/api/v1/destinations/{kind}/{name}"


class Destinations:
    """Tells of the destinations of a master, and changes them."""

    def __init__(self, status: StatusOf, serving: Serving) -> None:
        self._status = status
        self._serving = serving
        self._declarations = Declarations()
        self._streams = StreamDeclarations()
        self._declared_to: Engine | None = None

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [
            web.get(ALL, self._list),
            web.get(ONE, self._show),
            web.put(ONE, self._declare),
            web.delete(ONE, self._remove),
            web.post(f"{ONE}/purge", self._purge),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        engine = self._master()
        if request.query.get("owned") == "true":
            # How far the groups of a stream are takes a look at each of them.
            streams = await in_slices(self._streams.owned(engine.broker))
            owned = [*self._declarations.owned(engine.broker), *streams]
            status = self._status()
            # An operator asks hundreds of brokers for both: it need not do so twice.
            broker = {key: status[key] for key in OF_BROKER if key in status}
            return await json_list("destinations", sorted(owned, key=place), broker=broker)
        views = await in_slices(destination_views(engine.broker))
        pieces = await in_slices(in_order(views))
        return await json_list("destinations", merge(*pieces, key=place))

    async def _show(self, request: web.Request) -> web.Response:
        engine = self._master()
        if _is_stream(request):
            return self._show_stream(engine, request.match_info["name"])
        destination = _destination(request)
        view = self._declarations.view(engine.broker, destination)
        return _absent(destination) if view is None else web.json_response(view)

    async def _declare(self, request: web.Request) -> web.Response:
        """Make a destination, or change its policy: that takes effect at once."""
        destination = None if _is_stream(request) else _destination(request)
        refused = refuse_other_types(request)
        if refused is not None:
            return refused
        try:
            value = await read_json(request)
        except ValueError:
            return refusal(400, "the body is no JSON")
        engine = self._master()
        if destination is None:
            return self._declare_stream(engine, request.match_info["name"], value)
        try:
            declaration = read_declaration(destination.kind, destination.name, value)
            self._declarations.declare(engine.broker, declaration)
        except (InvalidDeclarationError, BrokerError) as error:
            return refusal(422, str(error))
        engine.wake()
        return web.json_response(self._declarations.view(engine.broker, destination))

    async def _remove(self, request: web.Request) -> web.Response:
        """Remove a destination, with its messages unless only an empty one is to go."""
        engine = self._master()
        destination = None if _is_stream(request) else _destination(request)
        if_empty = request.query.get("ifEmpty", "true")
        if if_empty not in ("true", "false"):
            return refusal(400, f"ifEmpty: expected true or false, found {if_empty}")
        if destination is None:
            name = request.match_info["name"]
            return await self._remove_stream(engine, name, if_empty == "true")
        if engine.broker.registry.find(destination) is None:
            return _absent(destination)
        if if_empty == "true" and is_in_use(engine.broker, destination):
            return refusal(409, f"{destination} has messages or consumers")
        done = Done()
        try:
            self._declarations.remove(engine.broker, destination, done)
        except BrokerError as error:
            return refusal(409, str(error))
        engine.wake()
        await done.settled.wait()
        return web.json_response({"removed": str(destination)})

    async def _purge(self, request: web.Request) -> web.Response:
        """Remove the messages that wait now; answers when that is durable."""
        refused = refuse_other_types(request)
        if refused is not None:
            return refused
        engine, destination = self._master(), _destination(request)
        if engine.broker.registry.find(destination) is None:
            return _absent(destination)
        done, removed = Done(), 0
        for count in purge(engine.broker, destination, done):
            removed += count
            engine.wake()
            await asyncio.sleep(0)
            engine.stamp()
        engine.wake()
        await done.settled.wait()
        return web.json_response({"removed": removed})

    # Streams

    def _show_stream(self, engine: Engine, name: str) -> web.Response:
        view = self._streams.view(engine.broker, name)
        return _no_stream(name) if view is None else web.json_response(view)

    def _declare_stream(self, engine: Engine, name: str, value: Any) -> web.Response:
        try:
            self._streams.declare(engine.broker, name, value)
        except (InvalidDeclarationError, BrokerError) as error:
            return refusal(422, str(error))
        engine.wake()
        return self._show_stream(engine, name)

    async def _remove_stream(self, engine: Engine, name: str, if_empty: bool) -> web.Response:
        if engine.broker.streams.find(name) is None:
            return _no_stream(name)
        if if_empty and is_stream_in_use(engine.broker, name):
            return refusal(409, f"stream {name} has messages or members that read it")
        self._streams.remove(engine.broker, name)
        done = Done()
        engine.broker.streams.settle_behind(done)
        engine.wake()
        await done.settled.wait()
        return web.json_response({"removed": name})

    def _master(self) -> Engine:
        """Return the engine, the clock told. Raises HTTPConflict in another role than master."""
        engine = self._serving()
        if engine is None:
            role = self._status()["role"]
            text = json.dumps({"error": NOT_MASTER, "role": role})
            raise web.HTTPConflict(text=text, content_type=JSON)
        if engine is not self._declared_to:
            # A process that is master again knows nothing of what it was told before.
            self._declared_to, self._declarations = engine, Declarations()
            self._streams = StreamDeclarations()
        engine.stamp()
        return engine


def _destination(request: web.Request) -> Destination:
    """Return the destination that the path names. Raises HTTPNotFound for an unknown kind."""
    kind = KINDS.get(request.match_info["kind"])
    if kind is None:
        text = json.dumps({"error": f"destinations are {', '.join(KINDS)} or {STREAMS}"})
        raise web.HTTPNotFound(text=text, content_type=JSON)
    return Destination(kind, request.match_info["name"])


def _is_stream(request: web.Request) -> bool:
    return request.match_info["kind"] == STREAMS


def _no_stream(name: str) -> web.Response:
    return refusal(404, f"there is no stream {name}")


def _absent(destination: Destination) -> web.Response:
    return refusal(404, f"there is no {destination}")
