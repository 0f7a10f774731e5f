"""Multicast sockets that cannot be had: said once, tried again, and nothing else is disturbed."""

import asyncio
import logging

import pytest

from lockkeeper.server.networks.multicast import Announcer, Search
from lockkeeper_api.multicast_uris import MulticastGroup

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
