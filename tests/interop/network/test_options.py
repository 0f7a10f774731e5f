"""Options of network connectors mean the same to ours and to ActiveMQ."""

import time
from collections.abc import Iterator
from typing import Any

import network_brokers
import pytest
from network_brokers import Network, bodies, shared, until
from network_scenarios import Way

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

OURS, FROM_OURS, TO_OURS = ("ours", "ours"), ("ours", "activemq"), ("activemq", "ours")
PAIRS = (
    OURS,
    FROM_OURS,
    TO_OURS,
    ("activemq", "activemq"),
    ("ours", "activemq6"),
    ("activemq6", "ours"),
)


def bridges(often: list[tuple[str, str]], **options: Any) -> pytest.MarkDecorator:
    """Parametrize a test by who dials whom with options; `make test` tries those of *often*.

    The broker that dials decides most by itself; ActiveMQ there shows what ActiveMQ does.
    """
    marks = [() if pair in often else (pytest.mark.thorough,) for pair in PAIRS]
    cases = [
        pytest.param((pair, options), id="-dials-".join(pair), marks=each)
        for pair, each in zip(PAIRS, marks, strict=True)
    ]
    return pytest.mark.parametrize("way", cases, indirect=True)


CHOOSY = bridges(
    [OURS],
    excludedDestinations=["queue://out.>", "topic://out.>"],
    staticallyIncludedDestinations=["queue://always"],
    decreaseNetworkConsumerPriority=True,
)
"""Excludes, always includes, and prefers consumers nearby."""
SEPARATE = bridges(
    [OURS, FROM_OURS],
    conduitSubscriptions=False,
    bridgeTempDestinations=False,
    prefetchSize=1,
    alwaysSyncSend=False,
)
"""Has a consumer for each consumer, and none for temporary ones."""
STATIC = bridges(
    [OURS], staticBridge=True, staticallyIncludedDestinations=["queue://always", "topic://news"]
)
"""Listens to nobody."""
LASTING = bridges(
    [OURS], dynamicallyIncludedDestinations=["queue://in.>", "topic://in.>?forceDurable=true"]
)
"""Has durable subscriptions for plain consumers."""
AGREED = bridges(
    [OURS, FROM_OURS, TO_OURS],
    dynamicallyIncludedDestinations=["queue://in.>", "topic://in.>"],
    syncDurableSubs=True,
    useCompression=True,
)
"""Compresses; its ends tell each other of durable subscriptions."""


