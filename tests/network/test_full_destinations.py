"""What a broker has no room for holds up nothing else that the same bridge brings."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from linked_brokers import Client, Link, Node

from lockkeeper.broker.connections import STALLED_BYTES_MAX, Connection, NetworkPeer
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.requests.turns import ASKED_BYTES_MAX
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SchedulerSettings, SystemUsage
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.primitives import encode_map
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.store.kahadb import KahaDBStore

LIMIT = 1_000
IN_MEMORY = FlowPolicy(spool_non_persistent=False)
SMALL = PolicyMap(
    [PolicyEntry("FULL", None, DestinationPolicy(memory_limit=LIMIT, flow=IN_MEMORY))]
)
SETTINGS = BrokerSettings(
    scheduler=SchedulerSettings(enabled=True), system_usage=SystemUsage(MemoryUsage(1 << 28))
)
MANAGEMENT = "topic://ActiveMQ.Scheduler.Management"
MUCH = STALLED_BYTES_MAX // 5


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Node]:
    """Return a broker with temporary files, whose queue FULL has no room."""
    node = Node("b", KahaDBStore(tmp_path), SMALL, SETTINGS)
    fill(node)
    yield node
    node.store.close()


def fill(node: Node) -> None:
    """Leave no room in the queue FULL."""
    node.client().send("queue://FULL", "x" * LIMIT, persistent=False)


def far_end(node: Node) -> Connection:
    """Return the bridge's connection as the broker that was dialled has it."""
    return node.accepted[-1].connection


def blocked(node: Node) -> list[int]:
    """Return how many messages wait for room, in each line."""
    return [line.sends for line in node.broker.flow.blocked()]


def send_much(near: Node) -> list[str]:
    """Send more to FULL than may wait in memory, then a message to Q; returns what FULL gets."""
    client = near.client()
    bodies = [f"{number}{'y' * MUCH}" for number in range(8)]
    for body in bodies:
        client.send("queue://FULL", body, persistent=False)
    client.send("queue://Q", "next")
    return ["x" * LIMIT, *bodies]


@pytest.mark.parametrize("is_duplex", [False, True])
def test_what_waits_for_a_full_queue_holds_up_no_other(far: Node, is_duplex: bool) -> None:
    near, reader = Node("a"), far.client()
    reader.consume("queue://Q")
    demand = far.client("demand").consume("queue://FULL", selector="FALSE")
    link = Link(near, far, BridgeSettings(duplex=is_duplex))
    link.pump()
    sent = send_much(near)
    link.pump()
    assert reader.take() == ["next"]
    assert (blocked(far), far_end(far).stalled) == ([8], False)
    assert far_end(far).stalled_bytes <= STALLED_BYTES_MAX
    assert demand.credit() > 0
    late = far.client()
    late.consume("queue://FULL")
    found = []
    while texts := late.take():
        found += texts
        link.pump()
    assert (found, far_end(far).stalled_bytes, blocked(far)) == (sent, 0, [])


def test_without_files_a_bridge_waits_that_only_sends() -> None:
    near, far = Node("a"), Node("b", None, SMALL, SETTINGS)
    fill(far)
    reader, late = far.client(), far.client()
    reader.consume("queue://Q")
    far.client().consume("queue://FULL", selector="FALSE")
    link = Link(near, far)
    link.pump()
    sent = send_much(near)
    link.pump()
    assert (far_end(far).stalled, link.bridge.failure) == (True, "")
    assert (blocked(far), reader.take()) == ([6], [])
    late.consume("queue://FULL")
    found = []
    while texts := late.take():
        found += texts
        link.pump()
    assert (found, far_end(far).stalled, link.bridge.failure) == (sent, False, "")
    assert reader.take() == ["next"]


def test_so_many_of_a_bridge_wait_in_files_and_no_more(far: Node) -> None:
    client = far.client()
    client.connection.network = NetworkPeer("ID:a", "a")
    client.send("queue://FULL", "y" * (STALLED_BYTES_MAX - LIMIT), persistent=False)
    for _ in range(10_000):
        client.send("queue://FULL", "z" * LIMIT, persistent=False)
    assert (blocked(far), client.connection.stalled) == ([10_001], True)


def ask(link: Link, count: int, size: int = 0) -> None:
    """Have jobs browsed over a bridge; the answers go to a queue without room."""
    asker = link.near.client()
    for _ in range(count):
        asker.send(
            MANAGEMENT,
            "?" * size,
            persistent=False,
            reply_to=parse_destination("queue://FULL"),
            marshalled_properties=encode_map({"AMQ_SCHEDULER_ACTION": "BROWSE"}),
        )


@pytest.fixture
def asked(far: Node) -> Link:
    """Return a link over which Q and the scheduler's requests go; the scheduler has jobs."""
    far.client("demand").consume(MANAGEMENT, subscription_name="s")
    later = encode_map({"AMQ_SCHEDULED_DELAY": 3_600_000})
    for _ in range(2):
        far.client().send("queue://L", "job", marshalled_properties=later, persistent=False)
    return Link(Node("a"), far)


@pytest.fixture
def reader(far: Node, asked: Link) -> Client:
    """Return a consumer of Q, beside one request whose answers wait for room."""
    reader = far.client()
    reader.consume("queue://Q")
    asked.pump()
    ask(asked, 1)
    asked.pump()
    return reader


def test_answers_that_wait_for_room_hold_up_nothing_of_the_bridge(
    far: Node, asked: Link, reader: Client
) -> None:
    assert blocked(far) == [1]
    asked.near.client().send("queue://Q", "next")
    asked.pump()
    assert (reader.take(), far_end(far).stalled) == (["next"], False)


def test_a_bridge_is_not_read_before_it_asks_too_much(
    far: Node, asked: Link, reader: Client
) -> None:
    size = 100_000
    for _ in range(2 * ASKED_BYTES_MAX // size):
        ask(asked, 1, size)
        asked.pump()
    assert (far_end(far).stalled, asked.bridge.failure) == (True, "")
    late = far.client()
    late.consume("queue://FULL")
    while late.take():
        asked.pump()
    asked.near.client().send("queue://Q", "next")
    asked.pump()
    assert (far_end(far).stalled, asked.bridge.failure) == (False, "")
    assert reader.take() == ["next"]
