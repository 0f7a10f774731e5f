"""What every protocol keeps to, whatever it says: bytes in, bytes out, nothing lost in between."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from typing import get_args

import pytest
from echo_session import EchoSession
from running_engine import Running

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.registry import PROTOCOLS
from lockkeeper.protocols.rocketmq.codec import BINARY, Command, encode
from lockkeeper.protocols.rocketmq.codes import Request
from lockkeeper.protocols.session import Session
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.memory import MemoryStore
from lockkeeper_api.broker import Listener

NOW = 1_700_000_000_000
NAME = "ID:contract-1"


def openwire_talk() -> bytes:
    """Return what a client says that sends and consumes three messages, and takes its leave."""
    session, producer = openwire.SessionId(NAME, 1), ProducerId(NAME, 1, 1)
    consumer = openwire.ConsumerId(NAME, 1, 1)
    commands = [
        offer(ListenerSettings()),
        openwire.ConnectionInfo(
            command_id=1, response_required=True, connection_id=openwire.ConnectionId(NAME)
        ),
        openwire.SessionInfo(session_id=session),
        openwire.ProducerInfo(producer_id=producer, destination=queue("Q")),
        openwire.ConsumerInfo(consumer_id=consumer, destination=queue("Q"), prefetch_size=10),
        *(
            openwire.ActiveMQBytesMessage(
                command_id=10 + number,
                response_required=True,
                producer_id=producer,
                destination=queue("Q"),
                message_id=MessageId(producer, number),
                persistent=True,
                content=bytes(number * 100),
            )
            for number in range(1, 4)
        ),
        openwire.ShutdownInfo(),
    ]
    return b"".join(framed(openwire.encode(each)) for each in commands)


def rocketmq_talk() -> bytes:
    """Return what a client says that sends three messages, reads them, and takes its leave."""
    told = {
        "clientID": NAME,
        "producerDataSet": [{"groupName": "P"}],
        "consumerDataSet": [
            {"groupName": "G", "subscriptionDataSet": [{"topic": "T", "subString": "*"}]}
        ],
    }
    sent = {"producerGroup": "P", "topic": "T", "queueId": "0"}
    place = {"consumerGroup": "G", "topic": "T", "queueId": "0"}
    pulled = {**place, "queueOffset": "0", "sysFlag": "2", "suspendTimeoutMillis": "10000"}
    left = {"clientID": NAME, "producerGroup": "P", "consumerGroup": "G"}
    commands = [
        Command(Request.HEART_BEAT, 1, body=json.dumps(told).encode()),
        Command(Request.GET_ROUTEINFO_BY_TOPIC, 2, fields={"topic": "TBW102"}, encoding=BINARY),
        *(
            Command(Request.SEND_MESSAGE, 10 + number, fields=sent, body=bytes(number * 100))
            for number in range(1, 4)
        ),
        Command(Request.PULL_MESSAGE, 20, fields=pulled),
        Command(Request.UPDATE_CONSUMER_OFFSET, 21, fields={**place, "commitOffset": "3"}),
        Command(Request.UNREGISTER_CLIENT, 22, fields=left),
    ]
    return b"".join(map(encode, commands))


TALKS: dict[str, Callable[[], bytes]] = {
    "openwire": openwire_talk,
    "rocketmq": rocketmq_talk,
    "echo": lambda: b"anna\none\ntwo\n" + b"x" * 1000 + b"\nlast\n",
}
"""What a client of each protocol may say, from its first byte to its last."""


@pytest.fixture(params=[*PROTOCOLS, "echo"])
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a protocol: those of the product, and one that is only here."""
    monkeypatch.setitem(PROTOCOLS, "echo", EchoSession)
    return str(request.param)


