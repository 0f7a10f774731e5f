"""Answers of the admin endpoint that its themes share: refusals, standbys, receipts."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias, TypeVar

from aiohttp import web

from lockkeeper.server.engine import Engine

JSON = "application/json"
NOT_MASTER = "this process is not the master"
SILENT_SECONDS_MAX = 10.0
"""How long a request may take to come, and its body."""
SLICE_SECONDS = 0.005
"""How long an answer is worked on before everybody else has a turn."""

_Item = TypeVar("_Item")

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
StatusOf: TypeAlias = Callable[[], dict[str, Any]]
Serving: TypeAlias = Callable[[], Engine | None]
"""The engine of a master; None while the process is something else."""


def refusal(status: int, error: str, **more: str) -> web.Response:
    """Return an answer that says why there is no other."""
    return web.json_response({"error": error, **more}, status=status)


def not_master(role: str) -> web.Response:
    """Return the answer of a process that is not the master."""
    return refusal(409, NOT_MASTER, role=role)


def refuse_other_types(request: web.Request) -> web.Response | None:
    """Refuse a body that does not call itself JSON: no page of another site can send such one
    through a browser without asking first. It comes as it is, not compressed.
    """
    if request.content_type != JSON:
        return refusal(415, f"Content-Type: {JSON} is needed")
    if "Content-Encoding" in request.headers:
        return refusal(415, "Content-Encoding: a body must not be compressed")
    return None


async def read_json(request: web.Request) -> Any:
    """Return what a body says. Raises ValueError when it is no JSON that anybody can read.

    JSON is UTF-8, whatever a request calls it (RFC 8259, section 8.1).
    """
    try:
        async with asyncio.timeout(SILENT_SECONDS_MAX):
            body = await request.read()
        value = json.loads(body.decode())
        # Half of a surrogate pair is no text: nobody could write it anywhere.
        json.dumps(value, ensure_ascii=False).encode()
        return value
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except TimeoutError as error:
        raise ValueError(f"it did not come within {SILENT_SECONDS_MAX:.0f} s") from error


async def in_slices(items: Iterable[_Item]) -> list[_Item]:
    """Return *items*, which may take long to make, with turns for everybody else meanwhile."""
    found: list[_Item] = []
    until = time.monotonic() + SLICE_SECONDS
    for item in items:
        found.append(item)
        if time.monotonic() > until:
            await asyncio.sleep(0)
            until = time.monotonic() + SLICE_SECONDS
    return found


async def json_list(name: str, items: Iterable[Any], **beside: Any) -> web.Response:
    """Return an answer with a list that may be long, and with short members *beside* it."""
    texts = await in_slices(map(json.dumps, items))
    members = [f'"{key}": {json.dumps(value)}' for key, value in beside.items()]
    members.append(f'"{name}": [{", ".join(texts)}]')
    body = f"{{{', '.join(members)}}}"
    return web.Response(body=body.encode(), content_type=JSON, charset="utf-8")


class Done:
    """A receipt that can be awaited."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()

    def settle(self) -> None:
        """Let who waits go on."""
        self.settled.set()
