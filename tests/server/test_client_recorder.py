"""The flight recorder tells who came and went, within limits, and delays nothing."""

import json
from itertools import repeat
from typing import Any

import pytest

from lockkeeper.broker.bridging import begin_bridge
from lockkeeper.broker.connections import Connection, NetworkPeer
from lockkeeper.broker.core import Broker
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.destination import Destination, parse_destination, queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import AckType, ActiveMQTextMessage
from lockkeeper.message.rewrite import encoded
from lockkeeper.server.client_recorder import (
    CUT,
    EVENTS_AT_ONCE_MAX,
    EVENTS_PER_SECOND_MAX,
    TEXT_CHARACTERS_MAX,
)
from lockkeeper.server.recorder import EVENTS_PER_WRITE_MAX, PREFIX, FlightRecorder, cause_of_start
from lockkeeper.server.settings import configuration_hash
from lockkeeper.store.memory import MemoryStore
from lockkeeper_api import Broker as BrokerResource
from lockkeeper_api.broker import Recorder as Settings

START = 1_700_000_000_000
ORDERS = queue("ORDERS")
INTERVAL = 10_000


class Journal(MemoryStore):
    """A store that keeps the lines it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []

    def trace(self, text: str) -> None:
        self.lines.append(json.loads(text.removeprefix(PREFIX)))


class Scene:
    """A broker with its recorder; time goes as told."""

    def __init__(self, **settings: Any) -> None:
        self.store = Journal()
        self.broker = Broker(self.store, "b", "ID:b", PolicyMap([]), BrokerSettings(), START)
        self.broker.recover()
        self.recorder = FlightRecorder(self.broker, self.store, Settings(**settings))
        self.sent = 0

    def client(self, number: int = 1, client_id: str = "ann") -> Connection:
        connection = Connection(self.broker.dirty, f"tcp://10.0.0.{number}:5000")
        connection.user_name = "clerk"
        self.broker.connect(connection, f"ID:c-{number}:1", client_id)
        return connection

    def consumer(
        self, connection: Connection, source: Destination = ORDERS, **options: Any
    ) -> Consumer:
        wish = ConsumeRequest(f"{connection.identifier}:1:1", source, 2, **options)
        return self.broker.subscriptions.subscribe(connection, wish, None)

    def send(self, connection: Connection, count: int) -> None:
        producer = ProducerId(connection.identifier, 1, 1)
        for _ in range(count):
            self.sent += 1
            made = ActiveMQTextMessage(
                producer_id=producer,
                destination=ORDERS,
                message_id=MessageId(producer, self.sent),
                content=b"\0\0\0\2hi",
            )
            message = encoded(made, self.broker.context.next_sequence())
            self.broker.send(connection, message, Reply(connection, 0))
        self.broker.tick(self.broker.now)

    def later(self, milliseconds: int) -> None:
        self.broker.tick(self.broker.now + milliseconds)
        self.recorder.write_due_statistics(self.broker.now)

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the events written so far, after one more write."""
        self.recorder.before_write(self.broker.now)
        told = [line for line in self.store.lines if line["t"] == "event"]
        return [line for line in told if not names or line["event"] in names]


def test_a_connection_tells_who_it_is_and_when_it_goes() -> None:
    scene = Scene()
    connection = scene.client()
    scene.later(7)
    scene.broker.disconnect(connection)
    common = {"t": "event", "broker": "b", "connection": "ID:c-1:1", "clientId": "ann"}
    common["user"] = "clerk"
    address = "tcp://10.0.0.1:5000"
    assert scene.events() == [
        {**common, "at": START, "event": "connectionOpened", "address": address},
        {**common, "at": START + 7, "event": "connectionClosed"},
    ]


def test_consumers_and_producers_tell_what_they_are_for() -> None:
    scene = Scene()
    connection = scene.client()
    consumer = scene.consumer(connection, selector="colour = 'red'")
    scene.broker.add_producer(connection, "ID:c-1:1:1:1", ORDERS)
    scene.broker.add_producer(connection, "ID:c-1:1:1:2", None)
    scene.send(connection, 1)
    scene.broker.subscriptions.unsubscribe(consumer, 0)
    scene.broker.disconnect(connection)
    opened, closed = scene.events("consumerOpened", "consumerClosed")
    assert opened["selector"] == "colour = 'red'"
    assert (opened["consumer"], opened["destination"]) == ("ID:c-1:1:1:1", "queue://ORDERS")
    assert (opened["prefetch"], opened["connection"]) == (2, "ID:c-1:1")
    assert closed["consumer"] == opened["consumer"]
    producers = scene.events("producerOpened", "producerClosed")
    assert [line.get("destination") for line in producers] == ["queue://ORDERS", None] * 2
    assert [line["producer"][-1] for line in producers] == ["1", "2", "1", "2"]


WAYS = [(True, False, "out"), (False, True, "in"), (True, True, "both")]


