"""Scheduled messages of a topic that come as they were sent, and as others deliver them."""

from pathlib import Path

import pytest
from linked_brokers import Link, Node

from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.primitives import encode_map
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.store.base import Store
from lockkeeper.store.kahadb import KahaDBStore

SOON = 5_000
LATER = encode_map({"AMQ_SCHEDULED_DELAY": SOON})
WIDE = BridgeSettings(message_ttl=4)
COPIES = CompositeDestination(
    "T", kind="Topic", forward_to=(ForwardTo(topic="A"), ForwardTo(topic="B")), forward_only=False
)


def scheduling(
    name: str, store: Store | None = None, rules: tuple[CompositeDestination, ...] = ()
) -> Node:
    """Return a broker that heeds schedules."""
    settings = BrokerSettings(
        scheduler=SchedulerSettings(enabled=True), composite_destinations=rules
    )
    return Node(name, store, settings=settings)


def pump(*links: Link) -> None:
    for _ in range(3):
        for link in links:
            link.pump()


def send_later(node: Node, *links: Link) -> None:
    """Have somebody send to subscribers of the other ends, at a time to come."""
    pump(*links)
    node.client().send("topic://T", "x", marshalled_properties=LATER)


@pytest.mark.parametrize("is_own_first", [True, False])
def test_a_job_and_what_that_of_another_broker_delivers_are_one_message(
    is_own_first: bool,
) -> None:
    a, b, d = Node("a"), scheduling("b"), scheduling("d")
    taker = d.client()
    for client in (taker, b.client()):
        client.consume("topic://T")
    direct, ways = Link(a, d, WIDE), (Link(a, b, WIDE), Link(b, d, WIDE))
    send_later(a, direct, *ways)
    if is_own_first:
        pump(direct)
    pump(*ways)
    b.later(SOON)
    pump(*ways)
    pump(direct)
    assert taker.take() == ([] if is_own_first else ["x"])
    d.later(SOON)
    assert taker.take() == (["x"] if is_own_first else [])


def test_a_job_is_known_after_a_restart_when_another_broker_delivers_it(tmp_path: Path) -> None:
    a, b, d = Node("a"), scheduling("b"), scheduling("d", KahaDBStore(tmp_path))
    for node in (b, d):
        node.client("c").consume("topic://T", subscription_name="sub")
    links = Link(a, b, WIDE), Link(a, d, WIDE)
    send_later(a, *links)
    pump(*links)
    links[1].cut()
    d.store.close()
    d = scheduling("d", KahaDBStore(tmp_path))
    d.client("c").consume("topic://T", subscription_name="sub")
    onwards = Link(b, d, WIDE)
    pump(onwards)
    b.later(SOON)
    pump(onwards)
    (bridge,) = d.accepted
    assert bridge.inbound is not None
    assert (bridge.inbound.taken, bridge.inbound.duplicates) == (1, 1)
    d.store.close()


def test_copies_of_what_a_job_delivers_are_as_many_messages() -> None:
    """ActiveMQ's copies, and ours, have the id of the message that they are made of."""
    a, b, d = Node("a"), scheduling("b", rules=(COPIES,)), scheduling("d")
    taker = d.client()
    for place in "TAB":
        taker.consume(f"topic://{place}")
    b.client().consume("topic://T")
    links = Link(a, b, WIDE), Link(b, d, WIDE)
    send_later(a, *links)
    pump(*links)
    b.later(SOON)
    pump(*links)
    assert taker.take() == ["x", "x", "x"]
