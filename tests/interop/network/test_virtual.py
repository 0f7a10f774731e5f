"""What is sent to a virtual destination follows the consumers behind it, over a bridge."""

from collections.abc import Iterator

import network_brokers
import pytest
from network_brokers import COMPOSITES, PAIRS, Network, bodies, until
from network_scenarios import Way

pytestmark = [
    pytest.mark.interop, pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(900),
]  # fmt: skip

TELLS = ("useVirtualDestSubs",)
ON_CREATION = (*TELLS, "useVirtualDestSubsOnCreation")
QUEUES = "queue://Consumer.*.VirtualTopic.>"
"""Queues of virtual topics: over a bridge, too, messages would come twice."""


@pytest.fixture(scope="module", params=PAIRS, ids="-dials-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return the kinds of two brokers."""
    near, far = request.param
    if reason := network_brokers.missing(near, far):
        pytest.skip(reason)
    return near, far


@pytest.fixture(scope="module")
def way(pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a bridge to a broker that has virtual destinations, and tells of their consumers."""
    with Network(tmp_path_factory.mktemp("network")) as network:
        network.add(pair[0], "near")
        network.add(pair[1], "far", virtual=TELLS)
        network.bridge("near", "far", useVirtualDestSubs=True, excludedDestinations=[QUEUES])
        yield Way(network.start(), "near", "far")


@pytest.mark.parametrize(("source", "target"), COMPOSITES)
def test_what_is_sent_to_a_composite_goes_to_consumers_behind_it(
    way: Way, source: str, target: str
) -> None:
    for body in ("first", "again"):
        taker = way.taker(target, demand=source)
        way.sender(source).send(body)
        assert bodies(taker, 1, 0.5) == [body]
        taker.close()
        way.network.await_no_demand("near", source)


def test_a_virtual_topic_goes_to_consumers_of_its_queues_once(way: Way) -> None:
    name = f"VirtualTopic.{way.name()}"
    takers = [
        way.taker(f"queue://Consumer.{group}.{name}", demand=f"topic://{name}") for group in "AB"
    ]
    way.sender(f"topic://{name}").send_many(["x", "y"])
    assert [bodies(taker, 2, 0.5) for taker in takers] == [["x", "y"]] * 2


def test_consumers_that_were_there_before_the_bridge_count(way: Way) -> None:
    source, target = COMPOSITES[0]
    taker = way.taker(target, demand=source)
    relay = way.network.relays["near", "far"]
    relay.is_cut = True
    relay.cut()
    way.network.await_no_demand("near", source)
    way.sender(source).send("waits")
    relay.is_cut = False
    assert bodies(taker, 1, 0.5) == ["waits"]
    taker.close()
    way.network.await_no_demand("near", source)


def test_a_queue_behind_counts_as_a_consumer_on_creation(
    pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    source, target = COMPOSITES[1]
    with Network(tmp_path_factory.mktemp("network")) as network:
        network.add(pair[0], "near")
        network.add(pair[1], "far", virtual=ON_CREATION)
        network.bridge("near", "far", duplex=True, useVirtualDestSubs=True)
        network.start()
        way = Way(network, "near", "far")
        network.session("far").producer(target).send("makes it")
        network.await_demand("near", source)
        way.sender(source).send("x")
        far = network.session("far")
        until(lambda: len(list(far.browse(target))) == 2, "it has come")
        assert bodies(far.consumer(target), 2, 0.3) == ["makes it", "x"]
