"""Clients are told of the brokers of the network, by ours and by ActiveMQ."""

from typing import Any

import network_brokers
import pytest
from network_brokers import PAIRS, Member, Network, until

import lockkeeper.client as client

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

TELLS: dict[str, Any] = {"updateClusterClients": True, "updateClusterClientsOnRemove": True}


@pytest.mark.parametrize("pair", PAIRS, ids="-dials-".join)
def test_both_ends_tell_their_clients_of_each_other(
    pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if reason := network_brokers.missing(*pair):
        pytest.skip(reason)
    with Network(tmp_path_factory.mktemp("network")) as network:
        near = network.add(pair[0], "near", tells=TELLS)
        far = network.add(pair[1], "far", tells=TELLS)
        network.bridge("near", "far", duplex=True)
        network.start()
        for member, other in ((near, far), (far, near)):
            with client.connect(f"failover:({member.url})") as connection:
                await_news(connection, other, True)
        with client.connect(f"failover:({near.url})") as connection:
            await_news(connection, far, True)
            far.kill()
            await_news(connection, far, False)


def await_news(connection: client.Connection, member: Member, is_there: bool) -> None:
    """Wait until a client has been told that a broker is there, or is not."""

    def is_told() -> bool:
        addresses = connection._core.other_addresses
        return is_there == any(f":{member.port}" in address for address in addresses)

    until(is_told, f"a client is told of {member.name}")
