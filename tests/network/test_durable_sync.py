"""Both ends of a bridge agree on durable subscriptions, also on those deleted while it was down."""

from dataclasses import replace

import pytest
from linked_brokers import Client, Link, Node

from lockkeeper.message.destination import topic
from lockkeeper.network.settings import BridgeSettings, Included

INCLUDED = BridgeSettings(dynamically_included=(Included(topic(">")),))
SYNC = replace(INCLUDED, sync_durable_subs=True)
FORCED = BridgeSettings(
    dynamically_included=(Included(topic(">"), force_durable=True),), sync_durable_subs=True
)


class Pair:
    """Two brokers; the second one has subscribers."""

    def __init__(self, settings: BridgeSettings) -> None:
        self.settings = settings
        self.a, self.b = Node("a"), Node("b")
        self.link = Link(self.a, self.b, settings)
        self.far = self.b.client("far")

    def again(self) -> None:
        self.link = Link(self.a, self.b, self.settings)
        self.link.pump()

    def kept(self, node: Node) -> list[str]:
        """Return the topics that a broker collects for the other one."""
        groups = node.broker.subscriptions.durables.values()
        return sorted(
            group.destination.name for group in groups if group.owner[1].startswith("NC-DS_")
        )


def subscribed(client: Client, name: str) -> None:
    client.close(client.consume(f"topic://{name}", subscription_name=name))


def forgotten(client: Client, name: str) -> None:
    lasting = client.node.broker.subscriptions.lasting
    lasting.forget(client.connection.client_id, name, None, None)
    client.node.turn()


@pytest.mark.parametrize(("settings", "left"), [(INCLUDED, ["ONE", "TWO"]), (SYNC, ["TWO"])])
@pytest.mark.parametrize("duplex", [False, True])
def test_a_subscription_that_ended_meanwhile_is_kept_no_more(
    settings: BridgeSettings, left: list[str], duplex: bool
) -> None:
    pair = Pair(replace(settings, duplex=duplex))
    for name in ("ONE", "TWO"):
        subscribed(pair.far, name)
    pair.link.pump()
    assert pair.kept(pair.a) == ["ONE", "TWO"]
    pair.link.cut()
    forgotten(pair.far, "ONE")
    pair.again()
    assert pair.kept(pair.a) == left


def test_the_other_end_of_a_duplex_bridge_agrees_too() -> None:
    pair = Pair(replace(SYNC, duplex=True))
    near = pair.a.client("near")
    for name in ("ONE", "TWO"):
        subscribed(near, name)
    pair.link.pump()
    assert pair.kept(pair.b) == ["ONE", "TWO"]
    pair.link.cut()
    forgotten(near, "ONE")
    pair.again()
    assert pair.kept(pair.b) == ["TWO"]


def test_what_was_sent_meanwhile_is_kept() -> None:
    pair = Pair(SYNC)
    subscribed(pair.far, "ONE")
    pair.link.pump()
    pair.link.cut()
    pair.a.client().send("topic://ONE", "x")
    pair.again()
    pair.far.consume("topic://ONE", subscription_name="ONE")
    pair.link.pump()
    assert pair.far.take() == ["x"]


def test_a_subscription_that_ends_after_the_bridge_has_come_back_ends_here_too() -> None:
    pair = Pair(SYNC)
    subscribed(pair.far, "ONE")
    pair.link.pump()
    pair.link.cut()
    pair.again()
    forgotten(pair.far, "ONE")
    pair.link.pump()
    assert pair.kept(pair.a) == []


def test_plain_consumers_of_forced_topics_count() -> None:
    pair = Pair(FORCED)
    stays, goes = (pair.far.consume(f"topic://{name}") for name in ("ONE", "TWO"))
    pair.link.pump()
    assert pair.kept(pair.a) == ["ONE", "TWO"]
    pair.link.cut()
    pair.far.close(goes)
    pair.again()
    assert pair.kept(pair.a) == ["ONE"]
    assert not stays.closed


def test_a_topic_that_is_excluded_since_is_kept_no_more() -> None:
    pair = Pair(SYNC)
    subscribed(pair.far, "ONE")
    pair.link.pump()
    pair.link.cut()
    pair.settings = replace(SYNC, excluded=(Included(topic("ONE")),))
    pair.again()
    assert pair.kept(pair.a) == []
