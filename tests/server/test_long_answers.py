"""Answers of the admin endpoint that take long to make, or to understand."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import make_mocked_request
from running_engine import Running

from lockkeeper.message.destination import queue
from lockkeeper.server.admin import answers
from lockkeeper.server.admin.destinations import Destinations
from lockkeeper.server.admin.endpoint import Admin
from lockkeeper.server.admin.figures import Figures

COUNT = 2500
STATUS: dict[str, Any] = {
    "broker": "b", "replica": "b-0", "version": "1", "role": "standby", "since": 1.0,
    "takesOver": True, "epoch": 1, "lease": None,
}  # fmt: skip


def steps_of(answer: Coroutine[Any, Any, web.StreamResponse]) -> tuple[int, web.Response]:
    """Carry an answer out; return how often it let others have a turn, and what it is."""
    steps = 0
    while True:
        try:
            answer.send(None)
        except StopIteration as done:
            return steps, done.value
        steps += 1


def test_nobody_waits_while_many_destinations_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "SLICE_SECONDS", 0, raising=False)

    async def run() -> None:
        async with Running() as running:
            for number in range(COUNT):
                running.broker.route(queue(f"Q.{number}"))
            for theme, path in ((Destinations, "/api/v1/destinations"), (Figures, "/metrics")):
                handler: Any = theme(lambda: STATUS, lambda: running.engine).routes()[0].handler
                steps, response = steps_of(handler(make_mocked_request("GET", path)))
                assert steps > COUNT
                if path != "/metrics":
                    assert isinstance(response.body, bytes)
                    found = json.loads(response.body)["destinations"]
                    names = [each["name"] for each in found]
                    assert names == sorted(f"Q.{number}" for number in range(COUNT))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"[" * 60_000, "application/json"), (b"\xff{}", "application/json; charset=latin-1")],
    ids=["nested", "charset"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "destinations/queues/Q"),
        ("POST", "fence"),
        ("POST", "configuration"),
        ("POST", "transactions"),
    ],
)
def test_what_cannot_be_read_as_json_is_refused(
    method: str, path: str, body: bytes, kind: str
) -> None:
    async def run() -> int:
        async with Running() as running:
            admin = Admin(lambda: STATUS, lambda: running.engine, lambda _: "", lambda _: None)
            await admin.start("127.0.0.1", 0)
            url = f"http://127.0.0.1:{admin.port}/api/v1/{path}"
            headers = {"Content-Type": kind}
            try:
                async with (
                    ClientSession() as session,
                    session.request(method, url, data=body, headers=headers) as answer,
                ):
                    return answer.status
            finally:
                await admin.stop()

    assert asyncio.run(run()) == 400
