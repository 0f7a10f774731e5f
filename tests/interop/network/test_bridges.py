"""The same holds across a bridge whoever is at its ends: ours, ActiveMQ, or both.

ActiveMQ on both sides shows that a scenario asks for what ActiveMQ does.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import network_brokers
import pytest
from configured_scenarios import NETWORK
from network_scenarios import BOTH_WAYS, SCENARIOS, Way

if TYPE_CHECKING:
    from java_scenarios import JavaScenarios

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

PAIRS = (
    ("ours", "ours"),
    ("ours", "activemq"),
    ("activemq", "ours"),
    ("activemq", "activemq"),
)


NEXT_PAIRS = (("ours", "activemq6"), ("activemq6", "ours"))


def setups(*ways: bool) -> list[Any]:
    """Return who dials whom, and whether messages go both ways then."""
    usual = [(*pair, duplex) for pair in PAIRS for duplex in ways]
    others = [(*pair, duplex) for pair in NEXT_PAIRS for duplex in ways]
    return [*usual, *(pytest.param(each, marks=pytest.mark.thorough) for each in others)]


SETUPS, DUPLEX = setups(False, True), setups(True)


def named(value: object) -> str:
    """Return what a setup or a scenario is called in the names of tests."""
    if isinstance(value, tuple):
        near, far, duplex = value
        return f"{near}-dials-{far}{'-duplex' if duplex else ''}"
    return str(getattr(value, "__name__", value))


@pytest.fixture(scope="module")
def network(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[network_brokers.Network]:
    """Return two brokers, `near` and `far`, of which the first one dials."""
    near, far, duplex = request.param
    if reason := network_brokers.missing(near, far):
        pytest.skip(reason)
    with network_brokers.Network(tmp_path_factory.mktemp("network")) as made:
        made.add(near, "near")
        made.add(far, "far")
        made.bridge("near", "far", duplex=duplex)
        yield made.start()


@pytest.mark.parametrize("network", SETUPS, indirect=True, ids=named)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_bridge(network: network_brokers.Network, scenario: Callable[[Way], None]) -> None:
    scenario(Way(network, "near", "far"))


@pytest.mark.parametrize("network", DUPLEX, indirect=True, ids=named)
@pytest.mark.parametrize("scenario", NETWORK)
def test_java_clients(
    network: network_brokers.Network, scenario: str, java_scenarios: "JavaScenarios"
) -> None:
    result = java_scenarios.run(scenario, f"{network['near'].url}#{network['far'].url}")
    assert result["ok"], result["error"]


@pytest.mark.parametrize("network", DUPLEX, indirect=True, ids=named)
@pytest.mark.parametrize("scenario", (*SCENARIOS, *BOTH_WAYS), ids=named)
def test_the_other_way(network: network_brokers.Network, scenario: Callable[[Way], None]) -> None:
    scenario(Way(network, "far", "near"))
