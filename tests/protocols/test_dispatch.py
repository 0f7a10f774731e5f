"""What a consumer is sent is what was stored, but for the time when it leaves the broker."""

from typing import Any

import pytest

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.settings import BrokerSettings, SchedulerSettings
from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ConnectionId, ConsumerId
from lockkeeper.message.primitives import Long, encode_map
from lockkeeper.message.stamps import arrival
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.memory import MemoryStore

NOW = 1_700_000_000_000
VERSIONS = range(1, 13)
# The first with the two times.
TIMED_VERSION_MIN = 3
KINDS = (
    openwire.ActiveMQMessage,
    openwire.ActiveMQBytesMessage,
    openwire.ActiveMQMapMessage,
    openwire.ActiveMQObjectMessage,
    openwire.ActiveMQStreamMessage,
    openwire.ActiveMQTextMessage,
    openwire.ActiveMQBlobMessage,
)


class Client:
    """One connection of a broker, speaking one version."""

    def __init__(self, broker: Broker, name: str, version: int = 12) -> None:
        self.broker, self.name = broker, name
        self.codec = openwire.codec_for(version, False)
        self.session = OpenWireSession(broker, ListenerSettings(), "tcp://10.0.0.1:1")
        self.session.receive_data(framed(openwire.encode(openwire.WireFormatInfo(version=version))))
        self.tell(openwire.ConnectionInfo(connection_id=ConnectionId(name), client_id=name))
        self.session.data_to_send()

    def tell(self, command: openwire.Structure) -> None:
        self.session.receive_data(framed(self.codec.encode(command)))

    def consume(self, destination: Destination, number: int = 1) -> ConsumerId:
        identifier = ConsumerId(self.name, 1, number)
        self.tell(
            openwire.ConsumerInfo(consumer_id=identifier, destination=destination, prefetch_size=10)
        )
        return identifier

    def send(
        self,
        destination: Destination,
        number: int,
        kind: type[openwire.Message] = openwire.ActiveMQTextMessage,
        **fields: Any,
    ) -> None:
        producer = ProducerId(self.name, 1, 1)
        told: dict[str, Any] = {"content": b"\0\0\0\4text", "persistent": True, **fields}
        message = kind(
            producer_id=producer,
            destination=destination,
            message_id=MessageId(producer, number),
            **told,
        )
        self.tell(message)

    def got(self) -> list[openwire.MessageDispatch]:
        """Return what was dispatched to the client; frames are as long as they say."""
        data, found = b"".join(self.session.data_to_send()), []
        while data:
            end = 4 + int.from_bytes(data[:4], "big")
            command, stop = self.codec.decode(data, 4, end)
            assert stop == end
            if isinstance(command, openwire.MessageDispatch):
                found.append(command)
            data = data[end:]
        return found


@pytest.fixture
def broker() -> Broker:
    broker = Broker(MemoryStore(), "b", "ID:b", PolicyMap(), BrokerSettings(), NOW)
    broker.recover()
    return broker


def tick(broker: Broker, now: int) -> None:
    broker.context.now = now
    broker.tick(now)


def times(dispatch: openwire.MessageDispatch) -> tuple[int, int]:
    assert dispatch.message is not None
    return dispatch.message.broker_in_time, dispatch.message.broker_out_time


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_says_when_it_came_and_when_it_left(broker: Broker, version: int) -> None:
    client = Client(broker, "c", version)
    client.send(queue("Q"), 1)
    tick(broker, NOW + 500)
    client.consume(queue("Q"))
    tick(broker, NOW + 700)
    (dispatch,) = client.got()
    expected = (NOW, NOW + 700) if version >= TIMED_VERSION_MIN else (0, 0)
    assert times(dispatch) == expected


def the_queue(broker: Broker) -> Queue:
    """Return the queue of the tests."""
    found = broker.registry.find_queue(queue("Q"))
    assert found is not None
    return found


def sent_at(body: bytes) -> int:
    """Return the time at which a message says that it left a broker."""
    message, _ = openwire.decode(body)
    assert isinstance(message, openwire.Message)
    return message.broker_out_time


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_the_time_differs_from_what_is_stored(
    broker: Broker, kind: type[openwire.Message]
) -> None:
    client = Client(broker, "c")
    fields: dict[str, Any] = {"group_id": "g", "user_id": "u"}
    if kind is openwire.ActiveMQBlobMessage:
        fields |= {"remote_blob_url": "http://x/y", "mime_type": "m", "deleted_by_broker": True}
    client.send(queue("Q"), 1, kind, **fields)
    tick(broker, NOW)
    (reference,) = the_queue(broker).ready
    before = reference.loaded.body
    client.consume(queue("Q"))
    tick(broker, NOW + 9)
    (dispatch,) = client.got()
    stored, _ = openwire.decode(before)
    assert isinstance(stored, kind)
    assert stored.broker_out_time == 0
    stored.broker_out_time = NOW + 9
    stored.group_first_for_consumer = True
    assert dispatch.message == stored


