"""A bridge that is to end forwards nothing more, and waits for what it has forwarded."""

from linked_brokers import Link, Node

from lockkeeper.message.destination import queue
from lockkeeper.network.settings import BridgeSettings, Included

FAR = 1


def test_what_was_forwarded_is_confirmed_and_nothing_follows() -> None:
    near, far = Node("near"), Node("far")
    link, there, here = Link(near, far), far.client(), near.client()
    there.consume("queue://Q")
    link.pump()
    here.send("queue://Q", "forwarded")
    link.pump(holds_back=FAR)
    assert not link.bridge.is_drained

    link.bridge.drain()
    here.send("queue://Q", "stays")
    link.pump(holds_back=FAR)
    assert there.take() == ["forwarded"]
    assert not link.bridge.is_drained
    link.pump()
    assert link.bridge.is_drained
    link.bridge.stop()
    link.cut()
    assert there.take() == []
    here.consume("queue://Q")
    assert here.take() == ["stays"]


def test_what_the_other_broker_asks_for_meanwhile_is_not_heard() -> None:
    near, far = Node("near"), Node("far")
    link, there, here = Link(near, far), far.client(), near.client()
    link.bridge.drain()
    there.consume("queue://Q")
    link.pump()
    here.send("queue://Q", "stays")
    link.pump()
    assert (there.take(), link.bridge.is_drained) == ([], True)


def test_a_durable_subscription_goes_on_collecting_for_its_subscriber() -> None:
    near, far = Node("near"), Node("far")
    there, here = far.client(), near.client()
    link = Link(near, far)
    there.consume("topic://T", subscription_name="news")
    link.pump()
    link.bridge.drain()
    link.pump()
    assert link.bridge.is_drained
    link.bridge.stop()
    link.cut()
    here.send("topic://T", "meanwhile")
    Link(near, far)
    assert there.take() == ["meanwhile"]


def test_lists_are_forwarded_no_more_either() -> None:
    near, far = Node("near"), Node("far")
    listed = BridgeSettings(statically_included=(Included(queue("Q")),))
    link, here = Link(near, far, listed), near.client()
    link.bridge.drain()
    here.send("queue://Q", "stays")
    link.pump()
    here.consume("queue://Q")
    assert here.take() == ["stays"]
