"""What the themes of the admin endpoint share: refusals, whether this is the master, receipts."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from aiohttp import web

from lockkeeper.server.engine import Engine

JSON = "application/json"
NOT_MASTER = "this process is not the master"

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
    through a browser without asking first.
    """
    if request.content_type != JSON:
        return refusal(415, f"Content-Type: {JSON} is needed")
    return None


class Done:
    """A receipt that can be awaited."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()

    def settle(self) -> None:
        """Let who waits go on."""
        self.settled.set()