@pytest.mark.parametrize(("goes", "comes", "direction"), WAYS)
def test_a_bridge_tells_whom_it_leads_to_and_what_went(
    goes: bool, comes: bool, direction: str
) -> None:
    scene = Scene()
    connection = scene.client()
    peer = NetworkPeer("ID:far", "far", connector="to-far", forwards=comes)
    connection.network = peer
    begin_bridge(scene.broker, connection, peer, is_forwarded_to=goes)
    (started,) = scene.events("bridgeStarted")
    assert (started["bridge"], started["peer"], started["peerId"]) == ("to-far", "far", "ID:far")
    assert (started["brokerId"], started["direction"]) == ("ID:b", direction)
    assert started["connection"] == "ID:c-1:1"
    for figures in ((3, 2), (3, 2), (5, 2)):
        peer.figures = repeat(figures).__next__
        scene.later(INTERVAL)
    counted = scene.events("bridgeCounted")
    assert [(line["forwarded"], line["received"]) for line in counted] == [(3, 2), (5, 2)]
    peer.figures = lambda: (6, 4)
    scene.broker.disconnect(connection)
    (closed,) = scene.events("connectionClosed")
    assert (closed["forwarded"], closed["received"]) == (6, 4)


def test_who_only_listens_to_advisories_is_no_event() -> None:
    scene = Scene()
    scene.consumer(scene.client(), parse_destination("topic://ActiveMQ.Advisory.Connection"))
    assert scene.events("consumerOpened") == []


def test_long_texts_of_peers_are_cut() -> None:
    scene = Scene()
    scene.consumer(scene.client(client_id="x" * 5000), selector=f"a = '{'b' * 5000}'")
    (opened,) = scene.events("consumerOpened")
    for name in ("clientId", "selector"):
        assert len(opened[name]) == TEXT_CHARACTERS_MAX
        assert opened[name].endswith(CUT)


def test_a_full_window_that_does_not_move_is_slow_once() -> None:
    scene = Scene()
    client = scene.client()
    consumer = scene.consumer(client)
    scene.send(client, 3)
    scene.later(INTERVAL)
    assert scene.events("slowConsumer") == []
    scene.later(INTERVAL)
    scene.later(INTERVAL)
    (slow,) = scene.events("slowConsumer")
    assert (slow["held"], slow["at"]) == (2, START + 2 * INTERVAL)
    (first, _) = consumer.dispatched
    scene.broker.acknowledge(consumer, AckType.INDIVIDUAL, first, 1, None)
    scene.send(client, 1)
    for _ in range(3):
        scene.later(INTERVAL)
    assert len(scene.events("slowConsumer")) == 2


def test_a_flood_of_events_is_counted_not_written() -> None:
    scene = Scene()
    connection = scene.client()
    for number in range(EVENTS_AT_ONCE_MAX + 499):
        scene.broker.add_producer(connection, f"p{number}", None)
    for _ in range(EVENTS_AT_ONCE_MAX // EVENTS_PER_WRITE_MAX):
        scene.recorder.before_write(START)
    written = scene.events()
    assert len(written) == EVENTS_AT_ONCE_MAX + 1
    assert (written[-1]["event"], written[-1]["count"]) == ("leftOut", 500)
    scene.later(1000)
    for number in range(5000, 5000 + EVENTS_PER_SECOND_MAX + 1):
        scene.broker.add_producer(connection, f"p{number}", None)
    assert len(scene.events("producerOpened")) == EVENTS_AT_ONCE_MAX - 1 + EVENTS_PER_SECOND_MAX
    assert scene.events("leftOut")[-1]["count"] == 1


def test_events_wait_for_something_to_be_written() -> None:
    scene = Scene()
    scene.client()
    scene.later(INTERVAL)
    assert [line for line in scene.store.lines if line["t"] == "event"] == []
    scene.recorder.event("stop", START, replica="b-0")
    told = [line["event"] for line in scene.store.lines if line["t"] == "event"]
    assert told == ["connectionOpened", "stop"]


def test_one_write_takes_only_some_of_many_events() -> None:
    scene = Scene()
    connection = scene.client()
    for number in range(EVENTS_PER_WRITE_MAX):
        scene.broker.add_producer(connection, f"p{number}", None)
    assert len(scene.events()) == EVENTS_PER_WRITE_MAX
    assert len(scene.events()) == EVENTS_PER_WRITE_MAX + 1


def test_switched_off_nothing_is_noted() -> None:
    scene = Scene(enabled=False)
    scene.broker.disconnect(scene.client())
    scene.later(INTERVAL)
    scene.recorder.event("stop", START)
    assert scene.events() == scene.store.lines == []


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        ('lk1 {"t":"event","event":"stop","replica":"b-0"}', "b-0 stopped cleanly"),
        ('lk1 {"t":"clock","at":5}', "the master before did not stop cleanly"),
        ("LOADED Sat Nov 21", None),
        ("", None),
        ("lk1 {", None),
        ("lk1 []", None),
    ],
)
def test_the_last_line_of_the_master_before_is_why_another_one_starts(
    trace: str, cause: str | None
) -> None:
    assert cause_of_start(trace) == cause


@pytest.mark.parametrize("change", [{"journal": {"archive": True}}, {"advisorySupport": False}])
def test_the_hash_changes_with_the_configuration_and_only_then(change: dict[str, Any]) -> None:
    def made(spec: dict[str, Any]) -> str:
        broker = BrokerResource.model_validate(
            {
                "apiVersion": "lockkeeper.dev/v1alpha1",
                "kind": "Broker",
                "metadata": {"name": "b"},
                "spec": spec,
            }
        )
        return configuration_hash(broker, [])

    assert len(made({})) == 16
    assert made({}) == made({})
    assert made(change) != made({})
