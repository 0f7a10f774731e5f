"""Options of network connectors mean the same to ours and to ActiveMQ."""

import time
from collections.abc import Iterator
from typing import Any

import network_brokers
import pytest
from network_brokers import Network, bodies, until
from network_scenarios import Way

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

PAIRS = (
    ("ours", "ours"),
    ("ours", "activemq"),
    ("activemq", "ours"),
    ("activemq", "activemq"),
)
CHOOSY: dict[str, Any] = {
    "excludedDestinations": ["queue://out.>", "topic://out.>"],
    "staticallyIncludedDestinations": ["queue://always"],
    "decreaseNetworkConsumerPriority": True,
}
SEPARATE: dict[str, Any] = {
    "conduitSubscriptions": False,
    "bridgeTempDestinations": False,
    "prefetchSize": 1,
    "alwaysSyncSend": False,
}
STATIC: dict[str, Any] = {
    "staticBridge": True,
    "staticallyIncludedDestinations": ["queue://always", "topic://news"],
}
AGREED: dict[str, Any] = {
    "dynamicallyIncludedDestinations": ["queue://in.>", "topic://in.>"],
    "syncDurableSubs": True,
    "useCompression": True,
}
LASTING: dict[str, Any] = {
    "dynamicallyIncludedDestinations": ["queue://in.>", "topic://in.>?forceDurable=true"],
}


