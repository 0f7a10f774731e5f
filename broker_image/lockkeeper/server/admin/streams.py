"""Streams and consumer groups: what there is, how far groups are, and setting them back."""

from typing import Any

from aiohttp import web

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.streams.errors import NoSuchStreamError
from lockkeeper.broker.streams.feeding import FEED_PREFIX
from lockkeeper.server.admin.answers import (
    Done,
    Serving,
    StatusOf,
    in_slices,
    json_list,
    not_master,
    read_json,
    refusal,
    refuse_other_types,
)
from lockkeeper.server.engine import Engine
from lockkeeper.server.stream_views import group_views, stream_views

GROUP = "/api/v1/groups/{group}"
FIRST, LAST = "first", "last"
BEYOND = 1 << 62


class Streams:
    """Tells of the streams and groups of a master, and changes how far groups are."""

    def __init__(self, status: StatusOf, serving: Serving) -> None:
        self._status = status
        self._serving = serving

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [
            web.get("/api/v1/streams", self._list_streams),
            web.get("/api/v1/groups", self._list_groups),
            web.post(f"{GROUP}/reset", self._reset),
            web.delete(GROUP, self._delete),
        ]

    async def _list_streams(self, request: web.Request) -> web.Response:
        engine = self._serving()
        if engine is None:
            return not_master(self._status()["role"])
        engine.stamp()
        found = await in_slices(stream_views(engine.broker))
        return await json_list("streams", sorted(found, key=_name))

    async def _list_groups(self, request: web.Request) -> web.Response:
        engine = self._serving()
        if engine is None:
            return not_master(self._status()["role"])
        engine.stamp()
        found = await in_slices(group_views(engine.broker))
        return await json_list("groups", sorted(found, key=_name))

    async def _reset(self, request: web.Request) -> web.Response:
        """Let a group go on somewhere else; answers when that is durable."""
        engine = self._serving()
        if engine is None:
            return not_master(self._status()["role"])
        refused = refuse_other_types(request)
        if refused is not None:
            return refused
        try:
            wanted = await read_json(request)
            stream, place = str(wanted["stream"]), _place(wanted["to"])
        except (ValueError, LookupError, TypeError):
            return refusal(
                400,
                f'{{"stream": NAME, "to": "{FIRST}", "{LAST}", ms since 1970 or '
                '{"PARTITION": OFFSET}} is needed',
            )
        return await self._set_back(engine, request.match_info["group"], stream, place)

    async def _set_back(
        self, engine: Engine, name: str, stream: str, place: int | dict[int, int]
    ) -> web.Response:
        engine.stamp()
        streams, done = engine.broker.streams, Done()
        # Where a queue begins to be fed can be said before anybody opens it.
        if streams.groups.find(name) is None and not name.startswith(FEED_PREFIX):
            return refusal(404, f"there is no group {name}")
        try:
            offsets = streams.reset_offsets(name, stream, place)
        except NoSuchStreamError as error:
            return refusal(404, str(error))
        except BrokerError as error:
            return refusal(409, str(error))
        streams.groups.write(name)
        engine.broker.streams.settle_behind(done)
        engine.wake()
        await done.settled.wait()
        return web.json_response({"group": name, "stream": stream, "offsets": offsets})

    async def _delete(self, request: web.Request) -> web.Response:
        """Forget a group that nobody is in."""
        engine = self._serving()
        if engine is None:
            return not_master(self._status()["role"])
        engine.stamp()
        name, done = request.match_info["group"], Done()
        try:
            if not engine.broker.streams.groups.delete(name):
                return refusal(404, f"there is no group {name}")
        except BrokerError as error:
            return refusal(409, str(error))
        engine.broker.streams.settle_behind(done)
        engine.wake()
        await done.settled.wait()
        return web.json_response({"removed": name})


def _place(to: Any) -> int | dict[int, int]:
    """Return the time that a request asks for, in ms, or the offsets. Raises ValueError."""
    if to in (FIRST, LAST):
        return 0 if to == FIRST else BEYOND
    if isinstance(to, dict) and to:
        return {int(partition): _whole(offset) for partition, offset in to.items()}
    return _whole(to)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("no whole number")
    return value


def _name(view: dict[str, Any]) -> str:
    return str(view["name"])
