"""Messages that a broker does not take when they come first: a bridge brings them again."""

from typing import Any

import pytest
from linked_brokers import Link, Node

from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.network.settings import BridgeSettings

SOON = 5_000
LIMIT = 1_000
SMALL = PolicyMap([PolicyEntry("Q", None, DestinationPolicy(memory_limit=LIMIT))])
OF_ALL = DeadLetterPolicy(process_non_persistent=True)
KEPT = PolicyMap([PolicyEntry("Q", None, DestinationPolicy(dead_letters=OF_ALL))])
BAD: dict[str, Value] = {"AMQ_SCHEDULED_CRON": "whenever"}


class Pair:
    """Two linked brokers; the far one delivers one message later at a time."""

    def __init__(self, policies: PolicyMap | None = None) -> None:
        scheduler = SchedulerSettings(enabled=True, max_scheduled_messages=1)
        self.a = Node("a")
        self.b = Node("b", policies=policies, settings=BrokerSettings(scheduler=scheduler))
        self.near, self.far = self.a.client(), self.b.client()
        self.far.consume("queue://Q")
        self.links = [Link(self.a, self.b)]
        self.links[-1].pump()

    def again(self, connector: str = "NC") -> None:
        """Make another connection, of the same connector in place of the one that was lost."""
        self.links.append(Link(self.a, self.b, BridgeSettings(name=connector)))
        self.links[-1].pump()

    def lose_at_near_end(self) -> None:
        """Lose a connection, of which the far end does not hear yet."""
        self.links[-1].bridge.connection_lost()
        self.a.turn()

    def known(self) -> list[int]:
        """Return how many messages the far end knew, for each connection."""
        found = [bridge.inbound for bridge in self.b.accepted]
        return [each.duplicates for each in found if each is not None]

    def figures(self) -> list[tuple[int, int]]:
        """Return how many messages each connection brought to the far end, and of these again."""
        found = [bridge.inbound for bridge in self.b.accepted]
        return [(each.taken, each.duplicates) for each in found if each is not None]


def kept(node: Node, name: str = "queue://Q") -> int:
    """Return how many messages are at a queue, also those that a bridge has forwarded."""
    found = node.broker.registry.find_queue(parse_destination(name))
    return 0 if found is None else found.depth() + found.in_flight()


def later() -> dict[str, Any]:
    return {"marshalled_properties": encode_map({"AMQ_SCHEDULED_DELAY": SOON})}


def test_what_waited_for_room_and_is_not_persistent_is_taken_when_it_comes_again() -> None:
    pair = Pair(SMALL)
    pair.far.send("queue://Q", "x" * LIMIT, persistent=False)
    pair.near.send("queue://Q", "waits", persistent=False)
    pair.links[-1].pump()
    assert [line.sends for line in pair.b.broker.flow.blocked()] == [1]
    pair.links[-1].cut()
    assert kept(pair.a) == 1
    assert pair.far.take() == ["x" * LIMIT]
    pair.again()
    assert pair.far.take() == ["waits"]
    assert (kept(pair.a), pair.known()) == (0, [0, 0])


@pytest.mark.parametrize("is_persistent", [True, False])
def test_what_was_refused_for_now_is_taken_when_it_comes_again(is_persistent: bool) -> None:
    pair = Pair()
    pair.far.send("queue://Q", "own", **later())
    pair.near.send("queue://Q", "one more", persistent=is_persistent, **later())
    pair.links[-1].pump()
    assert "maxScheduledMessages" in pair.links[-1].bridge.failure
    pair.links[-1].cut()
    assert kept(pair.a) == 1
    pair.b.later(SOON)
    assert pair.far.take() == ["own"]
    pair.again()
    pair.b.later(SOON)
    assert pair.far.take() == ["one more"]
    assert (kept(pair.a), pair.figures()) == (0, [(0, 0), (1, 0)])


def wait_at_far_end(pair: Pair) -> None:
    """Send a message that is not persistent, for which the far end has no room."""
    pair.far.send("queue://Q", "x" * LIMIT, persistent=False)
    pair.near.send("queue://Q", "waits", persistent=False)
    pair.links[-1].pump()
    assert [line.sends for line in pair.b.broker.flow.blocked()] == [1]
    assert pair.figures()[-1] == (0, 0)


def take_all(pair: Pair) -> list[str]:
    """Return what came to the far end's queue; the bridge goes on meanwhile."""
    found = pair.far.take()
    pair.links[-1].pump()
    return found + pair.far.take()


def test_what_waited_and_was_dropped_counts_once_it_came_again() -> None:
    pair = Pair(SMALL)
    wait_at_far_end(pair)
    # The same connector comes again, so the far end drops the first connection.
    pair.lose_at_near_end()
    pair.again()
    assert take_all(pair) == ["x" * LIMIT, "waits"]
    assert pair.figures() == [(0, 0), (1, 0)]


def test_what_waits_twice_counts_as_come_again() -> None:
    pair = Pair(SMALL)
    wait_at_far_end(pair)
    pair.lose_at_near_end()
    pair.again("other")
    assert [line.sends for line in pair.b.broker.flow.blocked()] == [2]
    assert take_all(pair) == ["x" * LIMIT, "waits"]
    assert pair.figures() == [(1, 0), (1, 1)]


@pytest.mark.parametrize("is_persistent", [True, False])
def test_what_was_taken_is_known_when_its_confirmation_was_lost(is_persistent: bool) -> None:
    pair = Pair()
    pair.near.send("queue://Q", "once", persistent=is_persistent)
    pair.links[-1].pump(holds_back=1)
    pair.links[-1].cut()
    pair.again()
    assert pair.far.take() == ["once"]
    assert (kept(pair.a), pair.known()) == (0, [0, 1])


def test_a_dead_letter_of_what_is_not_persistent_is_one_when_its_confirmation_was_lost() -> None:
    pair = Pair(KEPT)
    pair.near.send("queue://Q", "x", persistent=False, marshalled_properties=encode_map(BAD))
    pair.links[-1].pump(holds_back=1)
    pair.links[-1].cut()
    pair.again()
    assert (kept(pair.b, "queue://ActiveMQ.DLQ"), pair.known()) == (1, [0, 1])