class Talk:
    """A broker and one session; `said` is what the session has sent."""

    def __init__(self, name: str) -> None:
        self.broker = Broker(MemoryStore(), "b", "ID:b", PolicyMap(), BrokerSettings(), NOW)
        self.broker.recover()
        self.session: Session = PROTOCOLS[name](self.broker, ListenerSettings(), "tcp://10.0.0.1:1")
        self.session.start()
        self.said = b""
        self.turn()

    def turn(self) -> None:
        """Do what the event loop does after it read."""
        for _ in range(3):
            self.broker.tick(NOW)
            self.broker.settle(self.broker.store.flush())
            self.said += b"".join(bytes(piece) for piece in self.session.data_to_send())

    def end(self) -> None:
        """Lose the connection."""
        self.session.connection_lost()
        self.turn()


def heard(name: str, data: bytes, pieces: Iterator[int] | None = None, most: int = 1 << 20) -> Talk:
    """Return a session that was told *data*, in *pieces* of so many bytes."""
    talk, at = Talk(name), 0
    while at < len(data):
        size = len(data) - at if pieces is None else next(pieces)
        talk.session.receive_data(data[at : at + size], most)
        at += size
        while talk.session.unread:
            talk.session.read_on(most)
        if pieces is None:
            talk.turn()
    talk.turn()
    return talk


def contents(talk: Talk) -> dict[str, tuple[int, int]]:
    """Return what the broker has counted, by destination; streams keep theirs on the disk."""
    return {
        str(region.destination): (region.statistics.enqueued, region.depth())
        for region in talk.broker.registry
        if not region.destination.name.startswith("ActiveMQ.Advisory")
    } | {
        f"stream://{stream.name}": (sum(each.maximum for each in stream.partitions), 0)
        for stream in talk.broker.streams
    }


def test_every_protocol_has_something_to_say(name: str) -> None:
    assert set(TALKS) == set(PROTOCOLS)
    talk = heard(name, TALKS[name]())
    assert talk.said
    assert sum(enqueued for enqueued, _ in contents(talk).values()) >= 3


def test_a_broker_resource_may_ask_for_every_protocol() -> None:
    assert set(get_args(Listener.model_fields["protocol"].annotation)) == set(PROTOCOLS)


def test_frames_may_be_cut_at_every_byte(name: str) -> None:
    data = TALKS[name]()
    whole = contents(heard(name, data))
    for at in range(1, len(data)):
        cut = heard(name, data, iter((at, len(data) - at)))
        assert contents(cut) == whole, f"cut at byte {at}"
        assert cut.session.partial == 0


def test_bytes_may_come_one_by_one(name: str) -> None:
    data = TALKS[name]()
    single = heard(name, data, iter([1] * len(data)))
    assert contents(single) == contents(heard(name, data))


@pytest.mark.parametrize("most", [0, 1, 100])
def test_what_is_unread_is_carried_out_later(name: str, most: int) -> None:
    data = TALKS[name]()
    assert contents(heard(name, data, most=most)) == contents(heard(name, data))


@pytest.mark.parametrize("seed", range(50))
def test_a_broken_conversation_ends_it_and_nothing_else(name: str, seed: int) -> None:
    chosen = random.Random(seed)
    data = bytearray(TALKS[name]())
    for _ in range(chosen.randrange(1, 8)):
        data[chosen.randrange(len(data))] = chosen.randrange(256)
    talk = heard(name, bytes(data))
    talk.end()
    assert talk.broker.connections == {}
    assert talk.session.closing
    assert talk.broker.containment.records == {}


def test_a_lost_connection_gives_everything_back(name: str) -> None:
    data = TALKS[name]()
    for at in range(0, len(data), 7):
        talk = heard(name, data[:at]) if at else Talk(name)
        talk.end()
        assert talk.broker.connections == {}
        memory, waiting = talk.broker.memory, contents(talk)
        assert memory.partial == 0
        assert (memory.used > 0) == any(depth for _, depth in waiting.values())


def test_a_protocol_is_a_folder_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, "echo", EchoSession)
    listener = Listener(name="echo", port=0).model_copy(update={"protocol": "echo"})
    lines = [b"%d\n" % number for number in range(1000)]

    async def talk() -> list[bytes]:
        async with Running(listener) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(b"anna\n" + b"".join(lines))
            async with asyncio.timeout(30):
                heard = [await reader.readline() for _ in lines]
            writer.close()
            return heard

    assert asyncio.run(talk()) == lines
