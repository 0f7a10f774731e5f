"""What a bridge sends again is known after a restart, by what the journal holds."""

from pathlib import Path

import pytest
from linked_brokers import Link, Node

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
