"""Every test of a connection runs on both event loops, with and without TLS."""

import asyncio
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import uvloop

for shared in ("server", "protocols", "interop"):
    sys.path.insert(0, str(Path(__file__).parents[1] / shared))
sys.path.insert(0, str(Path(__file__).parent))

import certificates  # noqa: E402
from raw_peer import Serve, Test, Wire  # noqa: E402

from lockkeeper.transport.tls import server_context  # noqa: E402

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
SECONDS_MAX = 60


@pytest.fixture(scope="session")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return what encrypts the server's side, and a client's."""
    if reason := certificates.missing():
        pytest.skip(reason)
    authority = certificates.Authority(tmp_path_factory.mktemp("authority"))
    certificate, key = authority.issue("broker")
    server = server_context(certificate, key, authority.certificate, "Ignored")
    return server, ssl.create_default_context(cafile=authority.certificate)


@pytest.fixture(params=["tcp", "ssl"])
def encryption(request: pytest.FixtureRequest) -> tuple[ssl.SSLContext, ssl.SSLContext] | None:
    """Return the contexts of both sides; None for a connection that is not encrypted."""
    if request.param == "tcp":
        return None
    found: tuple[ssl.SSLContext, ssl.SSLContext] = request.getfixturevalue("contexts")
    return found


@pytest.fixture(params=LOOPS)
def serve(
    request: pytest.FixtureRequest, encryption: tuple[ssl.SSLContext, ssl.SSLContext] | None
) -> Serve:
    """Return what runs a test against an engine that serves a port of the loopback."""

    def run(test: Test, **options: Any) -> None:
        async def served() -> None:
            async with asyncio.timeout(SECONDS_MAX), Wire(encryption, **options) as wire:
                await test(wire)

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(served())

    return run
