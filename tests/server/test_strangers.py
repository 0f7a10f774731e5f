"""Before a login nobody costs much: frames, time and number of connections are limited."""

import asyncio
import contextlib
import logging
import secrets
import struct
import time
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from running_engine import Running, greeted, introduction, is_cut

from lockkeeper.message import openwire
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import LOGIN_FRAME_BYTES_MAX
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.server.access import PasswordAuthenticator
from lockkeeper.server.checks import Checks
from lockkeeper.server.metrics import exposition, families
from lockkeeper.server.strangers import DISPLACED, FULL, LATE
from lockkeeper.server.views import door_view, master_view
from lockkeeper_api.broker import Listener
from lockkeeper_api.cluster.access import Access
from lockkeeper_api.passwords import hashed

PATIENCE_SECONDS = 1.0


def listener(**fields: object) -> Listener:
    return Listener.model_validate({"name": "openwire", "port": 0, "loginTimeout": "1s"} | fields)


def authenticator() -> PasswordAuthenticator:
    return PasswordAuthenticator(Access(), {"anna": hashed("tea", secrets.token_bytes(16))})


async def strange(running: Running) -> asyncio.StreamReader:
    """Connect and say nothing; the broker's half of the handshake is read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    reader.writer = writer  # type: ignore[attr-defined]
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    await reader.readexactly(size)
    return reader


def serve(test: Callable[[Running], Awaitable[None]], keeper: PasswordAuthenticator | None = None,
          **fields: object) -> None:  # fmt: skip
    async def run() -> None:
        async with Running(listener(**fields), keeper) as running:
            if keeper is not None:
                keeper.engine = running.engine
            await test(running)
            if keeper is not None:
                keeper.close()

    asyncio.run(run())


def test_whoever_comes_in_while_the_broker_ends_is_cut_at_once() -> None:
    async def test(running: Running) -> None:
        running.engine.close()
        reader, _ = await asyncio.open_connection("127.0.0.1", running.port)
        assert await is_cut(reader, 0.5)

    serve(test)


@pytest.mark.parametrize("size", [LOGIN_FRAME_BYTES_MAX + 1, 40_000_000])
def test_a_long_frame_before_the_handshake_is_refused_by_its_size(size: int) -> None:
    async def test(running: Running) -> None:
        reader = await strange(running)
        reader.writer.write(struct.pack(">i", size))  # type: ignore[attr-defined]
        assert await is_cut(reader, 0.5)

    serve(test)


def test_a_long_frame_before_the_login_is_refused_by_its_size() -> None:
    async def test(running: Running) -> None:
        async with greeted(running) as (reader, writer):
            await asyncio.sleep(0.1)
            writer.write(struct.pack(">i", LOGIN_FRAME_BYTES_MAX + 1))
            assert await is_cut(reader, 0.5)
        async with greeted(running, "ID:in", user_name="anna", password="tea") as (reader, writer):
            await asyncio.sleep(0.5)
            writer.write(struct.pack(">i", LOGIN_FRAME_BYTES_MAX + 1))
            assert not await is_cut(reader, 1.5)

    serve(test, authenticator())


@pytest.mark.parametrize("greets", [True, False])
def test_signs_of_life_do_not_lengthen_the_time_to_log_in(greets: bool) -> None:
    async def test(running: Running) -> None:
        reader = await strange(running)
        writer: asyncio.StreamWriter = reader.writer  # type: ignore[attr-defined]
        if greets:
            writer.write(framed(openwire.encode(offer(ListenerSettings()))))
        else:
            writer.write(struct.pack(">i", 60_000))
        alive = framed(openwire.encode(openwire.KeepAliveInfo()))
        began, cut = time.monotonic(), asyncio.ensure_future(is_cut(reader, 10))
        while not cut.done():
            writer.write(alive if greets else b"\0")
            await asyncio.sleep(0.1)
        assert PATIENCE_SECONDS <= time.monotonic() - began < PATIENCE_SECONDS + 1.5
        assert running.engine.strangers.turned_away[LATE] == 1
        assert len(running.engine.peers) == 0

    serve(test, authenticator())


def test_one_too_many_displaces_the_oldest_stranger_and_nobody_who_is_in() -> None:
    async def test(running: Running) -> None:
        async with greeted(running, "ID:in") as (inside, _):
            await asyncio.sleep(0.2)
            waiting = [await strange(running) for _ in range(4)]
            cut = await asyncio.gather(*(is_cut(each, 0.4) for each in (inside, *waiting)))
            assert cut == [False, True, False, False, False]
            assert running.engine.strangers.turned_away[DISPLACED] == 1

    serve(test, connectionsBeforeLoginMax=3)


def test_strangers_keep_nobody_out_where_connections_are_limited() -> None:
    async def test(running: Running) -> None:
        waiting = [await strange(running) for _ in range(3)]
        async with contextlib.AsyncExitStack() as stack:
            for number in range(3):
                client = greeted(running, f"ID:{number}")
                reader, _ = await stack.enter_async_context(client)
                for _ in range(4):  # Our half of the handshake, BrokerInfo, the answer.
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    frame = await reader.readexactly(size)
                    if isinstance(openwire.decode(frame)[0], openwire.Response):
                        break
            assert list(running.broker.connections) == ["ID:0", "ID:1", "ID:2"]
            assert all([await is_cut(reader, 0.5) for reader in waiting])
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await strange(running)
            assert running.engine.strangers.turned_away[FULL] == 1

    serve(test, connectionsMax=3)


def test_the_log_is_not_flooded_and_metrics_count_everybody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(running: Running) -> None:
        waiting = [await strange(running) for _ in range(50)]
        await asyncio.sleep(PATIENCE_SECONDS + 1.2)
        assert len(waiting) == 50
        view = master_view(running.broker, running.broker.store)
        assert door_view(running.engine.strangers) == {
            "connectionsBeforeLogin": 0,
            "connectionsTurnedAway": {"late": 5, "displaced": 45, "full": 0},
        }
        status = {"broker": "b", "replica": "b", "version": "1", "role": "master", "since": 1,
                  "epoch": 1, "takesOver": None, "lease": None} | view  # fmt: skip
        text = exposition(families(status | door_view(running.engine.strangers), ()))
        name = "lockkeeper_connections_turned_away_total"
        assert f'{name}{{broker="b",reason="displaced"}} 45\n' in text

    with caplog.at_level(logging.WARNING):
        serve(test, connectionsBeforeLoginMax=5)
    lines = [line for line in caplog.messages if "turned away" in line]
    assert len(lines) == 1


@pytest.mark.slow
def test_a_thousand_clients_of_one_user_log_in_at_once() -> None:
    async def one(running: Running, number: int) -> asyncio.StreamWriter:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        info = introduction(f"ID:{number}", user_name="anna", password="tea")
        writer.write(
            framed(openwire.encode(offer(ListenerSettings()))) + framed(openwire.encode(info))
        )
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            if isinstance(openwire.decode(await reader.readexactly(size))[0], openwire.Response):
                return writer

    async def test(running: Running) -> None:
        began = time.process_time()
        open_ones = await asyncio.gather(*(one(running, number) for number in range(400)))
        # Clients and broker share this process: 1,000 at this rate, in CPU time.
        assert (time.process_time() - began) * 2.5 < 3
        assert len(running.broker.connections) == len(open_ones) == 400

    serve(test, authenticator(), loginTimeout="10s")


def asked(checks: Checks, *questions: tuple[str, str]) -> dict[str, list[float]]:
    """Ask of many addresses and passwords at once; return when each address was answered."""
    found: dict[str, list[float]] = {}

    async def run() -> None:
        began, left = time.monotonic(), len(questions)
        done = asyncio.Event()

        def tell(address: str, _: bool) -> None:
            nonlocal left
            found.setdefault(address, []).append(time.monotonic() - began)
            left -= 1
            if not left:
                done.set()

        for address, password in questions:
            key = f"{password}".encode()
            checks.ask(key, password, "", address, partial(tell, address))
        async with asyncio.timeout(20):
            await done.wait()
        checks.close()

    asyncio.run(run())
    return found


def counting() -> tuple[Checks, list[str]]:
    hashed_passwords: list[str] = []

    def matches(password: str, _: str) -> bool:
        hashed_passwords.append(password)
        time.sleep(0.01)
        return password == "right"

    return Checks(matches), hashed_passwords


def test_a_question_that_many_ask_is_answered_once() -> None:
    checks, hashed_passwords = counting()
    found = asked(checks, *[(f"10.0.0.{number % 5}", "right") for number in range(1000)])
    assert hashed_passwords == ["right"]
    assert sum(map(len, found.values())) == 1000


def test_guesses_of_one_address_get_slower_and_hold_up_nobody_else() -> None:
    checks, _ = counting()
    guesses = [("10.0.0.1", f"wrong {number}") for number in range(8)]
    found = asked(checks, *guesses, ("10.0.0.2", "right"))
    assert found["10.0.0.2"][0] < 0.2
    pauses = [later - earlier for earlier, later in
              zip(found["10.0.0.1"], found["10.0.0.1"][1:], strict=False)]  # fmt: skip
    assert pauses[-1] > 0.7
    assert max(pauses[:3]) < 0.3
    assert sum(pauses) > 0.1 + 0.2 + 0.4 + 0.8


def test_guesses_push_out_nothing_that_was_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockkeeper.server.checks.WRONG_MAX", 3)
    checks, hashed_passwords = counting()
    guesses = [(f"10.0.1.{number}", f"wrong {number}") for number in range(20)]
    asked(checks, ("10.0.0.1", "right"), *guesses)
    assert len(checks._wrong) == 3
    assert list(checks._right) == [b"right"]
    assert len(hashed_passwords) == 21


def test_what_one_address_asks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockkeeper.server.checks.WAITING_PER_ADDRESS_MAX", 4)
    checks, hashed_passwords = counting()
    asked(checks, *[("10.0.0.9", f"wrong {number}") for number in range(50)])
    # One is being checked while four wait; the others are refused at once.
    assert hashed_passwords == [f"wrong {number}" for number in range(5)]
