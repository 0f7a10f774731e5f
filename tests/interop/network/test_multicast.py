"""Brokers that nobody names find each other in a multicast group, on loopback."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import network_brokers
import pytest
from network_brokers import PAIRS, Member, Network, bodies, until
from ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

LOOPBACK = "networkInterface=lo&joinNetworkInterface=lo"


@pytest.fixture
def group() -> str:
    """Return the URI of a group that nobody else is in."""
    port = free_port()
    return f"multicast://239.255.2.3:{port}?group=tests&{LOOPBACK}"


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with Network(tmp_path / "network") as made:
        yield made


def find(member: Member, group: str) -> None:
    """Have a broker dial whoever is in the group."""
    uri = f"{group}&initialReconnectDelay=200"
    member.connectors.append({"name": "found", "uri": uri})


def dials(member: Member, urls: list[str]) -> bool:
    """Tell whether the bridges of ours that are connected lead to these brokers."""
    found = (
        each["address"]
        for each in member.bridges()
        if each["initiator"] and each["state"] == "connected"
    )
    return sorted(found) == urls


@pytest.mark.parametrize("kinds", PAIRS, ids=lambda kinds: "-finds-".join(kinds))
def test_a_broker_is_found_and_found_again(
    network: Network, group: str, kinds: tuple[str, str]
) -> None:
    if reason := network_brokers.missing(*kinds):
        pytest.skip(reason)
    find(network.add(kinds[0], "near"), group)
    far = network.add(kinds[1], "far", tells={"discoveryUri": group})
    network.start()
    sender = network.session("near").producer("FOUND")
    for number in range(2):
        taker = network.session("far").consumer("FOUND")
        network.await_demand("near", "queue://FOUND")
        sender.send(str(number))
        assert bodies(taker, 1, 0.1) == [str(number)]
        far.stop()
        network.await_no_demand("near", "queue://FOUND")
        far.start()


def test_each_dials_all_others_and_never_itself(network: Network, group: str) -> None:
    for name in ("one", "two", "three"):
        find(network.add("ours", name, tells={"discoveryUri": group}), group)
    network.start()
    urls = {member.url for member in network.members.values()}
    for member in network.members.values():
        others = sorted(urls - {member.url})
        until(partial(dials, member, others), f"{member.name} dials the others")
    network["three"].kill()
    # It could not tell: its silence does.
    two = [network["two"].url]
    until(partial(dials, network["one"], two), "nobody dials who is gone")
    until(lambda: len(network["one"].bridges()) == 2, "one bridge each way is left")
