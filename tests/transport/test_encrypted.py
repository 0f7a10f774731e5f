"""Reading over TLS: no room is made for what comes, and nobody sees what others were sent."""

import asyncio
import ssl
from typing import Any

import pytest
from raw_peer import Serve, Wire

LINES = 50


@pytest.fixture(params=["ssl"])
def encryption(request: pytest.FixtureRequest, contexts: Any) -> Any:
    """Return the contexts of both sides: every connection is encrypted."""
    return contexts


def test_nothing_is_decrypted_into_memory_of_its_own(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: list[int] = []
    read = ssl.SSLObject.read

    def counted(self: ssl.SSLObject, size: int = 1024, buffer: Any = None) -> Any:
        found = read(self, size) if buffer is None else read(self, size, buffer)
        if self.server_side and buffer is None:
            own.append(size)
        return found

    async def test(wire: Wire) -> None:
        client, _ = await wire.login("anna")
        # What comes with the end of the handshake, and after the end, is not worth counting.
        own.clear()
        for number in range(LINES):
            client.send(f"{number}\n".encode())
            assert await client.lines(1) == f"{number}\n".encode()
        assert own == []

    monkeypatch.setattr(ssl.SSLObject, "read", counted)
    serve(test)


def test_connections_that_share_a_room_get_their_own_bytes(serve: Serve) -> None:
    sizes = (1, 100, 16_383, 16_384, 16_385, 70_000, 262_143, 262_144, 300_000, 900_000)

    async def test(wire: Wire) -> None:
        clients = [(await wire.login(name))[0] for name in ("anna", "bert", "carl")]
        for size in sizes:
            sent = [bytes([65 + number]) * size + b"\n" for number in range(len(clients))]
            for client, data in zip(clients, sent, strict=True):
                client.send(data)
            heard = await asyncio.gather(*(client.lines(1) for client in clients))
            assert heard == sent

    serve(test)
