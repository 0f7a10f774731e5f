"""Two brokers of ours, linked without sockets: demand, forwarding, cuts at any moment."""

from typing import cast

import pytest
from linked_brokers import SETTINGS, Client, Link, Node

from lockkeeper.broker.outputs import Delivery
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import Destination, Kind, parse_destination, queue, topic
from lockkeeper.network.settings import BridgeSettings, Included

DUPLEX = BridgeSettings(duplex=True)


class Pair:
    """Two linked brokers with a client each, of settings of their own perhaps."""

    def __init__(
        self,
        settings: BridgeSettings | None = None,
        near: BrokerSettings | None = None,
        far: BrokerSettings | None = None,
    ) -> None:
        self.a = Node("a", settings=near or SETTINGS)
        self.b = Node("b", settings=far or SETTINGS)
        self.settings = settings or BridgeSettings()
        self.link = Link(self.a, self.b, self.settings)
        self.near, self.far = self.a.client(), self.b.client()

    def again(self) -> None:
        """Lose the connection and make another."""
        self.link.cut()
        self.link = Link(self.a, self.b, self.settings)

    def depth(self, node: Node, name: str) -> int:
        region = node.broker.registry.find(parse_destination(name))
        return 0 if region is None else region.depth() + region.in_flight()


def test_a_message_follows_its_consumer_and_leaves_its_first_broker() -> None:
    pair = Pair()
    pair.far.consume("queue://Q")
    pair.link.pump()
    pair.near.send("queue://Q", "x")
    pair.link.pump()
    assert pair.far.take_with_paths() == [("x", ["ID:a"])]
    assert pair.depth(pair.a, "queue://Q") == 0


def test_a_message_stays_until_the_other_broker_has_confirmed_it() -> None:
    pair = Pair()
    pair.far.consume("queue://Q")
    pair.link.pump()
    pair.near.send("queue://Q", "x")
    pair.link.pump(holds_back=1)
    assert pair.depth(pair.a, "queue://Q") == 1
    assert pair.far.take() == ["x"]
    pair.link.pump()
    assert pair.depth(pair.a, "queue://Q") == 0


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("steps", range(6))
def test_a_cut_at_any_moment_neither_loses_nor_doubles(steps: int, persistent: bool) -> None:
    pair = Pair()
    pair.far.consume("queue://Q")
    pair.link.pump()
    for number in range(5):
        pair.near.send("queue://Q", str(number), persistent=persistent)
    for _ in range(steps):
        pair.link.step(holds_back=1 if steps % 2 else None)
    pair.again()
    pair.link.pump()
    assert sorted(pair.far.take()) == ["0", "1", "2", "3", "4"]
    assert pair.depth(pair.a, "queue://Q") == 0


def test_what_comes_again_is_counted() -> None:
    pair = Pair()
    pair.far.consume("queue://Q")
    pair.link.pump()
    pair.near.send("queue://Q", "x")
    pair.link.pump(holds_back=1)
    pair.again()
    pair.link.pump()
    inbound = pair.b.accepted[-1].inbound
    assert inbound is not None
    assert (inbound.taken, inbound.duplicates) == (1, 1)
    assert pair.far.take() == ["x"]


def test_a_copy_for_another_queue_is_no_duplicate() -> None:
    pair = Pair()
    for name in ("Q", "R"):
        pair.far.consume(f"queue://{name}")
    pair.link.pump()
    pair.near.send("queue://Q,R", "x")
    pair.link.pump()
    assert pair.far.take() == ["x", "x"]


def test_the_journal_has_what_is_in_doubt() -> None:
    pair = Pair()
    pair.far.consume("queue://Q")
    pair.link.pump()
    pair.near.send("queue://Q", "x")
    pair.link.pump(holds_back=1)
    pair.link.cut()
    assert redelivered(pair.near, "queue://Q") == [1]


def redelivered(client: Client, name: str) -> list[int]:
    """Return how often each waiting message was on its way before."""
    client.consume(name)
    client.node.turn()
    told = [cast("Delivery", each) for each in client.connection.outbox if type(each) is tuple]
    return [reference.redeliveries for _, references in told for reference in references]


