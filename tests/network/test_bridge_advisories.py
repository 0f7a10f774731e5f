"""Advisories tell of bridges when they start and end, and of those that are there already."""

from typing import Any, cast

from linked_brokers import Client, Link, Node

from lockkeeper.broker.outputs import Delivery
from lockkeeper.message.openwire import BrokerInfo
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.network.settings import BridgeSettings

TOPIC = "topic://ActiveMQ.Advisory.NetworkBridge"
DUPLEX = BridgeSettings(duplex=True, user_name="branch", password="secret")


def told(client: Client) -> list[tuple[str, dict[str, Any]]]:
    """Return what a client was told of bridges: the other broker, and the properties."""
    client.node.turn()
    outputs, client.connection.outbox = client.connection.outbox, []
    found = []
    for output in outputs:
        for reference in cast("Delivery", output)[1] if type(output) is tuple else ():
            fields = decoded(reference.loaded)
            info = fields.data_structure
            assert isinstance(info, BrokerInfo) and info.broker_name
            assert info.network_properties is None
            said = properties_of(fields).items()
            own = {name: value for name, value in said if not name.startswith("originBroker")}
            found.append((info.broker_name, own))
    return found


def listening(node: Node) -> Client:
    client = node.client()
    client.consume(TOPIC)
    return client


def test_both_ends_of_a_duplex_bridge_tell_of_it() -> None:
    a, b = Node("a"), Node("b")
    near, far = listening(a), listening(b)
    link = Link(a, b, DUPLEX)
    ours = {"started": True, "createdByDuplex": False, "remoteIp": "tcp://peer:1"}
    theirs = {"started": True, "createdByDuplex": True, "remoteIp": "tcp://near:1"}
    assert (told(near), told(far)) == ([("b", ours)], [("a", theirs)])
    link.cut()
    assert (told(near), told(far)) == ([("b", {"started": False})], [("a", {"started": False})])


def test_who_comes_later_is_told_of_bridges_that_are_there() -> None:
    a, b = Node("a"), Node("b")
    link = Link(a, b, DUPLEX)
    assert [name for name, _ in told(listening(a))] == ["b"]
    assert [name for name, _ in told(listening(b))] == ["a"]
    link.cut()
    assert told(listening(a)) == []


def test_the_end_that_only_takes_tells_of_nothing() -> None:
    a, b = Node("a"), Node("b")
    far = listening(b)
    link = Link(a, b)
    link.cut()
    assert told(far) == []
