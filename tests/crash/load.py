"""The load on a broker that is about to die: producers, consumers, transactions of all kinds."""

import random
import threading
import time
from collections.abc import Callable
from itertools import count

import wire
from ledger import ASKED, DEAD_LETTERS, DONE, DROPPED, OPEN, Entry, Ledger, Unit, XAUnit

from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, ProducerId, XATransactionId
from lockkeeper.message.openwire import (
    AckType,
    ExceptionResponse,
    MessageAck,
    MessageDispatch,
    Throwable,
    TransactionOperation,
)

WORK, TRANSACTED, FORWARDED, BRANCHES = "WORK", "TRANSACTED", "FORWARDED", "BRANCHES"
QUEUES = (WORK, TRANSACTED, FORWARDED, BRANCHES, DEAD_LETTERS)
TOPIC = "NEWS"
SUBSCRIBERS = ("reader-1", "reader-2")
SUBSCRIPTION = "all"
BACKLOG_MAX = 3000
CONTENT_BYTES_MAX = 3000
REFUSAL_SECONDS = 0.01
READY_SECONDS_MAX = 30
_BRANCHES = count(1)


def place_of(subscriber: str) -> str:
    """Return the place of the ledger that a durable subscription is."""
    return f"{TOPIC}/{subscriber}"