def test_demand_ends_with_its_last_consumer() -> None:
    pair = Pair()
    consumers = [pair.far.consume("queue://Q") for _ in range(2)]
    pair.link.pump()
    assert demanded(pair) == ["queue://Q"]
    pair.far.close(consumers[0])
    pair.link.pump()
    assert demanded(pair) == ["queue://Q"]
    pair.far.close(consumers[1])
    pair.link.pump()
    assert demanded(pair) == []


def demanded(pair: Pair) -> list[str]:
    demand = pair.link.bridge.demand
    assert demand is not None
    return sorted(str(each.destination) for each in demand.demands)


def test_demand_that_ends_waits_for_what_is_on_its_way() -> None:
    pair = Pair()
    consumer = pair.far.consume("queue://Q")
    pair.link.pump()
    pair.near.send("queue://Q", "x")
    pair.link.step(holds_back=1)
    pair.far.close(consumer)
    pair.link.pump()
    assert demanded(pair) == []
    assert pair.depth(pair.a, "queue://Q") == 0
    assert pair.depth(pair.b, "queue://Q") == 1


def test_consumers_of_before_are_heard_of() -> None:
    pair = Pair()
    pair.link.cut()
    pair.far.consume("queue://Q")
    pair.near.send("queue://Q", "x")
    pair.link = Link(pair.a, pair.b)
    pair.link.pump()
    assert pair.far.take() == ["x"]


def test_duplex_carries_both_ways() -> None:
    pair = Pair(DUPLEX)
    pair.far.consume("queue://Q")
    pair.near.consume("queue://R")
    pair.link.pump()
    pair.near.send("queue://Q", "there")
    pair.far.send("queue://R", "back")
    pair.link.pump()
    assert (pair.far.take(), pair.near.take()) == (["there"], ["back"])


def test_a_simple_bridge_carries_one_way() -> None:
    pair = Pair()
    pair.near.consume("queue://R")
    pair.link.pump()
    pair.far.send("queue://R", "stays")
    pair.link.pump()
    assert pair.near.take() == []
    assert pair.depth(pair.b, "queue://R") == 1


def test_a_topic_does_not_echo() -> None:
    pair = Pair(DUPLEX)
    pair.near.consume("topic://T")
    pair.far.consume("topic://T")
    pair.link.pump()
    pair.near.send("topic://T", "x")
    pair.link.pump()
    assert (pair.near.take(), pair.far.take()) == (["x"], ["x"])


def test_durable_subscriptions_are_durable_here() -> None:
    pair = Pair()
    pair.far.consume("topic://T", subscription_name="sub")
    pair.link.pump()
    (group,) = pair.a.broker.subscriptions.durables.values()
    assert group.subscription.key == "NC_b_inbound_a:NC-DS_a_T"
    pair.link.cut()
    pair.near.send("topic://T", "kept")
    pair.link = Link(pair.a, pair.b)
    pair.link.pump()
    assert pair.far.take() == ["kept"]


def test_a_durable_subscription_replaces_a_plain_one() -> None:
    pair = Pair()
    plain = pair.far.consume("topic://T")
    pair.link.pump()
    pair.far.consume("topic://T", subscription_name="sub")
    pair.link.pump()
    assert demanded(pair) == ["topic://T"]
    pair.near.send("topic://T", "x")
    pair.link.pump()
    assert sorted(pair.far.take()) == ["x", "x"]
    pair.far.close(plain)
    pair.link.pump()
    assert demanded(pair) == ["topic://T"]


def test_the_last_unsubscription_ends_ours() -> None:
    pair = Pair()
    consumer = pair.far.consume("topic://T", subscription_name="sub")
    pair.link.pump()
    pair.far.close(consumer)
    pair.link.pump()
    assert demanded(pair) == ["topic://T"]
    pair.b.broker.subscriptions.lasting.forget(pair.far.name, "sub", None)
    pair.link.pump()
    assert demanded(pair) == []
    assert pair.a.broker.subscriptions.durables == {}


def test_a_temporary_destination_is_known_with_its_path() -> None:
    pair = Pair()
    place = temporary(pair.far)
    pair.far.consume(place)
    pair.link.pump()
    network = pair.link.bridge.connection.network
    assert network is not None
    assert network.paths == {place: ("ID:b",)}
    pair.near.send(str(place), "x")
    pair.link.pump()
    assert pair.far.take() == ["x"]


