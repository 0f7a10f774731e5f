"""Scheduled and refused messages of bridges, which are stored elsewhere than they go to.

Each is stored as often as it would be taken: whatever its id, its way, and what a restart forgets.
"""

from pathlib import Path
from typing import Any

import pytest
from linked_brokers import Link, Node
from test_replays import REPLAYS, policies

from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import BrokerId
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.store.kahadb import KahaDBStore

SETTINGS = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
WIDE = BridgeSettings(message_ttl=4, consumer_ttl=4)
SAME = MessageId(ProducerId("ID:client", 1, 1), 7)
SOON, HOUR = 5_000, 3_600_000
PLACES = ("queue://OTHER", "queue://Q")
JOBS, DEAD = "queue://ActiveMQ.Scheduler.Jobs", "queue://ActiveMQ.DLQ"
LATER: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": HOUR}
BAD: dict[str, Value] = {"AMQ_SCHEDULED_CRON": "whenever"}


class Far:
    """A broker that heeds schedules and takes everything that other brokers have."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open()

    def _open(self) -> None:
        self.node = Node("b", KahaDBStore(self.directory), settings=SETTINGS)
        self.taker = self.node.client("c")
        self.taker.consume("topic://T", subscription_name="sub")
        for place in PLACES:
            self.taker.consume(place)

    def restart(self) -> None:
        """Begin anew with what was written."""
        self.node.store.close()
        self._open()

    def later(self, milliseconds: int) -> list[str]:
        """Let time pass; return the texts that have come when all of it is written."""
        self.node.later(milliseconds)
        self.restart()
        return sorted(self.taker.take())

    def depth(self, place: str) -> int:
        """Return how many messages are stored there."""
        found = self.node.broker.registry.find_queue(parse_destination(place))
        return 0 if found is None else found.depth() + found.in_flight()

    def hear(
        self,
        name: str,
        messages: dict[str, dict[str, Value]],
        path: tuple[str, ...] = (),
        replays: PolicyMap | None = None,
        message_id: MessageId = SAME,
    ) -> int:
        """Have another broker bring messages, by their places; return how many were known."""
        node = Node(name, policies=replays)
        link = Link(node, self.node, WIDE)
        link.pump()
        client = node.client()
        for place, properties in messages.items():
            fields: dict[str, Any] = {"broker_path": tuple(map(BrokerId, path))} if path else {}
            fields["marshalled_properties"] = encode_map(properties)
            client.send(place, place, message_id=message_id, **fields)
        link.pump()
        inbound = self.node.accepted[-1].inbound
        assert inbound is not None
        assert (link.bridge.failure, inbound.taken) == ("", len(messages))
        link.cut()
        return inbound.duplicates


@pytest.mark.parametrize("is_restarted", [False, True])
def test_jobs_of_one_id_for_several_queues_come_once_each(
    tmp_path: Path, is_restarted: bool
) -> None:
    """ActiveMQ's copies have the id of the message that they are made of."""
    far = Far(tmp_path)
    later: dict[str, dict[str, Value]] = {place: {"AMQ_SCHEDULED_DELAY": SOON} for place in PLACES}
    assert far.hear("a", later) == 0
    if is_restarted:
        far.restart()
    assert far.hear("a", later) == 2
    assert far.depth(JOBS) == 2
    assert far.later(SOON) == [*PLACES]
    assert far.depth(JOBS) == 0
    far.node.store.close()


def test_the_end_of_a_job_is_not_that_of_another_one_of_its_id(tmp_path: Path) -> None:
    far, (other, place) = Far(tmp_path), PLACES
    far.hear("a", {place: {"AMQ_SCHEDULED_DELAY": SOON}, other: LATER})
    assert far.later(SOON) == [place]
    assert far.depth(JOBS) == 1
    assert far.later(HOUR) == [other]
    assert far.depth(JOBS) == 0
    far.node.store.close()


def test_a_job_is_delivered_with_the_id_of_its_message(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.hear("a", {"queue://Q": {"AMQ_SCHEDULED_DELAY": SOON}})
    far.node.later(SOON)
    far.restart()
    queue = far.node.broker.registry.find_queue(parse_destination("queue://Q"))
    assert queue is not None
    (consumer,) = queue.consumers
    (reference,) = consumer.dispatched.values()
    assert reference.loaded.identifier == str(SAME).encode()
    far.node.store.close()


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize(("properties", "stored"), [(LATER, JOBS), (BAD, DEAD)])
@pytest.mark.parametrize(("place", "count"), [("topic://T", 1), ("queue://Q", 2)])
def test_what_comes_on_two_ways_is_one_of_a_topic_and_two_of_a_queue(
    tmp_path: Path,
    place: str,
    count: int,
    properties: dict[str, Value],
    stored: str,
    is_restarted: bool,
) -> None:
    """One of a queue that has left more brokers by now is back on its way."""
    far = Far(tmp_path)
    assert far.hear("a", {place: properties}) == 0
    if is_restarted:
        far.restart()
    assert far.hear("c", {place: properties}, path=("ID:a",)) == 2 - count
    assert far.depth(stored) == count
    far.restart()
    assert far.depth(stored) == count
    far.node.store.close()


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize(("properties", "stored"), [({}, "queue://Q"), (LATER, JOBS), (BAD, DEAD)])
def test_what_has_been_here_before_and_comes_twice_is_known(
    tmp_path: Path, properties: dict[str, Value], stored: str, is_restarted: bool
) -> None:
    """It has another id here than before, which tells its way."""
    far, replays = Far(tmp_path), policies(REPLAYS)
    assert far.hear("a", {"queue://Q": properties}, ("ID:b",), replays) == 0
    if is_restarted:
        far.restart()
    assert far.hear("a", {"queue://Q": properties}, ("ID:b",), replays) == 1
    assert far.depth(stored) == 1
    far.node.store.close()


@pytest.mark.parametrize("message_id", [SAME, MessageId(ProducerId("ID:b:network-0", 1, 1), 7)])
def test_copies_of_what_has_been_here_before_are_as_many_messages(
    tmp_path: Path, message_id: MessageId
) -> None:
    """They have one id elsewhere, and that may be one that was given here."""
    far, replays = Far(tmp_path), policies(REPLAYS)
    copies: dict[str, dict[str, Value]] = {place: {} for place in PLACES}
    assert far.hear("a", copies, ("ID:b",), replays, message_id) == 0
    # One comes again: it has left more brokers by now.
    assert far.hear("a", {"queue://Q": {}}, ("ID:b", "ID:a", "ID:b"), replays, message_id) == 0
    far.restart()
    assert far.hear("a", copies, ("ID:b",), replays, message_id) == 2
    assert [far.depth(place) for place in PLACES] == [1, 2]
    far.node.store.close()
