"""Chains of three brokers and triangles: how far messages go, and that none goes in circles."""

import time

import network_brokers
import pytest
from network_brokers import Network, bodies, until
from network_scenarios import Way

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

THREES = (
    ("ours", "ours", "ours"),
    ("ours", "activemq", "ours"),
    ("activemq", "ours", "activemq"),
    ("activemq", "activemq", "activemq"),
    pytest.param(("ours", "activemq6", "ours"), marks=pytest.mark.thorough),
    pytest.param(("activemq6", "ours", "activemq6"), marks=pytest.mark.thorough),
)
NAMES = ("one", "two", "three")


@pytest.fixture(scope="module", params=THREES, ids="-".join)
def kinds(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    """Return the kinds of three brokers."""
    found: tuple[str, str, str] = request.param
    if reason := network_brokers.missing(*found):
        pytest.skip(reason)
    return found


def three(factory: pytest.TempPathFactory, kinds: tuple[str, str, str]) -> Network:
    """Return three brokers that do not run yet."""
    network = Network(factory.mktemp("network"))
    for kind, name in zip(kinds, NAMES, strict=True):
        network.add(kind, name)
    return network


def test_a_chain_carries_as_far_as_its_ttl(
    kinds: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with three(tmp_path_factory, kinds) as network:
        network.bridge("one", "two", networkTTL=2)
        network.bridge("two", "three", networkTTL=2)
        network.start()
        way = Way(network, "one", "three")
        name = f"queue://{way.name()}"
        taker = way.taker(name)
        way.sender(name).send_many([str(number) for number in range(100)])
        first = taker.receive(20)
        assert first is not None
        assert len(first.fields.broker_path or ()) == 2
        assert bodies(taker, 99, 0.3) == [str(number) for number in range(1, 100)]
        topic = f"topic://{way.name()}"
        listeners = [network.session(each).consumer(topic) for each in NAMES]
        network.await_demand("one", topic)
        network.await_demand("two", topic)
        way.sender(topic).send("news")
        assert [bodies(each, 1, 0.5) for each in listeners] == [["news"]] * 3


def test_a_chain_ends_at_its_ttl(
    kinds: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with three(tmp_path_factory, kinds) as network:
        network.bridge("one", "two")
        network.bridge("two", "three")
        network.start()
        way = Way(network, "one", "three")
        name = f"queue://{way.name()}"
        network.session("three").consumer(name)
        network.await_demand("two", name)
        way.sender(name).send("x")
        time.sleep(1)
        assert network.demand("one", name) == []
        assert len(list(network.session("one").browse(name))) == 1


def test_a_triangle_delivers_once(
    kinds: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with three(tmp_path_factory, kinds) as network:
        ttl = {"networkTTL": 3, "decreaseNetworkConsumerPriority": True, "duplex": True}
        network.bridge("one", "two", **ttl)
        network.bridge("two", "three", **ttl)
        network.bridge("one", "three", **ttl)
        network.start()
        way = Way(network, "one", "three")
        topic, name = f"topic://{way.name()}", f"queue://{way.name()}"
        listeners = [network.session(each).consumer(topic) for each in NAMES]
        taker = way.taker(name)
        for each in NAMES:
            network.await_demand(each, topic)
        time.sleep(1)
        way.sender(topic).send_many([str(number) for number in range(20)])
        expected = [str(number) for number in range(20)]
        assert [bodies(each, 20, 1) for each in listeners] == [expected] * 3
        way.sender(name).send_many(expected)
        found = bodies(taker, 20, 1)
        assert sorted(found, key=int) == expected


def test_a_triangle_goes_on_with_one_side_cut(
    kinds: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if set(kinds) != {"ours"}:
        pytest.skip("ActiveMQ looks no more after consumers that another bridge served")
    with three(tmp_path_factory, kinds) as network:
        ttl = {"networkTTL": 3, "duplex": True}
        network.bridge("one", "two", **ttl)
        network.bridge("two", "three", **ttl)
        relay = network.bridge("one", "three", **ttl)
        network.start()
        way = Way(network, "one", "three")
        topic = f"topic://{way.name()}"
        taker = way.taker(topic)
        relay.is_cut = True
        relay.cut()
        until(lambda: _broker_paths(network, topic) == [2], "the longer way is taken")
        way.sender(topic).send("round about")
        assert bodies(taker, 1, 1) == ["round about"]


def _broker_paths(network: Network, topic: str) -> list[int]:
    return [len(each.broker_path or ()) for each in network.demand("one", topic)]
