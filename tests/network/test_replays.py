"""Messages that came over a bridge go back when their consumers have left, and in no circle."""

from dataclasses import replace

import pytest
from linked_brokers import NOW, Client, Link, Node

from lockkeeper.broker.adopting import adopt_policies
from lockkeeper.broker.diagnostics.queues import why_queue
from lockkeeper.broker.policies.network_bridge_filter import NetworkBridgeFilterPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.message.destination import parse_destination, queue
from lockkeeper.network.settings import BridgeSettings, Included

REPLAYS = NetworkBridgeFilterPolicy(replay_when_no_consumers=True)
DUPLEX = BridgeSettings(duplex=True)
FAR = BridgeSettings(duplex=True, message_ttl=4, consumer_ttl=4)


def policies(filter_policy: NetworkBridgeFilterPolicy) -> PolicyMap:
    return PolicyMap(
        [PolicyEntry(">", None, DestinationPolicy(network_bridge_filter=filter_policy))]
    )


class Chain:
    """Brokers a, b, c and so on, each linked with the next; *ring*: and the last with the first."""

    def __init__(
        self,
        count: int,
        filter_policy: NetworkBridgeFilterPolicy = REPLAYS,
        settings: BridgeSettings = FAR,
        ring: bool = False,
    ) -> None:
        self.nodes = [Node("abcde"[at], policies=policies(filter_policy)) for at in range(count)]
        pairs = list(zip(self.nodes, self.nodes[1:], strict=False))
        if ring:
            pairs.append((self.nodes[-1], self.nodes[0]))
        self.links = [Link(near, far, settings) for near, far in pairs]
        self.clients = [node.client() for node in self.nodes]

    def pump(self) -> None:
        for _ in range(200):
            busy = [link.step() for link in self.links]
            if not any(busy):
                return
        raise AssertionError("the brokers never stop talking")

    def later(self, milliseconds: int) -> None:
        for node in self.nodes:
            node.later(milliseconds)
        self.pump()

    def moves(self, source: int, target: int, *texts: str) -> None:
        """Have messages sent at one broker come to another, whose consumer leaves."""
        taker = self.clients[target].consume("queue://Q")
        self.pump()
        for text in texts:
            self.clients[source].send("queue://Q", text)
        self.pump()
        self.clients[target].close(taker)
        self.pump()
        self.clients[target].connection.outbox.clear()

    def depths(self) -> list[int]:
        return [_depth(node) for node in self.nodes]


def _depth(node: Node) -> int:
    region = node.broker.registry.find(parse_destination("queue://Q"))
    return 0 if region is None else region.depth() + region.in_flight()


def test_what_lost_its_consumer_goes_back_to_where_one_is() -> None:
    chain = Chain(2)
    chain.moves(0, 1, "x", "y")
    assert chain.depths() == [0, 2]
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert chain.clients[0].take_with_paths() == [
        ("x", ["ID:a", "ID:b"]),
        ("y", ["ID:a", "ID:b"]),
    ]
    assert chain.depths() == [0, 0]


def test_nothing_goes_back_unless_it_is_asked_for() -> None:
    chain = Chain(2, NetworkBridgeFilterPolicy())
    chain.moves(0, 1, "x")
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert chain.clients[0].take() == []
    assert chain.depths() == [0, 1]


def test_it_may_go_to_and_fro() -> None:
    chain = Chain(2)
    chain.moves(0, 1, "x")
    for target in (0, 1, 0, 1):
        taker = chain.clients[target].consume("queue://Q")
        chain.pump()
        assert chain.depths() == [int(at == target) for at in range(2)]
        chain.clients[target].close(taker)
        chain.pump()
    chain.clients[1].connection.outbox.clear()
    chain.clients[1].consume("queue://Q")
    assert chain.clients[1].take() == ["x"]


def test_moves_to_and_fro_do_not_use_up_how_far_it_may_go() -> None:
    chain = Chain(3, settings=BridgeSettings(duplex=True, message_ttl=2, consumer_ttl=2))
    chain.moves(1, 2, "x")
    for target in (1, 2):
        taker = chain.clients[target].consume("queue://Q")
        chain.pump()
        chain.clients[target].close(taker)
        chain.pump()
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert chain.clients[0].take() == ["x"]


def test_a_consumer_here_keeps_it_here() -> None:
    chain = Chain(2)
    chain.moves(0, 1, "x")
    here = chain.clients[1].consume("queue://Q", selector="color = 'red'")
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert chain.depths() == [0, 1]
    chain.clients[1].close(here)
    chain.pump()
    assert chain.clients[0].take() == ["x"]


def test_what_selectors_here_refuse_goes_back_where_they_count() -> None:
    chain = Chain(2, replace(REPLAYS, selector_aware=True))
    chain.moves(0, 1, "x")
    chain.clients[1].consume("queue://Q", selector="color = 'red'")
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert chain.clients[0].take() == ["x"]


def test_what_nobody_wants_goes_nowhere() -> None:
    chain = Chain(2, replace(REPLAYS, selector_aware=True))
    chain.moves(0, 1, "x")
    for client in chain.clients:
        client.consume("queue://Q", selector="color = 'red'")
    chain.pump()
    assert chain.depths() == [0, 1]


def test_it_stays_for_as_long_as_it_is_to() -> None:
    chain = Chain(2, replace(REPLAYS, replay_delay=5_000))
    chain.moves(0, 1, "x")
    chain.clients[0].consume("queue://Q")
    chain.pump()
    chain.later(4_900)
    assert chain.depths() == [0, 1]
    chain.later(200)
    assert chain.clients[0].take() == ["x"]


