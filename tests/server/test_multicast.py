"""Multicast sockets that cannot be had: said once, tried again, and nothing else is disturbed."""

import asyncio
import logging

import pytest

from lockkeeper.network.announcements import announcement
from lockkeeper.server.networks.multicast import Announcer, Search
from lockkeeper_api.multicast_uris import MulticastGroup

INTERVAL_MS = 100
GROUP = MulticastGroup(group="once", keep_alive_interval=INTERVAL_MS, join_network_interface="lo")
NOWHERE = MulticastGroup(
    port=1, keep_alive_interval=50, network_interface="none", join_network_interface="none"
)


def test_an_interface_that_is_not_there_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def look() -> frozenset[str]:
        search = Search(NOWHERE, str, lambda: None)
        searching = asyncio.create_task(search.keep(0.02))
        announcer = Announcer(NOWHERE, "tcp://127.0.0.1:1")
        announcer.begin()
        await asyncio.sleep(0.2)
        announcer.close()
        searching.cancel()
        return search.found

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(look()) == frozenset()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert all("there is no network interface none (there are lo" in each for each in told)


def test_whatever_comes_is_told_once_an_interval_and_not_what_has_passed_meanwhile() -> None:
    told: list[frozenset[str]] = []

    async def look() -> None:
        search = Search(GROUP, str, lambda: told.append(search.found))
        searching = asyncio.create_task(search.keep(0.02))

        def hear(uri: str, is_alive: bool) -> None:
            search.datagram_received(announcement(GROUP.group, uri, is_alive), None)

        begun = asyncio.get_running_loop().time()
        for _ in range(2):
            hear("tcp://there:1", is_alive=True)
            for number in range(200):
                hear(f"tcp://forged-{number}:1", is_alive=True)
                hear(f"tcp://forged-{number}:1", is_alive=False)
            hear("tcp://there:1", is_alive=False)
            hear("tcp://there:1", is_alive=True)
            await asyncio.sleep(1.5 * INTERVAL_MS / 1000)
        hear("tcp://there:1", is_alive=False)
        while search.found and asyncio.get_running_loop().time() < begun + 10:
            await asyncio.sleep(INTERVAL_MS / 1000)
        searching.cancel()

    asyncio.run(look())
    assert told == [frozenset({"tcp://there:1"}), frozenset()]
