"""Messages whose consumers have left are sent back, whoever is at the ends of the bridge."""

from collections.abc import Iterator

import network_brokers
import pytest
from network_brokers import PAIRS, Network, bodies, until
from network_scenarios import Way

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

TEXTS = [str(number) for number in range(50)]


@pytest.fixture(scope="module", params=PAIRS, ids="-dials-".join)
def way(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a duplex bridge of two brokers that send back."""
    near, far = request.param
    if reason := network_brokers.missing(near, far):
        pytest.skip(reason)
    with Network(tmp_path_factory.mktemp("network")) as network:
        network.add(near, "near", replays=True)
        network.add(far, "far", replays=True)
        network.bridge("near", "far", duplex=True)
        yield Way(network.start(), "near", "far")


def stranded(way: Way, count: int) -> str:
    """Return a queue of which *count* messages have come to the target, which has no consumer."""
    name = f"queue://{way.name()}"
    session = way.network.session(way.target)
    taker = session.consumer(name)
    way.network.await_demand(way.source, name)
    way.sender(name).send_many(TEXTS[:count])
    await_empty(way, way.source, name)
    taker.close()
    way.network.await_no_demand(way.source, name)
    until(lambda: depth(way, way.target, name) == count, "all wait there")
    return name


def await_empty(way: Way, broker: str, name: str) -> None:
    until(lambda: depth(way, broker, name) == 0, f"{broker} has none left")


def depth(way: Way, broker: str, name: str) -> int:
    return len(list(way.network.session(broker).browse(name)))


def test_they_go_back_to_a_consumer(way: Way) -> None:
    name = stranded(way, 50)
    taker = way.network.session(way.source).consumer(name)
    assert sorted(bodies(taker, 50), key=int) == TEXTS
    await_empty(way, way.target, name)


def test_they_go_to_and_fro_as_often_as_consumers_do(way: Way) -> None:
    name = stranded(way, 10)
    for place, other in ((way.source, way.target), (way.target, way.source)) * 2:
        taker = way.network.session(place).consumer(name)
        await_empty(way, other, name)
        taker.close()
        way.network.await_no_demand(other, name)
    taker = way.network.session(way.source).consumer(name)
    assert sorted(bodies(taker, 10), key=int) == TEXTS[:10]


def test_a_consumer_keeps_them_though_it_wants_others(way: Way) -> None:
    name = stranded(way, 1)
    picky = way.network.session(way.target).consumer(name, selector="color = 'red'")
    way.network.await_demand(way.source, name)
    taker = way.network.session(way.source).consumer(name)
    assert taker.receive(1) is None
    picky.close()
    assert bodies(taker, 1, 0.3) == TEXTS[:1]
