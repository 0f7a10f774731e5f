"""Questions to a real socket: over one connection, as long as there is one; to whom the operator's
authority vouches for alone.
"""

import asyncio
import ssl
import tracemalloc
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from lockkeeper_operator.certificates.issuing import Pair, issued, new_authority
from lockkeeper_operator.polling import admin_endpoint
from lockkeeper_operator.polling.admin_endpoint import (
    Address,
    AdminEndpoints,
    BrokerSilentError,
)

LOOPBACK = "127.0.0.1"
NOW = datetime.now(UTC)
NAME = "demo-replicas.shop.svc"


class Broker:
    """Answers, and counts from how many connections it was asked."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.tokens: list[str | None] = []
        self.changed: list[object] = []
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, encryption: ssl.SSLContext | None = None) -> None:
        app = web.Application()
        app.router.add_get("/api/v1/status", self._status)
        app.router.add_put("/api/v1/destinations/queues/{name}", self._declare)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, LOOPBACK, self.port, reuse_address=True, ssl_context=encryption
        )
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def connections(self) -> int:
        """How many are open."""
        assert self._runner is not None and self._runner.server is not None
        return len(self._runner.server.connections)

    async def _status(self, request: web.Request) -> web.Response:
        self.asked.append(request.transport)
        self.tokens.append(request.headers.get("Authorization"))
        return web.json_response({"role": "master"})

    async def _declare(self, request: web.Request) -> web.Response:
        self.changed.append(request.transport)
        await asyncio.sleep(0.1)
        return web.json_response({})


def run(test: Callable[[Broker, AdminEndpoints, Address], Awaitable[None]]) -> None:
    async def main() -> None:
        broker, admin = Broker(), AdminEndpoints()
        await broker.start()
        try:
            await test(broker, admin, Address(LOOPBACK, broker.port, "token"))
        finally:
            await admin.close()
            await broker.stop()

    asyncio.run(main())


def test_a_broker_is_asked_over_one_connection() -> None:
    async def test(broker: Broker, admin: AdminEndpoints, address: Address) -> None:
        for _ in range(5):
            assert (await admin.status(address))["role"] == "master"
        assert len(broker.asked) == 5
        assert len(set(broker.asked)) == 1

    run(test)


def test_connections_for_many_changes_at_a_time_go_when_these_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Polls go on meanwhile, and do not keep them."""
    monkeypatch.setattr(admin_endpoint, "CHANGE_IDLE_SECONDS", 0.2)

    async def test(broker: Broker, admin: AdminEndpoints, address: Address) -> None:
        names = [f"q{number}" for number in range(8)]
        await asyncio.gather(*(admin.declare(address, "Queue", each, None, "") for each in names))
        assert len(set(broker.changed)) == 8
        end = asyncio.get_running_loop().time() + 10
        while broker.connections > 1 and asyncio.get_running_loop().time() < end:
            await admin.status(address)
            await asyncio.sleep(0.05)
        assert len(set(broker.asked)) == 1
        assert broker.connections == 1

    run(test)


def test_one_that_began_anew_is_asked_over_another_and_nobody_notices() -> None:
    async def test(broker: Broker, admin: AdminEndpoints, address: Address) -> None:
        await admin.status(address)
        await broker.stop()
        await broker.start()
        assert (await admin.status(address))["role"] == "master"
        assert len(set(broker.asked)) == 2

    run(test)


def encryption(pair: Pair, directory: Path) -> ssl.SSLContext:
    """Return what a broker shows that has this pair."""
    (directory / "tls.crt").write_text(pair.certificate)
    (directory / "tls.key").write_text(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    return context


def ask_secured(shown: ssl.SSLContext, authorities: str) -> tuple[str, list[str | None]]:
    """Return what came of a question to a broker: its role or why not, and the tokens it got."""
    came: list[str] = []
    seen: list[str | None] = []

    async def main() -> None:
        broker, admin = Broker(), AdminEndpoints()
        admin.trust(authorities)
        await broker.start(shown)
        try:
            address = Address(LOOPBACK, broker.port, "token", NAME)
            came.append((await admin.status(address))["role"])
        except BrokerSilentError as error:
            came.append(str(error))
        finally:
            seen.extend(broker.tokens)
            await admin.close()
            await broker.stop()

    asyncio.run(main())
    return came[0], seen


def test_a_broker_is_known_by_its_name_whatever_its_address(tmp_path: Path) -> None:
    authority = new_authority("own", NOW)
    shown = encryption(issued(authority, [NAME], NOW), tmp_path)
    assert ask_secured(shown, authority.certificate) == ("master", ["Bearer token"])


def test_a_connection_that_is_kept_takes_little(tmp_path: Path) -> None:
    authority = new_authority("own", NOW)
    shown = encryption(issued(authority, [NAME], NOW), tmp_path)
    count, taken = 20, 0

    async def main() -> None:
        nonlocal taken
        broker, admin = Broker(), AdminEndpoints()
        admin.trust(authority.certificate)
        await broker.start(shown)
        address = Address(LOOPBACK, broker.port, "token", NAME)
        await admin.status(address)
        tracemalloc.start()
        await asyncio.gather(*(admin.status(address) for _ in range(count)))
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert broker.connections == count
        await admin.close()
        await broker.stop()

    asyncio.run(main())
    # Of both ends, as the broker is in this process, too; what OpenSSL has is not counted.
    assert taken / count < 45_000


def test_before_certificates_are_of_a_new_authority_those_of_the_old_one_count(
    tmp_path: Path,
) -> None:
    """Both authorities have the same name, so that only their keys tell them apart."""
    old, new = new_authority("own", NOW), new_authority("own", NOW)
    for vouching in (old, new):
        shown = encryption(issued(vouching, [NAME], NOW), tmp_path)
        assert ask_secured(shown, new.certificate + old.certificate)[0] == "master"


@pytest.mark.parametrize(
    "made_up",
    ["another authority", "another name", "no longer valid", "itself"],
)
def test_whoever_answers_in_place_of_a_broker_is_told_no_token(
    made_up: str, tmp_path: Path
) -> None:
    own = new_authority("own", NOW)
    pair = {
        "another authority": lambda: issued(new_authority("own", NOW), [NAME], NOW),
        "another name": lambda: issued(own, ["other-replicas.shop.svc"], NOW),
        "no longer valid": lambda: issued(own, [NAME], NOW - timedelta(days=100)),
        "itself": lambda: new_authority(NAME, NOW),
    }[made_up]()
    came, tokens = ask_secured(encryption(pair, tmp_path), own.certificate)
    assert "CERTIFICATE_VERIFY_FAILED" in came
    assert tokens == []


def test_where_nobody_is_trusted_yet_nobody_is_told_a_token(tmp_path: Path) -> None:
    authority = new_authority("own", NOW)
    shown = encryption(issued(authority, [NAME], NOW), tmp_path)
    assert ask_secured(shown, "")[1] == []
