"""What a bridge sends again is known after a restart, by what the journal holds."""

from pathlib import Path

import pytest
from linked_brokers import Link, Node
from test_replays import REPLAYS, policies

from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.primitives import encode_map
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.store.kahadb import KahaDBStore


@pytest.mark.parametrize("place", ["queue://Q", "topic://T"])
def test_what_was_stored_is_not_stored_again(tmp_path: Path, place: str) -> None:
    near, far = Node("a"), Node("b", KahaDBStore(tmp_path))
    name = "sub" if place.startswith("topic") else None
    far.client("c").consume(place, subscription_name=name)
    link = Link(near, far)
    sender = near.client()
    sender.send(place, "x")
    link.pump(holds_back=1)
    link.cut()
    far.store.close()
    far = Node("b", KahaDBStore(tmp_path))
    taker = far.client("c")
    taker.consume(place, subscription_name=name)
    Link(near, far).pump()
    assert taker.take() == ["x"]
    (bridge,) = far.accepted
    assert bridge.inbound is not None
    assert bridge.inbound.duplicates == 1
    far.store.close()


def test_what_was_consumed_since_is_not_delivered_again(tmp_path: Path) -> None:
    near, far = Node("a"), Node("b", KahaDBStore(tmp_path))
    far.client("c").consume("queue://Q")
    link = Link(near, far)
    near.client().send("queue://Q", "x")
    link.pump(holds_back=1)
    link.cut()
    far.store.close()
    far = Node("b", KahaDBStore(tmp_path))
    taker = far.client("c")
    taker.consume("queue://Q")
    assert taker.take() == ["x"]
    far.store.close()
    far = Node("b", KahaDBStore(tmp_path))
    taker = far.client("c")
    taker.consume("queue://Q")
    Link(near, far).pump()
    assert taker.take() == []
    far.store.close()


def test_a_message_goes_back_to_a_broker_that_was_started_anew(tmp_path: Path) -> None:
    """It is known by an id that outlives its process: the message has left it, and may return."""
    replays, duplex = policies(REPLAYS), BridgeSettings(duplex=True)
    near, far = Node("a", KahaDBStore(tmp_path), replays, life="-1"), Node("b", policies=replays)
    taker = far.client()
    consumer = taker.consume("queue://Q")
    link = Link(near, far, duplex)
    near.client().send("queue://Q", "x")
    link.pump()
    taker.close(consumer)
    link.pump()
    link.cut()
    near.store.close()
    near = Node("a", KahaDBStore(tmp_path), replays, life="-2")
    assert near.broker.broker_id == "ID:a-1"
    taker = near.client()
    taker.consume("queue://Q")
    Link(near, far, duplex).pump()
    assert taker.take() == ["x"]
    near.store.close()


def test_a_broker_of_another_name_over_the_same_journal_is_another_one(tmp_path: Path) -> None:
    Node("a", KahaDBStore(tmp_path), life="-1").store.close()
    copy = Node("c", KahaDBStore(tmp_path), life="-2")
    assert copy.broker.broker_id == "ID:c-2"
    copy.store.close()


def test_a_message_that_is_back_before_it_was_confirmed_outlives_a_restart(tmp_path: Path) -> None:
    """Its first stay ends when it has begun the second: both are the same message by its id."""
    replays = policies(REPLAYS)
    near, far = Node("a", KahaDBStore(tmp_path), replays), Node("b", policies=replays)
    there, here = far.client(), near.client()
    consumer = there.consume("queue://Q")
    out, back = Link(near, far), Link(far, near)
    out.pump()
    here.send("queue://Q", "x")
    out.pump(holds_back=1)
    there.close(consumer)
    here.consume("queue://Q")
    back.pump()
    out.pump()
    near.store.close()
    near = Node("a", KahaDBStore(tmp_path), replays)
    again = near.client()
    again.consume("queue://Q")
    assert again.take() == ["x"]
    near.store.close()


def test_what_comes_back_twice_is_known_by_the_id_that_it_came_with() -> None:
    replays = policies(REPLAYS)
    near, far = Node("a", policies=replays), Node("b", policies=replays)
    there, here = far.client(), near.client()
    consumer = there.consume("queue://Q")
    out, back = Link(near, far), Link(far, near)
    out.pump()
    here.send("queue://Q", "x")
    out.pump()
    there.close(consumer)
    out.pump()
    here.consume("queue://Q")
    back.pump(holds_back=1)
    back.cut()
    Link(far, near).pump()
    assert here.take() == ["x"]


def test_what_was_refused_is_one_dead_letter(tmp_path: Path) -> None:
    settings = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
    near, far = Node("a"), Node("b", KahaDBStore(tmp_path), settings=settings)
    far.client("c").consume("queue://Q")
    link, sender = Link(near, far), near.client()
    bad = encode_map({"AMQ_SCHEDULED_CRON": "whenever"})
    sender.send("queue://Q", "x", marshalled_properties=bad)
    sender.send("queue://Q", "y", marshalled_properties=bad)
    link.pump(holds_back=1)
    link.cut()
    far.store.close()
    far = Node("b", KahaDBStore(tmp_path), settings=settings)
    taker = far.client("c")
    taker.consume("queue://Q")
    taker.consume("queue://ActiveMQ.DLQ")
    link = Link(near, far)
    sender.send("queue://Q", "z", marshalled_properties=bad)
    link.pump()
    assert taker.take() == ["x", "y", "z"]
    assert link.bridge.failure == ""
    far.store.close()