def temporary(client: Client) -> Destination:
    place = parse_destination(f"temp-queue://{client.name}:1")
    assert place.kind is Kind.TEMP_QUEUE
    client.node.broker.destinations.create_temporary(client.connection, place)
    return place


def test_a_message_for_a_temporary_destination_that_has_gone_ends_alone() -> None:
    pair = Pair()
    place = temporary(pair.far)
    pair.far.consume(place)
    pair.link.pump()
    pair.near.send(str(place), "late")
    pair.link.step(holds_back=1)
    pair.b.broker.disconnect(pair.far.connection)
    pair.far = pair.b.client()
    pair.far.consume("queue://Q")
    pair.near.send("queue://Q", "goes on")
    pair.link.pump()
    assert not pair.link.bridge.closing
    assert pair.far.take() == ["goes on"]


def test_a_temporary_destination_may_go_while_a_message_for_it_waits_for_room() -> None:
    pair = Pair(BridgeSettings(always_sync_send=False))
    place = temporary(pair.far)
    pair.far.consume(place)
    pair.link.pump()
    pair.near.send(str(place), "x" * 70_000, persistent=False)
    pair.link.pump()
    memory = pair.b.broker.memory
    memory.used += 1 << 30
    pair.near.send(str(place), "late", persistent=False)
    pair.link.pump()
    assert [line.sends for line in pair.b.broker.flow.blocked()] == [1]
    pair.b.broker.disconnect(pair.far.connection)
    memory.used -= 1 << 30
    pair.link.pump()
    assert pair.b.broker.flow.blocked() == []
    assert pair.link.bridge.failure == ""


def test_a_bridge_to_itself_ends() -> None:
    node = Node("a")
    link = Link(node, node)
    assert link.bridge.closing
    assert "leads back to this broker" in link.bridge.failure


@pytest.mark.parametrize("ttl, came", [(1, []), (2, ["x"]), (-1, ["x"])])
def test_a_chain_is_as_long_as_its_ttl(ttl: int, came: list[str]) -> None:
    a, b, c = Node("a"), Node("b"), Node("c")
    settings = BridgeSettings(message_ttl=ttl, consumer_ttl=ttl)
    links = [Link(a, b, settings), Link(b, c, settings)]
    taker, sender = c.client(), a.client()
    taker.consume("queue://Q")
    settle(links)
    sender.send("queue://Q", "x")
    settle(links)
    assert taker.take() == came


def settle(links: list[Link]) -> None:
    """Pass bytes on until nobody in the network says anything."""
    for _ in range(500):
        busy = [link.step() for link in links]
        if not any(busy):
            return
    raise AssertionError("the network never stops talking")


def test_a_ring_delivers_once_and_falls_silent() -> None:
    nodes = [Node(name) for name in "abc"]
    settings = BridgeSettings(duplex=True, message_ttl=-1, consumer_ttl=-1)
    links = [Link(nodes[one], nodes[two], settings) for one, two in ((0, 1), (1, 2), (2, 0))]
    clients = [node.client() for node in nodes]
    for client in clients:
        client.consume("topic://T")
    settle(links)
    clients[0].send("topic://T", "x")
    settle(links)
    assert [client.take() for client in clients] == [["x"]] * 3


def test_another_way_is_taken_when_one_is_cut() -> None:
    nodes = [Node(name) for name in "abc"]
    settings = BridgeSettings(duplex=True, message_ttl=-1, consumer_ttl=-1)
    links = [Link(nodes[one], nodes[two], settings) for one, two in ((0, 1), (1, 2), (0, 2))]
    taker, sender = nodes[2].client(), nodes[0].client()
    taker.consume("topic://T")
    settle(links)
    links.pop().cut()
    settle(links)
    sender.send("topic://T", "round about")
    settle(links)
    assert taker.take() == ["round about"]


INCLUDING = BridgeSettings(
    excluded=(Included(queue("out.>")),),
    dynamically_included=(Included(queue("in.>")), Included(topic("in.>"), force_durable=True)),
    statically_included=(Included(queue("always")),),
)


