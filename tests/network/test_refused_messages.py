"""Messages that a broker refuses whenever they come: they end there, and the bridge goes on."""

from typing import Any

import pytest
from linked_brokers import SETTINGS, Link, Node

from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.settings import (
    BrokerSettings,
    MemoryUsage,
    SchedulerSettings,
    SystemUsage,
)
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.message.rewrite import decoded, properties_of
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.store.base import Receipt, Store, StoreFullError
from lockkeeper.store.memory import MemoryStore

LIMIT = 1 << 20
RULE = CompositeDestination(
    "Q", forward_to=(ForwardTo(queue="A"), ForwardTo(queue="B")), forward_only=False
)
CIRCLE = (
    CompositeDestination("LOOP", forward_to=(ForwardTo(queue="BACK"),)),
    CompositeDestination("BACK", forward_to=(ForwardTo(queue="LOOP"),)),
)
FAR = BrokerSettings(
    system_usage=SystemUsage(MemoryUsage(LIMIT)),
    scheduler=SchedulerSettings(enabled=True),
    composite_destinations=(RULE, *CIRCLE),
)
TOO_LARGE: dict[str, Any] = {"text": "x" * (LIMIT // 2)}
BAD_SCHEDULE: dict[str, Any] = {
    "text": "x",
    "marshalled_properties": encode_map({"AMQ_SCHEDULED_CRON": "whenever"}),
}
IN_A_CIRCLE: dict[str, Any] = {"text": "x", "to": "queue://LOOP"}


def asking(reply_to: str = "queue://ANSWERS", **properties: Value) -> dict[str, Any]:
    """Return a message that asks for something of the scheduler, AMQ_SCHEDULER_ACTION=..."""
    return {
        "text": "x",
        "to": "topic://ActiveMQ.Scheduler.Management",
        "reply_to": parse_destination(reply_to),
        "marshalled_properties": encode_map(properties),
    }


REFUSED = {
    "copies": (TOO_LARGE, "3 copies of "),
    "schedule": (BAD_SCHEDULE, "AMQ_SCHEDULED_CRON: "),
    "circle": (IN_A_CIRCLE, "forwarding goes round in a circle: "),
    "unknown request": (asking(AMQ_SCHEDULER_ACTION="NONE"), "AMQ_SCHEDULER_ACTION: "),
    "request that is answered nowhere": (
        asking("queue://ActiveMQ.Scheduler.Jobs", AMQ_SCHEDULER_ACTION="BROWSE"),
        "queue://ActiveMQ.Scheduler.Jobs is the broker's own: ",
    ),
    "defect": (
        {**asking(), "marshalled_properties": b"\x00\x00\x00\x05\x00"},
        "the broker could not carry that out: MalformedMessageError: ",
    ),
}


class Pair:
    """Two linked brokers, of which the far one takes less."""

    def __init__(self, store: Store | None = None) -> None:
        self.a, self.b = Node("a", settings=SETTINGS), Node("b", store, settings=FAR)
        self.near, self.far = self.a.client(), self.b.client()
        self.far.consume("queue://Q")
        self.far.consume("queue://LOOP")
        self.far.consume("topic://ActiveMQ.Scheduler.Management", subscription_name="s")
        self.link = Link(self.a, self.b, BridgeSettings())
        self.link.pump()

    def again(self) -> None:
        """Lose the connection and make another."""
        self.link.cut()
        self.link = Link(self.a, self.b, BridgeSettings())
        self.link.pump()

    def depths(self) -> tuple[int, int]:
        """Return how many messages are left here, and how many dead letters are there."""
        return left(self.a, "queue://Q"), depth(self.b, "queue://ActiveMQ.DLQ")


def depth(node: Node, name: str) -> int:
    region = node.broker.registry.find(parse_destination(name))
    return 0 if region is None else region.depth()


def left(node: Node, name: str) -> int:
    """Return how many messages are at a queue, also those that a bridge has forwarded."""
    found = node.broker.registry.find_queue(parse_destination(name))
    return 0 if found is None else found.depth() + found.in_flight()


def cause_in(node: Node) -> Value:
    """Return what the only dead letter says of why it is there."""
    found = node.broker.registry.find_queue(parse_destination("queue://ActiveMQ.DLQ"))
    assert found is not None
    (dead,) = found.waiting()
    return properties_of(decoded(dead.loaded))["dlqDeliveryFailureCause"]


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_is_a_dead_letter_there_and_all_else_goes_on(kind: str) -> None:
    fields, cause = REFUSED[kind]
    pair = Pair()
    pair.near.send(**{"to": "queue://Q", **fields})
    pair.near.send("queue://Q", "next")
    pair.link.pump()
    assert pair.depths() == (0, 1)
    assert str(cause_in(pair.b)).startswith(cause)
    assert pair.far.take() == ["next"]
    assert pair.link.bridge.is_open
    assert pair.link.bridge.failure == ""


@pytest.mark.parametrize("kind", REFUSED)
def test_it_is_one_dead_letter_when_its_confirmation_is_lost(kind: str) -> None:
    fields, _ = REFUSED[kind]
    pair = Pair()
    pair.near.send(**{"to": "queue://Q", **fields})
    pair.link.pump(holds_back=1)
    assert pair.depths()[1] == 1
    pair.again()
    assert pair.depths() == (0, 1)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_persistent_ends(kind: str) -> None:
    fields, _ = REFUSED[kind]
    pair = Pair()
    pair.near.send(**{"to": "queue://Q", "persistent": False, **fields})
    pair.near.send("queue://Q", "next", persistent=False)
    pair.link.pump()
    assert pair.depths() == (0, 0)
    assert pair.far.take() == ["next"]
    assert pair.link.bridge.is_open


class Small(MemoryStore):
    """A store that is full when a test says so."""

    is_full = False

    def check_full(self) -> None:
        if self.is_full:
            raise StoreFullError("no room")


def test_what_is_too_large_does_not_wait_to_be_taken() -> None:
    pair = Pair()
    memory = pair.b.broker.memory
    memory.used += 100 << 20
    pair.near.send("queue://Q", **TOO_LARGE)
    pair.link.pump()
    # Its dead letter does.
    assert waiting(pair.b) == [1]
    assert pair.depths()[1] == 0
    memory.used -= 100 << 20
    pair.link.pump()
    assert pair.depths() == (0, 1)
    assert pair.b.broker.flow.blocked() == []


def test_dead_letters_of_what_is_refused_do_not_pass_a_full_store() -> None:
    store = Small()
    pair = Pair(store)
    store.is_full = True
    for _ in range(3):
        pair.near.send("queue://Q", **BAD_SCHEDULE)
    pair.link.pump()
    assert pair.depths() == (3, 0)
    assert waiting(pair.b) == [3]
    # What waits for room goes with its bridge, and comes again.
    pair.again()
    assert pair.depths() == (3, 0)
    assert waiting(pair.b) == [3]
    store.is_full = False
    pair.link.pump()
    assert pair.depths() == (0, 3)
    assert pair.link.bridge.failure == ""


def test_what_becomes_too_large_while_it_waits_is_a_dead_letter_there() -> None:
    pair = Pair()
    pair.far.consume("topic://VirtualTopic.T")
    collect(pair.b, "A")
    pair.link.pump()
    memory = pair.b.broker.memory
    memory.used += 100 << 20
    pair.near.send("topic://VirtualTopic.T", "x" * 400_000)
    pair.link.pump()
    assert waiting(pair.b) == [1]
    # Two copies would do, three are too many.
    collect(pair.b, "B")
    memory.used -= 100 << 20
    pair.link.pump()
    assert pair.depths() == (0, 1)
    assert str(cause_in(pair.b)).startswith("3 copies of ")
    assert pair.link.bridge.failure == ""
    pair.near.send("topic://VirtualTopic.T", "next")
    pair.link.pump()
    assert pair.far.take() == ["next"]


def test_what_fails_after_it_waited_for_room_is_a_dead_letter_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Small()
    pair = Pair(store)
    pair.far.consume("queue://OTHER")
    pair.link.pump()
    store.is_full = True
    for text in ("x", "next"):
        pair.near.send("queue://OTHER", text)
    pair.link.pump()
    assert waiting(pair.b) == [2]
    accept = Queue.accept

    def fail_once(queue: Queue, message: Message, receipt: Receipt | None) -> None:
        if queue.destination.name == "OTHER":
            monkeypatch.setattr(Queue, "accept", accept)
            raise KeyError("lost")
        accept(queue, message, receipt)

    monkeypatch.setattr(Queue, "accept", fail_once)
    store.is_full = False
    pair.link.pump()
    assert pair.link.bridge.failure == ""
    assert pair.depths() == (0, 1)
    assert str(cause_in(pair.b)) == "the broker could not carry that out: KeyError: 'lost'"
    assert pair.far.take() == ["next"]


def collect(node: Node, name: str) -> None:
    """Have a queue collect what is sent to the virtual topic."""
    node.broker.declare(parse_destination(f"queue://Consumer.{name}.VirtualTopic.T"))


def waiting(node: Node) -> list[int]:
    """Return how many messages wait for room, in each line."""
    return [line.sends for line in node.broker.flow.blocked()]


def test_a_job_that_comes_again_is_no_refused_one_at_the_limit() -> None:
    scheduler = SchedulerSettings(enabled=True, max_scheduled_messages=2)
    near, far = Node("a"), Node("b", settings=BrokerSettings(scheduler=scheduler))
    far.client().consume("queue://Q")
    link, sender = Link(near, far), near.client()
    later = encode_map({"AMQ_SCHEDULED_DELAY": 3_600_000})
    for _ in range(2):
        sender.send("queue://Q", "job", marshalled_properties=later)
    link.pump(holds_back=1)
    link.cut()
    link = Link(near, far)
    link.pump()
    assert link.bridge.failure == ""
    assert depth(far, "queue://ActiveMQ.Scheduler.Jobs") == 2
    inbound = far.accepted[-1].inbound
    assert inbound is not None
    assert (inbound.taken, inbound.duplicates) == (2, 2)


def test_a_request_that_is_refused_while_it_is_carried_out_is_a_dead_letter_there() -> None:
    pair = Pair()
    later = encode_map({"AMQ_SCHEDULED_DELAY": 3_600_000})
    pair.far.send("queue://OTHER", "job", marshalled_properties=later)
    pair.near.send(**asking("queue://LOOP", AMQ_SCHEDULER_ACTION="BROWSE"))
    pair.near.send("queue://Q", "next")
    pair.link.pump()
    assert pair.depths() == (0, 1)
    assert str(cause_in(pair.b)).startswith("forwarding goes round in a circle: ")
    assert pair.far.take() == ["next"]
    assert pair.link.bridge.failure == ""


def test_a_job_may_have_the_longest_time_to_live() -> None:
    """Java adds what is longer than any time to the time it has, which may be before 1970."""
    near, far = Node("a"), Node("b", settings=FAR)
    reader = far.client()
    reader.consume("queue://Q")
    link = Link(near, far)
    later = encode_map({"AMQ_SCHEDULED_DELAY": 1_000})
    times = {"expiration": (1 << 63) - 1, "timestamp": -(1 << 40)}
    near.client().send("queue://Q", "job", **times, marshalled_properties=later)
    link.pump()
    assert link.bridge.failure == ""
    far.later(1_000)
    assert reader.take() == ["job"]


def test_messages_of_one_id_for_several_queues_are_as_many_dead_letters() -> None:
    """ActiveMQ's copies have the id of the message that they are made of."""
    pair = Pair()
    pair.far.consume("queue://OTHER")
    pair.link.pump()
    same = MessageId(ProducerId("ID:java", 1, 1), 7)
    for name in ("queue://Q", "queue://OTHER"):
        pair.near.send(name, **BAD_SCHEDULE, message_id=same)
    pair.link.pump()
    assert pair.depths() == (0, 2)
