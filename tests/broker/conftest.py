"""A broker core with a memory store, driven by hand: commands in, outputs out, time as we say."""

import select
from itertools import count
from typing import Any, NamedTuple, cast

import pytest

from lockkeeper.broker.core import Broker
from lockkeeper.broker.outputs import Delivery, EndOfMessages, Output, Reply
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.destination import Destination, parse_destination
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId, TransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import AckType, ActiveMQTextMessage
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.store.base import Receipt, Reference, Store
from lockkeeper.store.memory import MemoryStore

START = 1_700_000_000_000
NOWHERE = parse_destination("NOWHERE")
WRITE_SECONDS_MAX = 20


class Delivered(NamedTuple):
    """A message that was sent to a consumer."""

    consumer: Consumer | None
    message: Message
    redeliveries: int


class Client:
    """One connection of the core, with everything it was told."""

    def __init__(self, bench: "Bench", name: str, client_id: str) -> None:
        self.bench = bench
        self.connection = bench.broker.open_connection(f"tcp://{name}")
        bench.broker.connect(self.connection, name, client_id or name)
        self._numbers = count(1)

    def send(self, to: str, text: str, wait: bool = True, **fields: Any) -> Message:
        """Send a text message; tick unless told otherwise."""
        message = self.bench.message(self, parse_destination(to), text, **fields)
        self.bench.broker.send(self.connection, message, Reply(self.connection, 0))
        if wait:
            self.bench.tick()
        return message

    def consume(self, source: str, prefetch: int = 1000, **options: Any) -> Consumer:
        """Open a consumer."""
        name = f"consumer-{next(self._numbers)}"
        request = ConsumeRequest(name, parse_destination(source), prefetch, tag=name, **options)
        consumer = self.bench.broker.subscriptions.subscribe(self.connection, request, None)
        self.bench.tick()
        return consumer

    def begin(self, number: int = 1) -> TransactionId:
        """Open a local transaction."""
        identifier = LocalTransactionId(self.connection.identifier, number)
        self.bench.broker.transactions.begin(self.connection, identifier)
        return identifier

    def outputs(self) -> list[Output]:
        """Return what the client was told since the last call."""
        told, self.connection.outbox = self.connection.outbox, []
        return told

    def deliveries(self, consumer: Consumer | None = None) -> list[Delivered]:
        """Return the messages it was sent since the last call, of one consumer if named."""
        told = [cast("Delivery", each) for each in self.outputs() if type(each) is tuple]
        return [
            Delivered(self._consumer(tag), reference.loaded, reference.redeliveries)
            for tag, references in told
            if consumer is None or consumer.tag == tag
            for reference in references
        ]

    def _consumer(self, tag: object) -> Consumer | None:
        """Return the consumer that has a tag, unless it is closed."""
        consumers = self.connection.consumers.values()
        return next((each for each in consumers if each.tag == tag), None)

    def texts(self, consumer: Consumer | None = None) -> list[str]:
        """Return the bodies of `deliveries`."""
        return [text_of(delivery.message) for delivery in self.deliveries(consumer)]

    def ends(self) -> int:
        """Return how many times it was told that nothing (more) is there."""
        return sum(isinstance(output, EndOfMessages) for output in self.outputs())

    def acknowledge(
        self, consumer: Consumer, message: Message, count: int = 1, kind: int = AckType.STANDARD
    ) -> None:
        """Acknowledge *count* messages up to and with *message*."""
        self.bench.broker.acknowledge(consumer, kind, message.sequence, count, None)
        self.bench.tick()

    def leave(self) -> None:
        """Break the connection."""
        self.bench.broker.disconnect(self.connection)
        self.bench.tick()


class Last:
    """A receipt that comes after all others."""

    def settle(self) -> None:
        """Do nothing."""