@pytest.mark.parametrize(
    "name, goes",
    [("queue://in.a", True), ("queue://out.a", False), ("queue://other", False),
     ("topic://in.a", True), ("topic://out.a", False), ("queue://always", True)],
)  # fmt: skip
def test_what_is_included_goes(name: str, goes: bool) -> None:
    pair = Pair(INCLUDING)
    pair.far.consume(name)
    pair.link.pump()
    pair.near.send(name, "x")
    pair.link.pump()
    assert pair.far.take() == (["x"] if goes else [])


def test_a_forced_durable_topic_collects_while_the_bridge_is_down() -> None:
    pair = Pair(INCLUDING)
    pair.far.consume("topic://in.a")
    pair.link.pump()
    pair.link.cut()
    pair.near.send("topic://in.a", "kept")
    pair.link = Link(pair.a, pair.b, INCLUDING)
    pair.link.pump()
    assert pair.far.take() == ["kept"]


def test_without_conduits_selectors_hold() -> None:
    pair = Pair(BridgeSettings(conduit_subscriptions=False))
    pair.far.consume("queue://Q", selector="JMSPriority > 4")
    pair.link.pump()
    pair.near.send("queue://Q", "low", priority=1)
    pair.near.send("queue://Q", "high", priority=9)
    pair.link.pump()
    assert pair.far.take() == ["high"]
    assert pair.depth(pair.a, "queue://Q") == 1


def test_consumers_of_networks_come_last_where_that_is_wanted() -> None:
    pair = Pair(BridgeSettings(decrease_network_consumer_priority=True))
    pair.far.consume("queue://Q")
    pair.link.pump()
    pair.near.consume("queue://Q")
    pair.near.send("queue://Q", "stays")
    pair.link.pump()
    assert (pair.near.take(), pair.far.take()) == (["stays"], [])


def test_a_rare_message_is_forwarded_field_by_field() -> None:
    pair = Pair()
    pair.far.consume("queue://Q")
    pair.link.pump()
    for fields in ({"user_id": "u"}, {"compressed": True}, {"group_id": "g", "group_sequence": 2}):
        pair.near.send("queue://Q", "x", **fields)
    pair.link.pump()
    assert pair.far.take() == ["x"] * 3


@pytest.mark.parametrize("settings", [BridgeSettings(), DUPLEX], ids=["simple", "duplex"])
def test_more_consumers_than_the_window_of_advisories_are_heard_of(
    settings: BridgeSettings,
) -> None:
    pair = Pair(settings)
    for number in range(2500):
        pair.far.consume(f"queue://Q{number % 2300}")
        if number % 100 == 0:
            pair.link.pump()
    pair.link.pump()
    assert len(demanded(pair)) == 2300


def test_a_destination_that_was_removed_stays_away() -> None:
    pair = Pair()
    pair.far.consume("queue://Q")
    pair.link.pump()
    pair.a.broker.destinations.remove_with_users(queue("Q"), None)
    pair.link.pump()
    pair.a.later(1_500)
    assert demanded(pair) == []
    assert pair.a.broker.registry.find(queue("Q")) is None


def test_without_conduits_a_topic_comes_once_all_the_same() -> None:
    pair = Pair(BridgeSettings(conduit_subscriptions=False))
    for _ in range(3):
        pair.far.consume("topic://T")
    pair.link.pump()
    assert demanded(pair) == ["topic://T"] * 3
    pair.near.send("topic://T", "x")
    pair.link.pump()
    assert pair.far.take() == ["x"] * 3


def test_compressed_and_owned_messages_keep_their_path_in_a_chain() -> None:
    a, b, c = Node("a"), Node("b"), Node("c")
    settings = BridgeSettings(message_ttl=-1, consumer_ttl=-1)
    links = [Link(a, b, settings), Link(b, c, settings)]
    taker, sender = c.client(), a.client()
    taker.consume("queue://Q")
    settle(links)
    sender.send("queue://Q", "plain")
    sender.send("queue://Q", "owned", user_id="anna", type="t", reply_to=queue("R"))
    settle(links)
    assert taker.take_with_paths() == [
        ("plain", ["ID:a", "ID:b"]), ("owned", ["ID:a", "ID:b"]),
    ]  # fmt: skip