@pytest.fixture(scope="module")
def way(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a bridge with options between two brokers, of which the first one dials."""
    (near, far), options = request.param
    if reason := network_brokers.missing(near, far):
        pytest.skip(reason)
    with Network(tmp_path_factory.mktemp("network")) as network:
        network.add(near, "near")
        network.add(far, "far")
        network.bridge("near", "far", **options)
        yield Way(network.start(), "near", "far")


def stays(way: Way, name: str, count: int) -> None:
    """Assert that *count* messages of a queue stay at the source."""
    time.sleep(1)
    assert len(list(way.network.session(way.source).browse(name))) == count


@CHOOSY
def test_what_is_excluded_stays(way: Way) -> None:
    name = f"queue://out.{way.name()}"
    taker = way.network.session("far").consumer(name)
    way.sender(name).send("x")
    stays(way, name, 1)
    assert taker.receive(0.2) is None


@CHOOSY
def test_an_excluded_topic_stays(way: Way) -> None:
    excluded, other = f"topic://out.{way.name()}", f"topic://{way.name()}"
    taker = way.network.session("far").consumer(excluded)
    beside = way.taker(other)
    way.sender(excluded).send("x")
    way.sender(other).send("y")
    assert bodies(beside, 1, 0.3) == ["y"]
    assert taker.receive(0.3) is None


@CHOOSY
def test_what_is_not_excluded_goes(way: Way) -> None:
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    way.sender(name).send("x")
    assert bodies(taker, 1, 0.3) == ["x"]


@CHOOSY
def test_what_is_always_included_goes_without_a_consumer(way: Way) -> None:
    way.sender("queue://always").send_many(["a", "b"])
    far = way.network.session("far")
    until(lambda: len(list(far.browse("queue://always"))) == 2, "both have come")
    assert bodies(far.consumer("queue://always"), 2, 0.3) == ["a", "b"]


@CHOOSY
def test_consumers_nearby_come_first(way: Way) -> None:
    name = f"queue://{way.name()}"
    far = way.taker(name)
    near = way.network.session("near").consumer(name)
    way.sender(name).send_many([str(number) for number in range(50)])
    assert bodies(near, 50, 0.3) == [str(number) for number in range(50)]
    assert far.receive(0.3) is None
    (info,) = way.network.demand("near", name)
    assert info.priority == -5


@SEPARATE
def test_selectors_choose_what_goes_without_conduits(way: Way) -> None:
    name = f"queue://{way.name()}"
    red = way.taker(name, selector="color = 'red'")
    sender = way.sender(name)
    for color in ("red", "blue", "red"):
        sender.send(color, {"color": color})
    assert bodies(red, 2, 0.3) == ["red", "red"]
    stays(way, name, 1)


@SEPARATE
def test_without_conduits_each_consumer_counts(way: Way) -> None:
    name = f"queue://{way.name()}"
    takers = [way.network.session("far").consumer(name) for _ in range(2)]
    way.network.await_demand("near", name, 2)
    way.sender(name).send_many([str(number) for number in range(20)])
    one, other = shared(takers, 20)
    assert sorted(one + other, key=int) == [str(number) for number in range(20)]
    takers[0].close()
    until(lambda: len(way.network.demand("near", name)) == 1, "one has gone")


@SEPARATE
def test_a_window_of_one_keeps_the_order(way: Way) -> None:
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    way.sender(name).send_many([str(number) for number in range(100)])
    assert bodies(taker, 100, 0.3) == [str(number) for number in range(100)]


@SEPARATE
def test_not_persistent_ones_need_no_confirmation(way: Way) -> None:
    name = f"queue://{way.name()}"
    taker = way.taker(name)
    sender = way.sender(name, persistent=False)
    for number in range(100):
        sender.send(str(number))
    assert bodies(taker, 100, 0.3) == [str(number) for number in range(100)]


@SEPARATE
def test_temporary_destinations_can_be_left_out(way: Way) -> None:
    connection = way.network.connected("far")
    place = connection.temporary_queue()
    connection.session().consumer(place)
    time.sleep(1)
    assert way.network.demand("near", str(place)) == []


@STATIC
def test_a_static_bridge_forwards_its_list(way: Way) -> None:
    taker = way.network.session("far").consumer("queue://always")
    way.sender("queue://always").send_many(["a", "b"])
    assert bodies(taker, 2, 0.3) == ["a", "b"]
    news = way.network.session("far").consumer("topic://news")
    time.sleep(0.5)
    way.sender("topic://news").send("n")
    assert bodies(news, 1, 0.3) == ["n"]


@STATIC
def test_a_static_bridge_forwards_nothing_else(way: Way) -> None:
    name = f"queue://{way.name()}"
    way.network.session("far").consumer(name)
    way.sender(name).send("x")
    stays(way, name, 1)


@LASTING
def test_only_what_is_included_goes(way: Way) -> None:
    included, other = f"queue://in.{way.name()}", f"queue://{way.name()}"
    session = way.network.session("far")
    session.consumer(other)
    taker = session.consumer(included)
    way.network.await_demand("near", included)
    sender = way.network.session("near").producer()
    for name in (included, other):
        sender.send(name, destination=name)
    assert bodies(taker, 1, 0.3) == [included]
    stays(way, other, 1)


@LASTING
def test_a_forced_durable_topic_waits_for_the_bridge(way: Way) -> None:
    name = f"topic://in.{way.name()}"
    taker = way.taker(name)
    (info,) = way.network.demand("near", name)
    assert (info.subscription_name or "").startswith("NC-DS_near_in.")
    relay = way.network.relays["near", "far"]
    relay.is_cut = True
    relay.cut()
    way.network.await_no_demand("near", name)
    way.sender(name).send_many(["a", "b"])
    relay.is_cut = False
    assert bodies(taker, 2, 0.5) == ["a", "b"]


@AGREED
def test_what_is_unsubscribed_while_the_bridge_is_down_is_kept_no_more(way: Way) -> None:
    name, other = (f"topic://in.{way.name()}" for _ in range(2))
    connection = way.network.connected("far", f"{way.name()}-client")
    session = connection.session()
    for each in (name, other):
        session.consumer(each, subscription_name=each).close()
        way.network.await_demand("near", each)
    relay = way.network.relays["near", "far"]
    relay.is_cut = True
    relay.cut()
    way.network.await_no_demand("near", other)
    session.unsubscribe(name)
    relay.is_cut = False
    way.network.await_demand("near", other)
    way.network.await_no_demand("near", name)


@AGREED
def test_bodies_are_compressed_on_their_way(way: Way) -> None:
    name = f"queue://in.{way.name()}"
    taker = way.taker(name)
    way.sender(name).send("body " * 1000)
    message = taker.receive(20)
    assert message is not None
    assert message.body == "body " * 1000
    assert message.fields.compressed