def content_of(message: str, size: int) -> bytes:
    """Return a content that tells whose it is and how long it must be."""
    text = f"{message} {size} ".encode()
    return (text * (size // len(text) + 1))[:size]


class Actor(threading.Thread):
    """One connection with its work, until told to stop or until the broker is gone."""

    def __init__(self, ledger: Ledger, port: int, seed: str) -> None:
        super().__init__(name=f"{type(self).__name__}-{seed}", daemon=True)
        self.ledger = ledger
        self.random = random.Random(self.name)
        self.stopping = threading.Event()
        self.ready = threading.Event()
        self._port = port
        self._waiting: dict[int, Callable[[], None]] = {}
        self._units: dict[int, Unit] = {}

    client_id: str | None = None

    def run(self) -> None:
        """Work; the end of the connection is the end of it."""
        try:
            with wire.Wire(self._port, self.client_id) as self.wire:
                self.prepare()
                self.ready.set()
                while not self.stopping.is_set():
                    self.step()
        except OSError:
            return
        except Exception as error:
            self.ledger.problem(f"{self.name}: {type(error).__name__}: {error}")

    def prepare(self) -> None:
        """Open what the work needs."""

    def step(self) -> None:
        """Do one piece of work."""
        raise NotImplementedError

    # Asking and being answered

    def ask_for(self, unit: Unit, command: object) -> None:
        """Send the command that decides on a unit; the answer is taken later."""
        self._units[self.wire.ask(command)] = unit  # type: ignore[arg-type]

    def take_answers(self, seconds: float) -> None:
        """Note what the broker has answered."""
        if self._units and not self.wire.answers:
            self.wire.receive(seconds)
        for number, answer in list(self.wire.answers.items()):
            unit = self._units.pop(number, None)
            if unit is None:
                continue
            del self.wire.answers[number]
            if isinstance(answer, ExceptionResponse):
                unit.outcome = DROPPED
                self.ledger.counts["refused"] += 1
                time.sleep(REFUSAL_SECONDS)
            else:
                self.ledger.done(unit)

    def pause_while_full(self) -> None:
        """Let consumers catch up when too much waits."""
        while self.ledger.open_entries > BACKLOG_MAX and not self.stopping.is_set():
            self.take_answers(0)
            self.stopping.wait(0.01)

    def content(self, producer_id: ProducerId, sequence: int) -> bytes:
        return content_of(f"{producer_id}:{sequence}", self.random.randrange(CONTENT_BYTES_MAX))

    def check(self, place: str, dispatch: MessageDispatch) -> Entry:
        """Note a delivery; returns what it is in the ledger."""
        message = dispatch.message
        assert message is not None
        entry = Entry(place, str(message.message_id))
        content = bytes(message.content or b"")
        if content != content_of(entry.message, len(content)):
            self.ledger.problem(f"{entry} has another content: {content[:60]!r}…")
        self.ledger.delivered(self.name, entry, dispatch.redelivery_counter)
        return entry


class Producer(Actor):
    """Sends persistent messages with a window of unanswered ones."""

    places: tuple[str, ...] = (WORK,)
    destination = queue(WORK)

    def prepare(self) -> None:
        self.producer_id = self.wire.producer()
        self.sequence = 0
        self.window = self.random.choice((1, 5, 50))

    def step(self) -> None:
        self.pause_while_full()
        self.sequence += 1
        name = f"{self.producer_id}:{self.sequence}"
        unit = self.ledger.begin(Unit(adds=[Entry(place, name) for place in self.places]))
        content = self.content(self.producer_id, self.sequence)
        message = wire.bytes_message(self.producer_id, self.sequence, self.destination, content)
        self.ask_for(unit, message)
        self.take_answers(0)
        while len(self._units) >= self.window and not self.stopping.is_set():
            self.take_answers(0.1)


class TopicProducer(Producer):
    """Sends to a topic with durable subscriptions."""

    places = tuple(map(place_of, SUBSCRIBERS))
    destination = topic(TOPIC)


class TransactedProducer(Actor):
    """Sends several messages to two queues in one transaction; rolls some back."""

    def prepare(self) -> None:
        self.producer_id = self.wire.producer()
        self.sequence = 0
        self.transactions = 0

    def step(self) -> None:
        self.pause_while_full()
        self.transactions += 1
        identifier = LocalTransactionId(self.wire.name, self.transactions)
        unit = self.ledger.begin(Unit(OPEN, is_atomic=True))
        self.wire.tell(self.wire.transaction(identifier, TransactionOperation.BEGIN))
        for _ in range(self.random.randint(1, 9)):
            self.sequence += 1
            place = self.random.choice((WORK, TRANSACTED))
            self.ledger.extend(unit, [Entry(place, f"{self.producer_id}:{self.sequence}")])
            content = self.content(self.producer_id, self.sequence)
            self.wire.tell(
                wire.bytes_message(
                    self.producer_id, self.sequence, queue(place), content, identifier
                )
            )
        self.end(unit, identifier)

    def end(self, unit: Unit, identifier: LocalTransactionId) -> None:
        """Commit, or roll back now and then."""
        if self.random.random() < 0.15:
            unit.outcome = DROPPED
            self.wire.request(self.wire.transaction(identifier, TransactionOperation.ROLLBACK))
            return
        unit.outcome = ASKED
        command = self.wire.transaction(identifier, TransactionOperation.COMMIT_ONE_PHASE)
        self.ask_for(unit, command)
        while self._units and not self.stopping.is_set():
            self.take_answers(0.1)


class IndividualConsumer(Actor):
    """Acknowledges one message at a time, in no order; refuses some for good."""

    held_max = 20

    def prepare(self) -> None:
        self.wire.consumer(queue(WORK), prefetch=self.random.choice((1, 30, 1000)))
        self.held: list[tuple[Entry, MessageDispatch]] = []

    def step(self) -> None:
        dispatch = self.wire.next_dispatch(0.02)
        self.take_answers(0)
        if dispatch is not None:
            self.held.append((self.check(WORK, dispatch), dispatch))
        if self.held and (dispatch is None or len(self.held) > self.held_max):
            self.end(*self.held.pop(self.random.randrange(len(self.held))))

    def end(self, entry: Entry, dispatch: MessageDispatch) -> None:
        """Acknowledge a message, or make it a dead letter."""
        if self.random.random() < 0.05:
            dead = Entry(DEAD_LETTERS, entry.message)
            unit = self.ledger.begin(Unit(adds=[dead], removes=[entry], is_move=True))
            ack = wire.acknowledgement(dispatch, AckType.POISON)
            ack.poison_cause = Throwable("java.lang.Throwable", "unwanted")
        else:
            unit = self.ledger.begin(Unit(removes=[entry]))
            ack = wire.acknowledgement(dispatch)
        self.ask_for(unit, ack)


class EagerConsumer(IndividualConsumer):
    """Acknowledges at once, often before the broker has begun to write the message."""

    held_max = 0


class Forwarder(TransactedProducer):
    """Takes messages from one queue and sends one for each to another, in one transaction."""

    def prepare(self) -> None:
        super().prepare()
        self.wire.consumer(queue(TRANSACTED), prefetch=100)

    def step(self) -> None:
        taken = [self.wire.next_dispatch(0.05) for _ in range(self.random.randint(1, 6))]
        work = [(self.check(TRANSACTED, each), each) for each in taken if each is not None]
        if not work:
            return
        is_done = False
        while not is_done and not self.stopping.is_set():
            is_done = self.forward(work)

    def forward(self, work: list[tuple[Entry, MessageDispatch]]) -> bool:
        """Do the work in a transaction; returns whether it was committed."""
        self.transactions += 1
        identifier = LocalTransactionId(self.wire.name, self.transactions)
        unit = self.ledger.begin(Unit(OPEN, is_atomic=True))
        self.wire.tell(self.wire.transaction(identifier, TransactionOperation.BEGIN))
        for entry, dispatch in work:
            self.sequence += 1
            made = Entry(FORWARDED, f"{self.producer_id}:{self.sequence}")
            self.ledger.extend(unit, [made], [entry])
            content = self.content(self.producer_id, self.sequence)
            destination = queue(FORWARDED)
            self.wire.tell(wire.acknowledgement(dispatch, AckType.INDIVIDUAL, identifier))
            self.wire.tell(
                wire.bytes_message(
                    self.producer_id, self.sequence, destination, content, identifier
                )
            )
        self.end(unit, identifier)
        return unit.outcome is not DROPPED


class ForwardedConsumer(Actor):
    """Consumes what was forwarded, by acknowledgements of ranges."""

    place = FORWARDED

    def prepare(self) -> None:
        self.wire.consumer(queue(FORWARDED), prefetch=200)

    def step(self) -> None:
        wanted = self.random.randint(1, 40)
        taken: list[MessageDispatch] = []
        while len(taken) < wanted and (dispatch := self.wire.next_dispatch(0.03)) is not None:
            taken.append(dispatch)
        self.take_answers(0)
        if not taken:
            return
        entries = [self.check(self.place, dispatch) for dispatch in taken]
        unit = self.ledger.begin(Unit(removes=entries))
        self.ask_for(unit, _range(taken))


class DurableConsumer(ForwardedConsumer):
    """A durable subscriber of the topic."""

    def __init__(self, ledger: Ledger, port: int, seed: str, subscriber: str) -> None:
        super().__init__(ledger, port, f"{seed}-{subscriber}")
        self.client_id = subscriber
        self.place = place_of(subscriber)

    def prepare(self) -> None:
        self.wire.consumer(topic(TOPIC), prefetch=100, subscription_name=SUBSCRIPTION)


class XAWorker(Actor):
    """Sends and consumes in XA transactions; leaves some prepared."""

    def prepare(self) -> None:
        self.wire.consumer(queue(BRANCHES), prefetch=50)

    def step(self) -> None:
        self.pause_while_full()
        number = next(_BRANCHES)
        identifier = XATransactionId(7, self.name.encode()[:40], number.to_bytes(8, "big"))
        unit = XAUnit(OPEN, is_atomic=True, identifier=identifier)
        self.ledger.begin(unit)
        self.wire.request(self.wire.transaction(identifier, TransactionOperation.BEGIN))
        self.fill(unit, identifier)
        self.wire.request(self.wire.transaction(identifier, TransactionOperation.END))
        unit.prepare = ASKED
        self.wire.request(self.wire.transaction(identifier, TransactionOperation.PREPARE))
        unit.prepare = DONE
        if self.random.random() < 0.1:
            return
        unit.commits = self.random.random() < 0.8
        unit.outcome = ASKED
        if unit.commits:
            self.ask_for(
                unit, self.wire.transaction(identifier, TransactionOperation.COMMIT_TWO_PHASE)
            )
            while self._units and not self.stopping.is_set():
                self.take_answers(0.1)
        else:
            self.wire.request(self.wire.transaction(identifier, TransactionOperation.ROLLBACK))
            unit.outcome = DROPPED

    def fill(self, unit: XAUnit, identifier: XATransactionId) -> None:
        """Send messages, and acknowledge one if there is one."""
        producer_id = self.wire.producer()
        for sequence in range(1, self.random.randint(2, 5)):
            self.ledger.extend(unit, [Entry(BRANCHES, f"{producer_id}:{sequence}")])
            content = self.content(producer_id, sequence)
            self.wire.tell(
                wire.bytes_message(producer_id, sequence, queue(BRANCHES), content, unit.identifier)
            )
        for _ in range(self.random.randint(0, 3)):
            dispatch = self.wire.next_dispatch(0.02)
            if dispatch is not None:
                self.ledger.extend(unit, removes=[self.check(BRANCHES, dispatch)])
                self.wire.tell(wire.acknowledgement(dispatch, AckType.INDIVIDUAL, identifier))


def _range(taken: list[MessageDispatch]) -> MessageAck:
    """Return the acknowledgement of consecutive messages."""
    ack = wire.acknowledgement(taken[-1], AckType.STANDARD)
    first = taken[0].message
    assert first is not None
    ack.first_message_id = first.message_id
    ack.message_count = len(taken)
    return ack


def start_all(ledger: Ledger, port: int, seed: str, subscribers_first: bool = False) -> list[Actor]:
    """Start a crowd of actors: the second durable subscriber stays away now and then.

    With *subscribers_first* the others begin when the durable subscribers have come.
    """
    subscribers: list[Actor] = [DurableConsumer(ledger, port, seed, SUBSCRIBERS[0])]
    if random.Random(seed).random() < 0.6:
        subscribers.append(DurableConsumer(ledger, port, seed, SUBSCRIBERS[1]))
    others: list[Actor] = [
        Producer(ledger, port, f"{seed}-a"),
        Producer(ledger, port, f"{seed}-b"),
        TopicProducer(ledger, port, seed),
        TransactedProducer(ledger, port, seed),
        IndividualConsumer(ledger, port, seed),
        EagerConsumer(ledger, port, seed),
        Forwarder(ledger, port, seed),
        ForwardedConsumer(ledger, port, seed),
        XAWorker(ledger, port, seed),
    ]
    for actor in subscribers:
        actor.start()
    for actor in subscribers if subscribers_first else ():
        assert actor.ready.wait(READY_SECONDS_MAX), f"{actor.name} did not come"
    for actor in others:
        actor.start()
    return [*subscribers, *others]
