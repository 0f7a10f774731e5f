"""A connector: the brokers that it names or finds, and who keeps the bridges to them."""

import asyncio
from collections.abc import Collection

from lockkeeper.server.networks.keeper import Keeper
from lockkeeper.server.networks.multicast import Search
from lockkeeper_api.network_connectors import NetworkConnector
from lockkeeper_api.network_uris import Target, read_found_address, read_network_uri


class Dialled:
    """A connector, and who keeps its bridges; *changed* is set when others are to be dialled."""

    def __init__(self, connector: NetworkConnector, changed: asyncio.Event) -> None:
        self.connector = connector
        self.uri = read_network_uri(connector.uri)
        self.keepers: list[Keeper] = []
        group = self.uri.multicast
        self._search = None if group is None else Search(group, _address_of, changed.set)
        self._searching: asyncio.Task[None] | None = None

    def targets(self, own: Collection[str]) -> list[Target]:
        """Return which brokers are to be dialled; never ourselves, at our *own* addresses."""
        if self._search is None:
            return list(dict.fromkeys(self.uri.targets))
        found = sorted(self._search.found - set(own))
        return [Target((read_found_address(each),)) for each in found]

    def begin_search(self) -> None:
        """Look for brokers, if they are not named."""
        if self._search is not None and self._searching is None:
            retry = self.uri.back_off.initial_reconnect_delay / 1000
            searching = self._search.keep(retry)
            self._searching = asyncio.get_running_loop().create_task(searching)

    def stop_search(self) -> None:
        """Look for nobody any more."""
        if self._searching is not None:
            self._searching.cancel()


def _address_of(text: str) -> str:
    return str(read_found_address(text))