@pytest.fixture(scope="module", params=PAIRS, ids="-dials-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return the kinds of two brokers, of which the first one dials."""
    near, far = request.param
    if reason := network_brokers.missing(near, far):
        pytest.skip(reason)
    return near, far


def made(
    pair: tuple[str, str], factory: pytest.TempPathFactory, options: dict[str, Any]
) -> Iterator[Way]:
    """Yield a bridge with options."""
    with Network(factory.mktemp("network")) as network:
        network.add(pair[0], "near")
        network.add(pair[1], "far")
        network.bridge("near", "far", **options)
        yield Way(network.start(), "near", "far")


@pytest.fixture(scope="module")
def choosy(pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a bridge that excludes, always includes, and prefers consumers nearby."""
    yield from made(pair, tmp_path_factory, CHOOSY)


@pytest.fixture(scope="module")
def separate(pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a bridge with a consumer for each consumer, and none for temporary ones."""
    yield from made(pair, tmp_path_factory, SEPARATE)


@pytest.fixture(scope="module")
def static(pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a bridge that listens to nobody."""
    yield from made(pair, tmp_path_factory, STATIC)


@pytest.fixture(scope="module")
def lasting(pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a bridge with durable subscriptions for plain consumers."""
    yield from made(pair, tmp_path_factory, LASTING)


@pytest.fixture(scope="module")
def agreed(pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a bridge that compresses, whose ends tell each other of durable subscriptions."""
    yield from made(pair, tmp_path_factory, AGREED)


def stays(way: Way, name: str, count: int) -> None:
    """Assert that *count* messages of a queue stay at the source."""
    time.sleep(1)
    assert len(list(way.network.session(way.source).browse(name))) == count


def test_what_is_excluded_stays(choosy: Way) -> None:
    name = f"queue://out.{choosy.name()}"
    taker = choosy.network.session("far").consumer(name)
    choosy.sender(name).send("x")
    stays(choosy, name, 1)
    assert taker.receive(0.2) is None


def test_an_excluded_topic_stays(choosy: Way) -> None:
    excluded, other = f"topic://out.{choosy.name()}", f"topic://{choosy.name()}"
    taker = choosy.network.session("far").consumer(excluded)
    beside = choosy.taker(other)
    choosy.sender(excluded).send("x")
    choosy.sender(other).send("y")
    assert bodies(beside, 1, 0.3) == ["y"]
    assert taker.receive(0.3) is None


def test_what_is_not_excluded_goes(choosy: Way) -> None:
    name = f"queue://{choosy.name()}"
    taker = choosy.taker(name)
    choosy.sender(name).send("x")
    assert bodies(taker, 1, 0.3) == ["x"]


def test_what_is_always_included_goes_without_a_consumer(choosy: Way) -> None:
    choosy.sender("queue://always").send_many(["a", "b"])
    far = choosy.network.session("far")
    until(lambda: len(list(far.browse("queue://always"))) == 2, "both have come")
    assert bodies(far.consumer("queue://always"), 2, 0.3) == ["a", "b"]


def test_consumers_nearby_come_first(choosy: Way) -> None:
    name = f"queue://{choosy.name()}"
    far = choosy.taker(name)
    near = choosy.network.session("near").consumer(name)
    choosy.sender(name).send_many([str(number) for number in range(50)])
    assert bodies(near, 50, 0.3) == [str(number) for number in range(50)]
    assert far.receive(0.3) is None
    (info,) = choosy.network.demand("near", name)
    assert info.priority == -5


def test_selectors_choose_what_goes_without_conduits(separate: Way) -> None:
    name = f"queue://{separate.name()}"
    red = separate.taker(name, selector="color = 'red'")
    sender = separate.sender(name)
    for color in ("red", "blue", "red"):
        sender.send(color, {"color": color})
    assert bodies(red, 2, 0.3) == ["red", "red"]
    stays(separate, name, 1)


def test_without_conduits_each_consumer_counts(separate: Way) -> None:
    name = f"queue://{separate.name()}"
    takers = [separate.network.session("far").consumer(name) for _ in range(2)]
    separate.network.await_demand("near", name, 2)
    separate.sender(name).send_many([str(number) for number in range(20)])
    found = [body for taker in takers for body in bodies(taker, 0, 1)]
    assert sorted(found, key=int) == [str(number) for number in range(20)]
    takers[0].close()
    until(lambda: len(separate.network.demand("near", name)) == 1, "one has gone")


def test_a_window_of_one_keeps_the_order(separate: Way) -> None:
    name = f"queue://{separate.name()}"
    taker = separate.taker(name)
    separate.sender(name).send_many([str(number) for number in range(100)])
    assert bodies(taker, 100, 0.3) == [str(number) for number in range(100)]


def test_not_persistent_ones_need_no_confirmation(separate: Way) -> None:
    name = f"queue://{separate.name()}"
    taker = separate.taker(name)
    sender = separate.sender(name, persistent=False)
    for number in range(100):
        sender.send(str(number))
    assert bodies(taker, 100, 0.3) == [str(number) for number in range(100)]


def test_temporary_destinations_can_be_left_out(separate: Way) -> None:
    connection = separate.network.connected("far")
    place = connection.temporary_queue()
    connection.session().consumer(place)
    time.sleep(1)
    assert separate.network.demand("near", str(place)) == []


def test_a_static_bridge_forwards_its_list(static: Way) -> None:
    taker = static.network.session("far").consumer("queue://always")
    static.sender("queue://always").send_many(["a", "b"])
    assert bodies(taker, 2, 0.3) == ["a", "b"]
    news = static.network.session("far").consumer("topic://news")
    time.sleep(0.5)
    static.sender("topic://news").send("n")
    assert bodies(news, 1, 0.3) == ["n"]


def test_a_static_bridge_forwards_nothing_else(static: Way) -> None:
    name = f"queue://{static.name()}"
    static.network.session("far").consumer(name)
    static.sender(name).send("x")
    stays(static, name, 1)


def test_only_what_is_included_goes(lasting: Way) -> None:
    included, other = f"queue://in.{lasting.name()}", f"queue://{lasting.name()}"
    session = lasting.network.session("far")
    session.consumer(other)
    taker = session.consumer(included)
    lasting.network.await_demand("near", included)
    sender = lasting.network.session("near").producer()
    for name in (included, other):
        sender.send(name, destination=name)
    assert bodies(taker, 1, 0.3) == [included]
    stays(lasting, other, 1)


def test_a_forced_durable_topic_waits_for_the_bridge(lasting: Way) -> None:
    name = f"topic://in.{lasting.name()}"
    taker = lasting.taker(name)
    (info,) = lasting.network.demand("near", name)
    assert (info.subscription_name or "").startswith("NC-DS_near_in.")
    relay = lasting.network.relays["near", "far"]
    relay.is_cut = True
    relay.cut()
    lasting.network.await_no_demand("near", name)
    lasting.sender(name).send_many(["a", "b"])
    relay.is_cut = False
    assert bodies(taker, 2, 0.5) == ["a", "b"]


def test_what_is_unsubscribed_while_the_bridge_is_down_is_kept_no_more(agreed: Way) -> None:
    name, other = (f"topic://in.{agreed.name()}" for _ in range(2))
    connection = agreed.network.connected("far", f"{agreed.name()}-client")
    session = connection.session()
    for each in (name, other):
        session.consumer(each, subscription_name=each).close()
        agreed.network.await_demand("near", each)
    relay = agreed.network.relays["near", "far"]
    relay.is_cut = True
    relay.cut()
    agreed.network.await_no_demand("near", other)
    session.unsubscribe(name)
    relay.is_cut = False
    agreed.network.await_demand("near", other)
    agreed.network.await_no_demand("near", name)


def test_bodies_are_compressed_on_their_way(agreed: Way) -> None:
    name = f"queue://in.{agreed.name()}"
    taker = agreed.taker(name)
    agreed.sender(name).send("body " * 1000)
    message = taker.receive(20)
    assert message is not None
    assert message.body == "body " * 1000
    assert message.fields.compressed
