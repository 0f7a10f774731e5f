"""Demand of a bridge whose consumers are closed, leave and come back."""

import pytest
from test_linked_brokers import Pair, demanded

from lockkeeper.network.settings import BridgeSettings


def test_a_consumer_that_was_closed_for_being_slow_begins_again() -> None:
    pair = Pair()
    pair.far.consume("queue://Q")
    pair.link.pump()
    close_ours(pair)
    pair.near.send("queue://Q", "x")
    pair.link.pump()
    assert pair.far.take() == []
    pair.a.later(1_500)
    pair.link.pump()
    assert pair.far.take() == ["x"]


def close_ours(pair: Pair) -> None:
    """Have the first broker close the bridge's only consumer, as for being slow."""
    demand = pair.link.bridge.demand
    assert demand is not None
    (before,) = demand.demands
    assert before.consumer is not None
    pair.a.broker.subscriptions.close(before.consumer)
    pair.link.pump()


@pytest.mark.parametrize("conduit", [True, False])
def test_what_was_closed_does_not_begin_again_for_those_who_have_left(conduit: bool) -> None:
    """Messages would go where nobody wants them, and stay there."""
    pair = Pair(BridgeSettings(conduit_subscriptions=conduit))
    consumer = pair.far.consume("queue://Q")
    pair.link.pump()
    close_ours(pair)
    pair.far.close(consumer)
    pair.link.pump()
    pair.a.later(1_500)
    pair.link.pump()
    assert demanded(pair) == []


def test_what_was_closed_begins_again_for_all_its_subscribers() -> None:
    """Else the first to unsubscribe took the others' messages with it."""
    pair = Pair()
    one, two = pair.b.client("one"), pair.b.client("two")
    left = one.consume("topic://T", subscription_name="left")
    two.consume("topic://T", subscription_name="stays")
    pair.link.pump()
    close_ours(pair)
    pair.a.later(1_500)
    pair.link.pump()
    one.close(left)
    lasting = pair.b.broker.subscriptions.lasting
    lasting.forget(one.connection.client_id, "left", None, one.connection.rights)
    pair.link.pump()
    pair.near.send("topic://T", "x")
    pair.link.pump()
    assert two.take() == ["x"]


def test_a_subscriber_to_several_topics_may_come_back_for_ever() -> None:
    """What is known of it does not grow, and its end is still heard of."""
    pair = Pair()
    for _ in range(20):
        consumer = pair.far.consume("topic://A,B", subscription_name="s")
        pair.link.pump()
        pair.far.close(consumer)
        pair.link.pump()
    book = pair.link.bridge.demand
    assert book is not None
    assert demanded(pair) == ["topic://A", "topic://B"]
    assert sum(map(len, book._lists.values())) == 2
    lasting = pair.b.broker.subscriptions.lasting
    lasting.forget(pair.far.connection.client_id, "s", None, pair.far.connection.rights)
    pair.link.pump()
    assert demanded(pair) == []
