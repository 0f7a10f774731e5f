"""Strangers at the admin endpoint cost little: few descriptors, not for long, nothing unpacked."""

import asyncio
import gzip
import json
import time
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import ClientSession

from lockkeeper.server.admin import Admin, answers, endpoint
from lockkeeper.server.admin.callers import CALLERS_MAX

JSON = {"Content-Type": "application/json"}
Use = Callable[[int], Awaitable[None]]


def at_an_endpoint(use: Use) -> None:
    """Run *use* with the port of an endpoint."""

    async def run() -> None:
        admin = Admin(dict, lambda: None, lambda sources: "", lambda fenced: None)
        await admin.start("127.0.0.1", 0)
        try:
            await use(admin.port)
        finally:
            await admin.stop()

    asyncio.run(run())


async def is_open(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.01):
            await reader.read(1)
    except TimeoutError:
        return True
    return False


def test_who_asks_gets_an_answer_however_many_say_nothing() -> None:
    async def use(port: int) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * CALLERS_MAX)]
        async with ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
                assert answer.status == 200
            left = [await is_open(reader) for reader, _ in silent]
            # The last ones are those that stayed, and one made room for who asked.
            assert left == [False] * (CALLERS_MAX + 1) + [True] * (CALLERS_MAX - 1)
        for _, writer in silent:
            writer.close()

    at_an_endpoint(use)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nA: "])
def test_who_asks_nothing_is_cut_off(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "KEPT_SECONDS", 0.2)

    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()

    at_an_endpoint(use)


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "SILENT_SECONDS_MAX", 0.2)

    async def use(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = "POST /api/v1/fence HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
        writer.write(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
        async with asyncio.timeout(20):
            assert (await reader.readline()).split()[1] == b"400"
        writer.close()

    at_an_endpoint(use)


def test_what_is_compressed_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(200 << 20))

    async def use(port: int) -> None:
        headers = {**JSON, "Content-Encoding": "gzip"}
        began = time.process_time()
        async with ClientSession() as session:
            url = f"http://127.0.0.1:{port}/api/v1/configuration"
            async with session.post(url, data=bomb, headers=headers) as answer:
                assert answer.status == 415
                assert "must not be compressed" in (await answer.json())["error"]
        # To unpack it takes more than 0.1 s.
        assert time.process_time() - began < 0.1

    at_an_endpoint(use)


@pytest.mark.parametrize("body", [rb'{"text": "\ud800", "hash": ""}', b"\xff\xfe{", b"[" * 60_000])
def test_what_is_no_text_is_refused(body: bytes) -> None:
    async def use(port: int) -> None:
        headers = {"Content-Type": "application/json; charset=punycode"}
        async with ClientSession() as session:
            url = f"http://127.0.0.1:{port}/api/v1/configuration"
            async with session.post(url, data=body, headers=headers) as answer:
                assert answer.status == 400
                assert json.loads(await answer.text())["error"]

    at_an_endpoint(use)
