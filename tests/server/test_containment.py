"""What nobody expected harms one client, and is counted and logged."""

import asyncio
import logging
from typing import Any

import pytest
from running_engine import Running, greeted, is_cut

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.protocols.openwire import session
from lockkeeper.server.metrics import exposition, families
from lockkeeper.server.views import master_view

SECONDS_MAX = 20


class InjectedError(Exception):
    """What no code of ours raises."""


async def answered(running: Running, name: str) -> bool:
    """Tell whether a client that introduces itself is answered."""
    async with greeted(running, name) as (reader, _):
        deadline = asyncio.get_running_loop().time() + SECONDS_MAX
        while name not in running.broker.connections:
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.01)
        return len(await reader.read(100)) > 0


@pytest.mark.replaces
@pytest.mark.parametrize("place", ["receive", "write", "lost", "tick", "beat"])
def test_a_defect_ends_one_connection_at_most(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    victims: list[str] = []
    running = Running()

    def failing(real: Any) -> Any:
        def call(self: Any, *arguments: Any) -> Any:
            connection = getattr(self, "connection", None)
            name = connection.identifier if connection else "evil"
            if name == "evil" and (place in ("tick", "beat") or "evil" in known()):
                victims.append(place)
                raise InjectedError("a defect")
            return real(self, *arguments)

        return call

    def known() -> dict[str, Connection]:
        return running.broker.connections

    where: dict[str, tuple[Any, str]] = {
        "receive": (session.OpenWireSession, "receive_data"),
        "write": (session.OpenWireSession, "data_to_send"),
        "lost": (session.OpenWireSession, "connection_lost"),
        "tick": (Broker, "tick"),
        "beat": (session.OpenWireSession, "keep_alive"),
    }
    owner, method = where[place]

    async def scene() -> None:
        async with running:
            assert await answered(running, "before")
            async with greeted(running, "evil") as (reader, writer):
                while "evil" not in running.broker.connections:
                    await asyncio.sleep(0.01)
                with monkeypatch.context() as defect:
                    defect.setattr(owner, method, failing(getattr(owner, method)))
                    for peer in running.engine.peers:
                        peer.sent_at -= 20_000
                    if place in ("receive", "write"):
                        # Nothing that anybody understands, so there is an answer to write.
                        writer.write(b"\0\0\0\1\x0a")
                    if place == "lost":
                        writer.close()
                    async with asyncio.timeout(SECONDS_MAX):
                        while not victims:
                            running.engine.wake()
                            await asyncio.sleep(0.01)
                if place in ("receive", "write"):
                    assert await is_cut(reader, SECONDS_MAX)
            assert await answered(running, "after")
            counts = running.broker.containment.counts
            assert sum(counts.values()) == len(victims)
            status = {
                "role": "master", "broker": "b", "replica": "r", "version": "1", "lease": None,
                "connectionsBeforeLogin": 0, "connectionsTurnedAway": {}, "takesOver": None,
                "since": None, "epoch": 1,
                **master_view(running.broker, running.engine.store),
            }  # fmt: skip
            text = exposition(families(status, []))
            kind = next(each for each in counts if counts[each])
            assert f'lockkeeper_contained_errors_total{{kind="{kind}"}} {len(victims)}' in text

    with caplog.at_level(logging.ERROR):
        asyncio.run(scene())
    assert victims
    logged = [record for record in caplog.records if "contained" in record.getMessage()]
    assert len(logged) == 1
    assert logged[0].exc_info is not None