def test_a_clock_that_is_set_back_delays_nobody_for_long() -> None:
    chain = Chain(2, replace(REPLAYS, replay_delay=5_000))
    chain.moves(0, 1, "x")
    for node in chain.nodes:
        node.now = NOW - 3_600_000
    chain.clients[0].consume("queue://Q")
    chain.pump()
    for node in chain.nodes:
        node.broker.tick(node.now)
    assert chain.depths() == [0, 1]


def test_it_goes_back_the_whole_way() -> None:
    chain = Chain(4)
    chain.moves(0, 3, "x")
    assert chain.depths() == [0, 0, 0, 1]
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert chain.clients[0].take_with_paths() == [
        ("x", ["ID:a", "ID:b", "ID:c", "ID:d", "ID:c", "ID:b"])
    ]


@pytest.mark.parametrize("target", range(1, 5))
def test_a_ring_brings_it_back(target: int) -> None:
    chain = Chain(5, ring=True)
    chain.moves(0, target, "x")
    assert sum(chain.depths()) == 1
    chain.clients[0].consume("queue://Q")
    chain.pump()
    ((text, path),) = chain.clients[0].take_with_paths()
    assert (text, max(map(path.count, path))) == ("x", 1)
    assert chain.depths() == [0] * 5


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_nothing_goes_in_circles_for_a_list_that_nobody_consumes(count: int, ring: bool) -> None:
    static = replace(FAR, statically_included=(Included(queue("Q")),))
    chain = Chain(count, settings=static, ring=ring and count > 2)
    chain.clients[0].send("queue://Q", "x")
    chain.pump()
    assert sum(chain.depths()) == 1
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert chain.clients[0].take() == ["x"]


def test_a_limit_lets_so_many_pass_at_a_time() -> None:
    chain = Chain(2, NetworkBridgeFilterPolicy(rate_limit=3, rate_duration=1_000))
    chain.clients[1].consume("queue://Q")
    chain.pump()
    for number in range(8):
        chain.clients[0].send("queue://Q", str(number))
    chain.pump()
    taken = [chain.clients[1].take()]
    for _ in range(3):
        chain.later(1_000)
        taken.append(chain.clients[1].take())
    assert taken == [["0", "1", "2"], ["3", "4", "5"], ["6", "7"], []]


def test_a_limit_is_none_for_consumers_here() -> None:
    chain = Chain(2, NetworkBridgeFilterPolicy(rate_limit=1))
    taker: Client = chain.clients[0]
    taker.consume("queue://Q")
    for number in range(5):
        taker.send("queue://Q", str(number))
    assert taker.take() == ["0", "1", "2", "3", "4"]


def test_a_policy_is_taken_over_at_once() -> None:
    chain = Chain(2, NetworkBridgeFilterPolicy())
    chain.moves(0, 1, "x")
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert chain.depths() == [0, 1]
    adopt_policies(chain.nodes[1].broker, policies(REPLAYS))
    chain.pump()
    assert chain.clients[0].take() == ["x"]


def test_it_is_told_why_a_message_is_stranded() -> None:
    chain = Chain(2, NetworkBridgeFilterPolicy())
    chain.moves(0, 1, "x")
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert reasons(chain.nodes[1]) == ["stranded"]
    adopt_policies(chain.nodes[1].broker, policies(replace(REPLAYS, replay_delay=60_000)))
    assert reasons(chain.nodes[1]) == ["stranded"]


def test_stranded_messages_are_counted() -> None:
    chain = Chain(2, NetworkBridgeFilterPolicy())
    chain.moves(0, 1, "x", "y")
    chain.clients[0].consume("queue://Q")
    chain.pump()
    bridge = chain.nodes[1].accepted[-1]
    assert bridge.demand is not None and bridge.forwarder is not None
    (demand,) = bridge.demand.demands
    assert (demand.stranded(), demand.waiting()) == (2, 2)
    adopt_policies(chain.nodes[1].broker, policies(REPLAYS))
    chain.pump()
    assert (demand.stranded(), demand.waiting()) == (0, 0)
    assert bridge.forwarder.replayed == 2


def test_it_is_told_why_a_message_goes_no_further() -> None:
    chain = Chain(3, settings=replace(FAR, message_ttl=1))
    chain.moves(0, 1, "x")
    chain.clients[2].consume("queue://Q")
    chain.pump()
    assert reasons(chain.nodes[1]) == ["network-ttl"]


def test_it_is_told_that_a_limit_is_reached() -> None:
    chain = Chain(2, NetworkBridgeFilterPolicy(rate_limit=1))
    chain.clients[1].consume("queue://Q")
    chain.pump()
    for text in "xy":
        chain.clients[0].send("queue://Q", text)
    chain.pump()
    assert reasons(chain.nodes[0]) == ["rate-limit"]


def reasons(node: Node) -> list[str]:
    found = node.broker.registry.find(queue("Q"))
    assert isinstance(found, Queue)
    return [reason.code for reason in why_queue(found)]


def test_groups_go_back_together() -> None:
    chain = Chain(2)
    taker = chain.clients[1].consume("queue://Q")
    chain.pump()
    for number in range(6):
        chain.clients[0].send("queue://Q", str(number), group_id=f"g{number % 2}")
    chain.pump()
    chain.clients[1].close(taker)
    chain.pump()
    chain.clients[0].consume("queue://Q")
    chain.pump()
    assert sorted(chain.clients[0].take()) == [str(number) for number in range(6)]


def test_a_topic_sends_nothing_back() -> None:
    chain = Chain(2)
    for client in chain.clients:
        client.consume("topic://T")
    chain.pump()
    chain.clients[0].send("topic://T", "x")
    chain.pump()
    assert [client.take() for client in chain.clients] == [["x"], ["x"]]
