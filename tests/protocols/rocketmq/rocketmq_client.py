"""A client of sessions without sockets: what it asks, and what it is told."""

import json
from collections.abc import Mapping
from typing import Any

from lockkeeper.broker.access.authenticator import Authenticator
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.broker.streams.settings import StreamsSettings
from lockkeeper.protocols.rocketmq.codec import IS_ONE_WAY, JSON, Command, decode, encode
from lockkeeper.protocols.rocketmq.frames import FrameBuffer
from lockkeeper.protocols.rocketmq.messages import Stored, decode_stored
from lockkeeper.protocols.rocketmq.session import RocketMQSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.memory import MemoryStore

START = 1_700_000_000_000
SETTINGS = ListenerSettings(address="shop:9876", bound_to="10.0.0.9:9876")
STREAMS = StreamsSettings(
    delay_levels=(1_000, 2_000, 3_000),
    transaction_timeout=1_000,
    check_interval=1_000,
    checks_max=2,
)


class House:
    """A broker, its clients, and the time."""

    def __init__(
        self, streams: StreamsSettings = STREAMS, authenticator: Authenticator | None = None
    ) -> None:
        settings = BrokerSettings(streams=streams)
        self.now = START
        self.broker = Broker(
            MemoryStore(), "shop", "ID:shop", PolicyMap(), settings, START, authenticator
        )
        self.broker.recover()
        self.clients: list[Client] = []

    def client(self, encoding: int = JSON) -> "Client":
        """Return a new client."""
        client = Client(self, len(self.clients) + 1, encoding)
        self.clients.append(client)
        return client

    def turn(self, later: int = 0) -> None:
        """Do what the event loop does, *later* ms after the last time."""
        self.now += later
        for _ in range(4):
            self.broker.tick(self.now, self.now)
            self.broker.settle(self.broker.store.flush())
        for client in self.clients:
            client.listen()


class Client:
    """One connection; `told` has what the broker has said and nobody has asked for yet."""

    def __init__(self, house: House, number: int, encoding: int) -> None:
        self.house = house
        self.name = f"client-{number}"
        self.encoding = encoding
        self.session = RocketMQSession(house.broker, SETTINGS, f"tcp://10.0.0.1:{number}")
        self.session.start()
        self.told: list[Command] = []
        self._buffer = FrameBuffer(1 << 24)
        self._opaque = 0

    def say(
        self,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        flag: int = 0,
    ) -> int:
        """Send a request; returns its number."""
        self._opaque += 1
        texts = {name: str(value) for name, value in (fields or {}).items()}
        command = Command(code, self._opaque, flag, texts, body, encoding=self.encoding)
        self.session.receive_data(encode(command))
        return self._opaque

    def ask(
        self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b""
    ) -> Command:
        """Send a request, and return its answer, which must be there at once."""
        number = self.say(code, fields, body)
        self.house.turn()
        answer = self.answer_to(number)
        assert answer is not None, f"no answer to {code}"
        return answer

    def say_one_way(self, code: int, fields: Mapping[str, object], body: bytes = b"") -> None:
        """Send a request that nobody waits for an answer of."""
        self.say(code, fields, body, IS_ONE_WAY)
        self.house.turn()

    def answer(self, question: Command, answer: Command) -> None:
        """Answer a question of the broker."""
        answer.opaque, answer.flag = question.opaque, 1
        self.session.receive_data(encode(answer))
        self.house.turn()

    def answer_to(self, number: int) -> Command | None:
        """Return the answer to a request, if it has come."""
        for each in self.told:
            if each.is_answer and each.opaque == number:
                self.told.remove(each)
                return each
        return None

    def asked(self, code: int) -> list[Command]:
        """Return what the broker has asked with a code, and forget it."""
        found = [each for each in self.told if not each.is_answer and each.code == code]
        self.told = [each for each in self.told if each not in found]
        return found

    def listen(self) -> None:
        """Take what the broker has to say."""
        self._buffer.feed(b"".join(bytes(piece) for piece in self.session.data_to_send()))
        while (frame := self._buffer.take_frame()) is not None:
            self.told.append(decode(frame))

    def beat(self, group: str, *topics: str, producers: tuple[str, ...] = ()) -> Command:
        """Send a heartbeat of a member of *group* that subscribes to *topics*."""
        subscriptions = [{"topic": topic, "subString": "*"} for topic in topics]
        consumers = [{"groupName": group, "subscriptionDataSet": subscriptions}] if topics else []
        told: dict[str, Any] = {
            "clientID": self.name,
            "consumerDataSet": consumers,
            "producerDataSet": [{"groupName": each} for each in producers],
        }
        return self.ask(34, body=json.dumps(told).encode())

    def send(self, topic: str, body: bytes, queue: int = 0, properties: str = "") -> Command:
        """Send a message."""
        fields = {"producerGroup": "P", "topic": topic, "queueId": queue, "properties": properties}
        return self.ask(10, fields, body)

    def pull(self, topic: str, offset: int = 0, **others: object) -> int:
        """Begin to pull from the first queue; returns the number of the request."""
        fields = {"consumerGroup": "G", "topic": topic, "queueId": 0, "queueOffset": offset,
                  "sysFlag": 4, "subscription": "*"}  # fmt: skip
        return self.say(11, {**fields, **others})


def messages(answer: Command) -> list[Stored]:
    """Return the messages that an answer brings."""
    found, rest = [], answer.body
    while rest:
        size = int.from_bytes(rest[:4], "big")
        found.append(decode_stored(rest[:size]))
        rest = rest[size:]
    return found
