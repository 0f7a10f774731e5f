"""More of the crowd: programs on the real client, which finds the next master, and vandals."""

import contextlib
import random
from types import ModuleType
from typing import Any

from simulation.pair import FIRST_PORT, SERVICE_PORT
from simulation.threads import Event, Thread

import lockkeeper.client as client
from lockkeeper.client.errors import (
    MessagingError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import encode
from lockkeeper.message.primitives import Value, encode_map

CALM, MOVED = "CALM", "MOVED"
VIRTUAL = "VirtualTopic.EVENTS"
COPIES = (f"Consumer.A.{VIRTUAL}", f"Consumer.B.{VIRTUAL}")
QUEUES = (CALM, MOVED, *COPIES)
URL = (
    f"failover:(tcp://127.0.0.1:{FIRST_PORT},tcp://127.0.0.1:{FIRST_PORT + 1})"
    "?initialReconnectDelay=50&maxReconnectDelay=1000"
)
VANDALISED = "VANDALISED"


def some_length(random: random.Random) -> int:
    """Return how long a body is: now and then more than is read at once."""
    return random.randint(1, 2000) if random.random() < 0.95 else random.randint(60_000, 250_000)


class Program(Thread):
    """A program with one connection, until told to stop."""

    def __init__(self, modules: dict[str, ModuleType], books: Any, name: str) -> None:
        super().__init__(name=f"{type(self).__name__}-{name}")
        self.modules = modules
        self.ledger_module = modules["ledger"]
        self.books = books
        self.random = random.Random(self.name)
        self.stopping = Event()

    def run(self) -> None:
        """Work; a refusal is no reason to stop, another program comes in its place."""
        try:
            with client.connect(URL) as self.connection:
                self.prepare()
                while not self.stopping.is_set():
                    self.step()
        except MessagingError as error:
            self.books.note_refusal(self.name, error)
        except Exception as error:
            self.books.problem(f"{self.name}: {type(error).__name__}: {error}")

    def prepare(self) -> None:
        raise NotImplementedError

    def step(self) -> None:
        raise NotImplementedError

    def next_entries(self, producer: Any, *places: str) -> list[Any]:
        """Return what the next message of *producer* will be in the books."""
        name = f"{producer.identifier}:{producer.core.sequence + 1}"
        return [self.ledger_module.Entry(place, name) for place in places]

    def received(self, place: str, message: Any) -> Any:
        """Note a delivery.

        What a program had fetched from a master that is gone may come again as if for the first
        time: neither the new one nor the client knows.
        """
        entry = self.ledger_module.Entry(place, str(message.message_id))
        self.books._seen.discard(entry)
        self.books.delivered(self.name, entry, message.delivery_count - 1)
        return entry


class CalmProducer(Program):
    """Sends one message after the other, each when the one before is answered."""

    places: tuple[str, ...] = (CALM,)
    destination: Any = queue(CALM)

    def prepare(self) -> None:
        self.producer = self.connection.session().producer(self.destination)

    def step(self) -> None:
        unit = self.begin()
        text = "x" * some_length(self.random)
        self.producer.send(text, self.properties(), time_to_live=self.time_to_live())
        self.books.done(unit)
        self.stopping.wait(self.random.random() / 20)

    def begin(self) -> Any:
        """Note the next message before it is sent."""
        adds = self.next_entries(self.producer, *self.places)
        return self.books.begin(self.ledger_module.Unit(adds=adds))

    def properties(self) -> dict[str, Value] | None:
        return None

    def time_to_live(self) -> float | None:
        return None


class VirtualPublisher(CalmProducer):
    """Sends to a virtual topic: each message has a copy in two queues."""

    places = COPIES
    destination = topic(VIRTUAL)


class CalmConsumer(Program):
    """Takes what comes and acknowledges as its mode says; nobody answers that."""

    place = CALM

    def prepare(self) -> None:
        mode = self.random.choice((client.Acknowledge.AUTO, client.Acknowledge.INDIVIDUAL))
        self.mode = mode
        session = self.connection.session(acknowledge=mode)
        self.consumer = session.consumer(self.place, prefetch=self.random.choice((1, 10, 1000)))

    def step(self) -> None:
        message = self.consumer.receive(0.2)
        if message is None:
            return
        # The acknowledgement may be under way already: that it was asked for comes first.
        entry = self.ledger_module.Entry(self.place, str(message.message_id))
        self.books.begin(self.ledger_module.Unit(removes=[entry]))
        self.received(self.place, message)
        if self.mode is client.Acknowledge.INDIVIDUAL:
            message.acknowledge()


class CopyConsumer(CalmConsumer):
    """Takes one of the copies that a virtual topic makes."""

    place = COPIES[0]


class Mover(Program):
    """Takes from one queue and sends to another, in one transaction."""

    def prepare(self) -> None:
        self.session = self.connection.session(transacted=True)
        self.consumer = self.session.consumer(CALM, prefetch=20)
        self.producer = self.session.producer(MOVED)

    def step(self) -> None:
        unit = self.books.begin(self.ledger_module.Unit(self.ledger_module.OPEN, is_atomic=True))
        for _ in range(self.random.randint(1, 4)):
            message = self.consumer.receive(0.1)
            if message is None:
                break
            entry = self.received(CALM, message)
            self.books.extend(unit, self.next_entries(self.producer, MOVED), [entry])
            # Nobody answers these one by one: more may be behind a large one when it is read.
            self.producer.send("m" * some_length(self.random))
        self.end(unit)

    def end(self, unit: Any) -> None:
        """Commit or roll back."""
        outcome = self.ledger_module.Outcome
        if not unit.adds or self.random.random() < 0.2:
            unit.outcome = outcome.DROPPED
            self.session.rollback()
            return
        unit.outcome = outcome.ASKED
        try:
            self.session.commit()
        except TransactionInDoubtError:
            return
        except TransactionRolledBackError:
            unit.outcome = outcome.DROPPED
            return
        self.books.done(unit)


class BulkSender(Mover):
    """Sends large messages in transactions: that these are to end comes right behind them."""

    def prepare(self) -> None:
        self.session = self.connection.session(transacted=True)
        self.producer = self.session.producer(MOVED)

    def step(self) -> None:
        unit = self.books.begin(self.ledger_module.Unit(self.ledger_module.OPEN, is_atomic=True))
        for _ in range(self.random.randint(1, 2)):
            self.books.extend(unit, self.next_entries(self.producer, MOVED))
            self.producer.send("b" * self.random.randint(70_000, 250_000))
        self.end(unit)
        self.stopping.wait(self.random.random())


class Vandal(Program):
    """Says what no client would say, and reads nothing."""

    def run(self) -> None:
        while not self.stopping.is_set():
            with contextlib.suppress(OSError, self.modules["wire"].RefusedError):
                self.step()
            self.stopping.wait(self.random.random() / 2)

    def step(self) -> None:
        wire = self.modules["wire"]
        if self.random.random() < 0.3:
            self.shout()
            return
        with wire.Wire(SERVICE_PORT) as connection:
            producer = connection.producer()
            connection.consumer(queue(VANDALISED), selector="colour = 'red' OR size > 3")
            for number in range(1, 6):
                connection._socket.sendall(self.damaged(wire, producer, number))
            connection.receive(0.2)

    def shout(self) -> None:
        """Send anything instead of a greeting."""
        socket = self.modules["wire"].socket.create_connection(("127.0.0.1", SERVICE_PORT), 5)
        size = self.random.choice((0, 12, 70_000, 2**31 - 1))
        data = self.random.randbytes(self.random.randint(0, 300))
        socket.sendall(size.to_bytes(4, "big") + data)
        self.stopping.wait(self.random.random())
        socket.close()

    def properties(self) -> bytes | None:
        """Return properties that the selector asks for, some of them damaged; or none."""
        colour = self.random.choice(("red", "green"))
        properties = bytearray(encode_map({"colour": colour, "size": self.random.randrange(7)}))
        for _ in range(self.random.choice((0, 0, 1, 4))):
            properties[self.random.randrange(len(properties))] = self.random.randrange(256)
        return bytes(properties) if self.random.random() < 0.8 else None

    def damaged(self, wire: ModuleType, producer: Any, number: int) -> bytes:
        """Return the frame of a message with some bytes changed behind its ids.

        Its properties may be damaged in a frame that is sound.
        """
        message = wire.bytes_message(producer, number, queue(VANDALISED), b"content" * 30)
        message.persistent = self.random.random() < 0.5
        message.marshalled_properties = self.properties()
        body = bytearray(encode(message))
        safe = body.index(VANDALISED.encode()) + 60
        for _ in range(self.random.choice((0, 1, 4, 30))):
            at = self.random.randrange(min(safe, len(body) - 1), len(body))
            body[at] = self.random.randrange(256)
        return len(body).to_bytes(4, "big") + bytes(body)