class Bench:
    """A broker, over a memory store if no other is given."""

    def __init__(
        self,
        store: Store | None = None,
        memory_limit: int = 1 << 26,
        settings: BrokerSettings | None = None,
        **policies: Any,
    ) -> None:
        self.store: Store = store or MemoryStore()
        self.now = self.steady = START
        self._policies = policies
        entries = [
            PolicyEntry(pattern.replace("_", "."), None, policy)
            for pattern, policy in policies.items()
        ]
        self.broker = Broker(
            self.store,
            "test",
            "ID:test-1",
            PolicyMap(entries),
            settings or BrokerSettings(system_usage=SystemUsage(MemoryUsage(memory_limit))),
            self.now,
        )
        self.broker.recover()
        self._names = count(1)
        self._sequences = count(1)

    def client(self, client_id: str = "") -> Client:
        """Connect a client."""
        return Client(self, f"ID:client-{next(self._names)}-1:1", client_id)

    def message(
        self,
        client: Client,
        destination: Destination,
        text: str,
        properties: dict[str, Value] | None = None,
        persistent: bool = True,
        **fields: Any,
    ) -> Message:
        """Make a message as a client of this name would."""
        producer = ProducerId(client.connection.identifier, 1, 1)
        body = text.encode()
        return encoded(
            ActiveMQTextMessage(
                producer_id=producer,
                destination=destination,
                message_id=MessageId(producer, next(self._sequences)),
                persistent=persistent,
                timestamp=fields.pop("timestamp", self.now),
                content=len(body).to_bytes(4, "big") + body,
                marshalled_properties=encode_map(properties) if properties else None,
                **fields,
            ),
            self.broker.context.next_sequence(),
        )

    def tick(self, later: int = 0) -> None:
        """Let *later* ms pass, dispatch, and make everything durable."""
        self.now += later
        self.steady += later
        self.broker.tick(self.now, self.steady)
        while self._is_behind():
            self.broker.tick(self.now, self.steady)
        while receipts := self._durable():
            self.broker.settle(receipts)
            self.broker.tick(self.now, self.steady)

    def _is_behind(self) -> bool:
        """Tell whether the core has left something to the next tick."""
        context = self.broker.context
        is_late = context.calendar.earliest < self.now or context.timers.earliest < self.steady
        return bool(context.postponed) or is_late

    def set_clock(self, by: int) -> None:
        """Set the clock that people see, by so many ms."""
        self.now += by

    def _durable(self) -> list[Receipt]:
        """Make everything durable; return what waited for that."""
        last = Last()
        self.store.remove(NOWHERE, Reference(None, 0), last)
        receipts = [*self.store.flush()]
        descriptor = self.store.fileno()
        while last not in receipts:
            assert descriptor is not None
            readable, _, _ = select.select([descriptor], [], [], WRITE_SECONDS_MAX)
            assert readable, "the store did not finish its write in time"
            receipts += self.store.completed()
        receipts.remove(last)
        return receipts

    def queue(self, name: str) -> Queue:
        """Return a queue that there is."""
        found = self.broker.registry.find_queue(parse_destination(name))
        assert found is not None
        return found

    def topic(self, name: str) -> Topic:
        """Return a topic that there is."""
        found = self.broker.registry.find_topic(parse_destination(f"topic://{name}"))
        assert found is not None
        return found

    def depth(self, name: str) -> int:
        """Return how many messages wait or are held at a destination."""
        region = self.broker.registry.find(parse_destination(name))
        if region is None:
            return 0
        held = getattr(region, "in_flight", lambda: 0)()
        return int(region.depth() + held)

    def restart(self) -> "Bench":
        """Return a new broker over the same store, as after a crash."""
        return Bench(self.store, settings=self.broker.settings, **self._policies)


def text_of(message: Message) -> str:
    """Return the text of a text message."""
    return (decoded(message).content or b"")[4:].decode()


@pytest.fixture
def bench() -> Bench:
    """Return a broker with default policies."""
    return Bench()


@pytest.fixture
def make_bench() -> type[Bench]:
    """Return what makes brokers with policies: keyword `A_B=policy` is for destination A.B."""
    return Bench


__all__ = ["Bench", "Client", "DestinationPolicy", "text_of"]