def test_a_message_delivered_again_leaves_again(broker: Broker) -> None:
    client = Client(broker, "c")
    client.send(queue("Q"), 1)
    client.consume(queue("Q"))
    tick(broker, NOW + 1)
    (first,) = client.got()
    consumer = ConsumerId("c", 1, 1)
    client.tell(openwire.RemoveInfo(object_id=consumer, last_delivered_sequence=-2))
    client.consume(queue("Q"), 2)
    tick(broker, NOW + 2)
    (second,) = client.got()
    assert [(times(each)[1], each.redelivery_counter) for each in (first, second)] == [
        (NOW + 1, 0),
        (NOW + 2, 1),
    ]


@pytest.mark.parametrize("version", [6, 12])
@pytest.mark.parametrize("counter", [-(1 << 31), -1, 0, 3, (1 << 31) - 1])
def test_a_scheduled_message_may_count_redeliveries_as_it_likes(counter: int, version: int) -> None:
    """A client writes that number, and what it writes must not end the consumers' connections."""
    settings = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
    store = MemoryStore()
    broker = Broker(store, "test", "ID:test-1", PolicyMap(), settings, NOW)
    broker.recover()
    client = Client(broker, "c", version)
    properties = encode_map({"AMQ_SCHEDULED_DELAY": Long(5)})
    client.send(queue("Q"), 1, redelivery_counter=counter, marshalled_properties=properties)
    for now in (NOW, NOW + 5, NOW + 10):
        broker.settle(store.flush())
        broker.tick(now)
    counted = []
    for number in (1, 2):
        client.consume(queue("Q"), number)
        tick(broker, NOW + 10)
        counted += [each.redelivery_counter for each in client.got()]
        consumer = ConsumerId("c", 1, number)
        client.tell(openwire.RemoveInfo(object_id=consumer, last_delivered_sequence=-2))
    assert counted == [min(max(0, counter), 1 << 30), min(max(0, counter), 1 << 30) + 1]


def test_consumers_of_one_topic_share_a_message_that_stays_as_it_is(broker: Broker) -> None:
    here, there = Client(broker, "h"), Client(broker, "t")
    here.consume(topic("T"))
    there.consume(topic("T"))
    for number in range(3):
        here.send(topic("T"), number)
    tick(broker, NOW + 1)
    (held,) = broker.connections["h"].consumers.values()
    bodies = [each.loaded.body for each in held.dispatched.values()]
    assert [times(each)[1] for each in here.got()] == [NOW + 1] * 3
    broker.context.now = NOW + 2
    assert [times(each)[1] for each in there.got()] == [NOW + 2] * 3
    assert [sent_at(body) for body in bodies] == [0] * 3


@pytest.mark.parametrize("size", [16_000, 17_000])
@pytest.mark.parametrize("destination", [queue("Q"), topic("T")])
def test_a_large_message_is_whole_and_not_copied_for_everybody(
    broker: Broker, size: int, destination: Destination
) -> None:
    sender, readers = Client(broker, "c"), [Client(broker, f"r{number}") for number in range(2)]
    for reader in readers:
        reader.consume(destination)
    for number in range(1, 5):
        sender.send(destination, number, openwire.ActiveMQBytesMessage, content=bytes(size))
        sender.send(destination, number + 10)
    tick(broker, NOW + 7)
    bodies: list[set[int]] = []
    for reader in readers:
        pieces = reader.session.data_to_send()
        views = [piece for piece in pieces if isinstance(piece, memoryview)]
        assert reader.session.is_bulky is bool(views)
        bodies.append({id(view.obj) for view in views})
        reader.session._out = pieces
        dispatches = reader.got()
        assert [times(each) for each in dispatches] == [(NOW, NOW + 7)] * len(dispatches)
        contents = [each.message.content for each in dispatches if each.message is not None]
        assert set(contents) <= {bytes(size), b"\0\0\0\4text"}
        assert len(contents) == (4 if destination.is_queue else 8)
    assert len(bodies[0] | bodies[1]) == (4 if size > 1 << 14 else 0)
    if destination.is_topic:
        assert bodies[0] == bodies[1]


def test_what_is_delivered_again_of_large_messages_says_so(broker: Broker) -> None:
    sender, first = Client(broker, "c"), Client(broker, "first")
    first.consume(queue("Q"))
    sender.send(queue("Q"), 1, content=bytes(100_000))
    tick(broker, NOW)
    first.session.connection_lost()
    second = Client(broker, "second")
    second.consume(queue("Q"))
    tick(broker, NOW + 1)
    (dispatch,) = second.got()
    assert dispatch.redelivery_counter == 1
    assert dispatch.message is not None
    assert dispatch.message.content == bytes(100_000)


def test_a_blob_message_tells_when_it_came(broker: Broker) -> None:
    client = Client(broker, "c")
    broker.tick(NOW)
    client.send(queue("Q"), 1, openwire.ActiveMQBlobMessage, remote_blob_url="http://x/y")
    tick(broker, NOW)
    region = the_queue(broker)
    (reference,) = region.ready
    assert arrival(reference.loaded.body) == NOW
    region.statistics.acknowledged([reference], NOW + 5)
    assert region.statistics.latency[3] == sum(region.statistics.latency) == 1
