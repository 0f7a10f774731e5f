"""Clients are told of the brokers that bridges lead to, and to which of them they are to go."""

import re
from typing import Any

from linked_brokers import Node

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.outputs import Introduction
from lockkeeper.protocols.cluster import (
    BROKERS_MAX,
    URLS_CHARACTERS_MAX,
    Cluster,
    ClusterSettings,
)

OWN = ("tcp://a:1", "tcp://a-standby:1")
MINE = "tcp://a:1,tcp://a-standby:1"


class Told:
    """Clients of one listener."""

    def __init__(self, **settings: Any) -> None:
        self.node = Node("a")
        self.cluster = Cluster(OWN, ClusterSettings(updates=True, **settings))

    def client(self, fault_tolerant: bool = True) -> Connection:
        connection = self.node.client().connection
        connection.fault_tolerant = fault_tolerant
        self.cluster.introduce(self.node.broker, connection)
        return connection


def news(connection: Connection) -> list[str]:
    """Return what a client was told since it was asked last."""
    told, connection.outbox = connection.outbox, []
    assert all(isinstance(each, Introduction) for each in told)
    return [each.connected_brokers for each in told if isinstance(each, Introduction)]


def test_clients_are_told_of_brokers_that_come() -> None:
    told = Told()
    client = told.client()
    told.cluster.came("b", "tcp://b:1")
    assert news(client) == [MINE, f"{MINE},tcp://b:1"]
    assert news(told.client()) == [f"{MINE},tcp://b:1"]


def test_a_second_bridge_to_a_broker_is_no_news() -> None:
    told = Told(updates_on_remove=True)
    client = told.client()
    for _ in range(2):
        told.cluster.came("b", "tcp://b:1")
    told.cluster.left("tcp://b:1")
    assert len(news(client)) == 2
    told.cluster.left("tcp://b:1")
    assert news(client) == [MINE]


def test_brokers_that_leave_are_told_of_where_that_is_wanted() -> None:
    told = Told()
    told.cluster.came("b", "tcp://b:1")
    told.cluster.left("tcp://b:1")
    assert news(told.client()) == [f"{MINE},tcp://b:1"]


def test_only_those_who_can_move_are_told_of_changes() -> None:
    told = Told()
    client = told.client(fault_tolerant=False)
    told.cluster.came("b", "tcp://b:1")
    assert news(client) == [MINE]


def test_who_has_gone_is_told_of_nothing() -> None:
    told = Told()
    client = told.client()
    told.node.broker.disconnect(client)
    told.cluster.came("b", "tcp://b:1")
    assert news(client) == [MINE]


def test_a_filter_chooses_by_name() -> None:
    told = Told(filter=(re.compile("b.*"), re.compile("c")))
    for name in ("bee", "c", "cee", "d"):
        told.cluster.came(name, f"tcp://{name}:1")
    assert news(told.client()) == [f"{MINE},tcp://bee:1,tcp://c:1"]


def test_each_client_is_to_go_somewhere_else() -> None:
    told = Told(rebalances=True)
    told.cluster.came("b", "tcp://b:1")
    firsts = [news(told.client())[0].split(",")[0] for _ in range(4)]
    assert firsts == ["tcp://a:1", "tcp://b:1"] * 2


def test_who_comes_after_a_failover_stays() -> None:
    told = Told(rebalances=True)
    connection = told.node.client().connection
    connection.fault_tolerant = connection.reconnected = True
    told.cluster.introduce(told.node.broker, connection)
    assert connection.outbox == [Introduction(MINE, "")]


def test_a_broker_that_says_no_url_is_not_told_of() -> None:
    told = Told()
    told.cluster.came("b", "")
    assert news(told.client()) == [MINE]


def test_brokers_that_tell_ever_new_urls_cost_no_more_than_the_last_ones() -> None:
    told = Told()
    told.cluster.came("b", "tcp://b:1")
    for number in range(10 * BROKERS_MAX):
        told.cluster.came("evil", f"tcp://evil:{number}")
        told.cluster.left(f"tcp://evil:{number}")
    (urls,) = news(told.client())
    assert urls.startswith(f"{MINE},tcp://b:1,")
    assert urls.endswith(f"tcp://evil:{10 * BROKERS_MAX - 1}")
    assert len(urls.split(",")) == len(OWN) + BROKERS_MAX


def test_too_many_brokers_and_too_long_urls_are_not_told_of() -> None:
    told = Told(updates_on_remove=True)
    told.cluster.came("long", "tcp://" + "h" * URLS_CHARACTERS_MAX)
    for number in range(BROKERS_MAX + 1):
        told.cluster.came("b", f"tcp://b:{number}")
    told.cluster.left(f"tcp://b:{BROKERS_MAX}")
    told.cluster.left("tcp://b:0")
    told.cluster.came("c", "tcp://c:1")
    others = [f"tcp://b:{number}" for number in range(1, BROKERS_MAX)]
    assert news(told.client()) == [",".join((MINE, *others, "tcp://c:1"))]


def test_a_broker_that_says_our_urls_does_not_take_them_away() -> None:
    told = Told(updates_on_remove=True)
    told.cluster.came("b", MINE)
    told.cluster.left(MINE)
    assert news(told.client()) == [MINE]
