"""Dead letters of one message of a topic that several brokers refuse: each broker has its own."""

import select
import shutil
from pathlib import Path

import pytest
from linked_brokers import Link, Node

from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.openwire import AckType
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.store.base import Store
from lockkeeper.store.kahadb import KahaDBStore

WIDE = BridgeSettings(message_ttl=4)
DEAD = "queue://ActiveMQ.DLQ"
CIRCLE = (
    CompositeDestination("T", kind="Topic", forward_to=(ForwardTo(queue="BACK"),)),
    CompositeDestination("BACK", forward_to=(ForwardTo(topic="T"),)),
)
ROUNDS = 3
WRITE_SECONDS_MAX = 20


def refusing(name: str, store: Store | None = None, life: str = "") -> Node:
    """Return a broker whose subscribers ask for what it refuses."""
    settings = BrokerSettings(composite_destinations=CIRCLE)
    node = Node(name, store, settings=settings, life=life)
    node.client("c").consume("topic://T", subscription_name="sub")
    return node


def pump(*links: Link) -> None:
    for _ in range(ROUNDS):
        for link in links:
            link.pump()


def pump_until_confirmed(link: Link) -> None:
    """Let the far broker write what it gets, until the near one has no dead letter left."""
    store = link.far.store
    descriptor = store.fileno()
    assert descriptor is not None
    link.pump()
    while depth(link.near):
        readable, _, _ = select.select([descriptor], [], [], WRITE_SECONDS_MAX)
        assert readable, "the store did not finish its write in time"
        link.far.broker.settle(store.completed())
        link.pump()


def depth(node: Node) -> int:
    """Return how many dead letters a broker has, also those that somebody has in hand."""
    found = node.broker.registry.find_queue(parse_destination(DEAD))
    return 0 if found is None else found.depth() + found.in_flight()


def test_letters_of_two_brokers_are_two_where_they_meet() -> None:
    a, b, c, d = Node("a"), refusing("b"), refusing("c"), Node("d")
    links = (Link(a, b), Link(a, c))
    pump(*links)
    a.client().send("topic://T", "x")
    pump(*links)
    assert [depth(node) for node in (b, c)] == [1, 1]
    reader = d.client()
    reader.consume(DEAD)
    pump(Link(b, d, WIDE), Link(c, d, WIDE))
    assert [depth(node) for node in (b, c, d)] == [0, 0, 2]
    assert reader.take() == ["x", "x"]


def test_a_letter_that_comes_from_another_broker_is_not_the_own_one(tmp_path: Path) -> None:
    a, b, d = Node("a"), refusing("b"), refusing("d", KahaDBStore(tmp_path))
    links = (Link(a, b), Link(a, d))
    pump(*links)
    a.client().send("topic://T", "x")
    pump(*links)
    d.client().consume(DEAD)
    pump_until_confirmed(Link(b, d, WIDE))
    assert depth(d) == 2
    d.store.close()
    d = Node("d", KahaDBStore(tmp_path))
    assert depth(d) == 2
    reader = d.client()
    consumer = reader.consume(DEAD)
    first, _ = consumer.dispatched.values()
    d.broker.acknowledge(consumer, AckType.INDIVIDUAL, first.loaded.sequence, 1, None)
    d.turn()
    d.store.close()
    d = Node("d", KahaDBStore(tmp_path))
    assert depth(d) == 1
    d.store.close()


def test_a_letter_is_known_by_a_broker_that_was_started_anew(tmp_path: Path) -> None:
    """It is named after the broker, which outlives its process."""
    a, b = Node("a"), refusing("b", KahaDBStore(tmp_path), life="-1")
    link = Link(a, b)
    pump(link)
    a.client().send("topic://T", "x")
    link.pump(holds_back=1)
    link.cut()
    b.store.close()
    b = refusing("b", KahaDBStore(tmp_path), life="-2")
    link = Link(a, b)
    pump(link)
    assert (depth(b), link.bridge.failure) == (1, "")
    (bridge,) = b.accepted
    assert bridge.inbound is not None
    assert (bridge.inbound.taken, bridge.inbound.duplicates) == (1, 1)
    b.store.close()


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_letter_comes_back_from_a_copy_of_the_journal(tmp_path: Path, is_taken: bool) -> None:
    """The one that it is a copy of may have ended meanwhile, or wait here still."""
    a, b = Node("a"), refusing("b", KahaDBStore(tmp_path / "b"))
    link = Link(a, b)
    pump(link)
    a.client().send("topic://T", "x")
    pump(link)
    assert depth(b) == 1
    b.store.close()
    shutil.copytree(tmp_path / "b", tmp_path / "copy")
    b = Node("b", KahaDBStore(tmp_path / "b"))
    reader = b.client()
    consumer = reader.consume(DEAD)
    if is_taken:
        assert reader.take() == ["x"]
    restored = Node("b-restored", KahaDBStore(tmp_path / "copy"))
    assert depth(restored) == 1
    link = Link(restored, b, WIDE)
    pump_until_confirmed(link)
    expected = 1 if is_taken else 2
    assert (depth(b), len(consumer.dispatched)) == (expected, expected)
    assert link.bridge.failure == ""
    # Each ends by itself.
    first, *_ = consumer.dispatched.values()
    b.broker.acknowledge(consumer, AckType.INDIVIDUAL, first.loaded.sequence, 1, None)
    b.turn()
    b.store.close()
    b = Node("b", KahaDBStore(tmp_path / "b"))
    assert depth(b) == expected - 1
    for node in (b, restored):
        node.store.close()
