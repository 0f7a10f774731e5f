"""Our client on a pair whose master is killed again and again, over connections that are cut."""

import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ports import free_port
from rounds import verify

sys.path.insert(0, str(Path(__file__).parents[1] / "client"))
from relay import Relay

from lockkeeper.client import (
    Connection,
    RedeliveryPolicy,
    TransactionInDoubtError,
    TransactionRolledBackError,
    connect,
)

if TYPE_CHECKING:
    from brokers import RunningBroker

PRODUCERS = CONSUMERS = 10
KILLS = int(os.environ.get("LOCKKEEPER_FIRE_KILLS", "30"))
CUT_BYTES_MAX = 400_000
STANDBY_SECONDS_MAX = END_SECONDS_MAX = 1800
QUEUE = "FIRE"
# On a slow machine it may take long until there is a broker again. Who waits for ever is found.
OPTIONS = "initialReconnectDelay=10&maxReconnectDelay=200&jms.requestTimeout=0"
FOR_EVER = RedeliveryPolicy(-1, initial_redelivery_delay=0, redelivery_delay=0)
StartBroker = Callable[..., "RunningBroker"]


class Books:
    """What was confirmed to producers and consumers, and what nobody knows."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.sent_perhaps: set[str] = set()
        self.taken: Counter[str] = Counter()
        self.taken_perhaps: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.sending, self.taking = threading.Event(), threading.Event()
        self.lock = threading.Lock()

    def note(self, kind: str, bodies: list[str]) -> None:
        with self.lock:
            self.counts[kind] += 1
            if kind == "sent":
                self.sent.update(bodies)
            elif kind == "sent, in doubt":
                self.sent_perhaps.update(bodies)
            elif kind == "taken":
                self.taken.update(bodies)
            elif kind == "taken, in doubt":
                self.taken_perhaps.update(bodies)

    @property
    def waiting(self) -> int:
        with self.lock:
            return len(self.sent) - len(self.taken)


class Actor(threading.Thread):
    """One connection with its work."""

    def __init__(self, books: Books, url: str, number: int, seed: str) -> None:
        super().__init__(name=f"{type(self).__name__}-{number}", daemon=True)
        self.books, self.url, self.number = books, url, number
        self.random = random.Random(f"{seed}-{self.name}")

    def run(self) -> None:
        try:
            with connect(self.url, redelivery=FOR_EVER) as connection:
                self.work(connection)
        except Exception as error:
            self.books.problems.append(f"{self.name}: {error!r}")

    def work(self, connection: Connection) -> None:
        """Send or consume, until told to stop."""
        raise NotImplementedError


class Producer(Actor):
    """Sends persistent messages; every other one in transactions."""

    def work(self, connection: Connection) -> None:
        is_transacted = self.number % 2 == 1
        session = connection.session(transacted=is_transacted)
        producer = session.producer(QUEUE)
        books, sequence = self.books, 0
        while books.sending.is_set():
            unit = []
            for _ in range(self.random.randint(1, 5) if is_transacted else 1):
                sequence += 1
                unit.append(f"{self.number}-{sequence}")
                producer.send(unit[-1])
            kind = "sent"
            if is_transacted:
                try:
                    session.commit()
                except TransactionInDoubtError:
                    kind = "sent, in doubt"
                except TransactionRolledBackError:
                    kind = "sent, rolled back"
            books.note(kind, unit)
            while books.waiting > 2000 and books.sending.is_set():
                time.sleep(0.01)


class Consumer(Actor):
    """Takes messages in transactions; rolls some back."""

    def work(self, connection: Connection) -> None:
        session = connection.session(transacted=True)
        consumer = session.consumer(QUEUE, prefetch=self.random.choice([1, 10, 100]))
        books = self.books
        while books.taking.is_set():
            unit = []
            for _ in range(self.random.randint(1, 8)):
                message = consumer.receive(0.5)
                if message is None:
                    break
                unit.append(str(message.body))
            kind = "taken"
            try:
                if self.random.random() < 0.05:
                    kind = "taken, rolled back"
                    session.rollback()
                else:
                    session.commit()
            except TransactionInDoubtError:
                kind = "taken, in doubt"
            except TransactionRolledBackError:
                kind = "taken, rolled back"
            if unit:
                books.note(kind, unit)


def start_standby(start_broker: StartBroker, port: int) -> "RunningBroker":
    standby = start_broker(port=port, waits=False)
    standby.start_seconds_max = STANDBY_SECONDS_MAX
    deadline = time.monotonic() + STANDBY_SECONDS_MAX
    while "is standby" not in standby.log.read_text():
        assert standby.process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    return standby


@pytest.mark.crash
@pytest.mark.thorough
@pytest.mark.timeout(7200)
def test_nothing_is_lost_while_masters_are_killed_and_connections_cut(
    start_broker: StartBroker, tmp_path: Path, seed: str
) -> None:
    chance, books = random.Random(seed), Books()
    ports = [free_port(), free_port()]
    master, standby = start_broker(port=ports[0]), start_standby(start_broker, ports[1])
    cuts: list[int] = []

    def cut(number: int) -> int:
        cuts.append(chance.randint(500, CUT_BYTES_MAX))
        return cuts[-1]

    relays = [Relay(port, cut) for port in ports]
    url = f"failover:({','.join(relay.url for relay in relays)})?{OPTIONS}"
    books.sending.set()
    books.taking.set()
    actors: list[Actor] = [Producer(books, url, number, seed) for number in range(PRODUCERS)]
    actors += [Consumer(books, url, number, seed) for number in range(CONSUMERS)]
    for actor in actors:
        actor.start()
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.2, 1.5))
        master.kill()
        standby.wait()
        master, standby = standby, start_standby(start_broker, master.port)
    books.sending.clear()
    with connect(master.url) as connection:
        deadline = time.monotonic() + END_SECONDS_MAX
        while books.sent - set(books.taken) - books.taken_perhaps and time.monotonic() < deadline:
            time.sleep(0.1)
        books.taking.clear()
        for actor in actors:
            actor.join(END_SECONDS_MAX)
            assert not actor.is_alive(), actor.name
        rest = {str(message.body) for message in connection.session().browse(QUEUE)}
    for relay in relays:
        relay.close()
    twice = {body for body, times in books.taken.items() if times > 1}
    seen = set(books.taken) | books.taken_perhaps | rest
    print(
        f"{KILLS} kills, {sum(len(relay.sent) for relay in relays)} connections; "
        f"{len(books.sent)} sent, {len(books.taken)} taken, {len(rest)} left, "
        f"{len(twice)} taken twice; units: {dict(books.counts)}"
    )
    assert not books.problems, books.problems[:10]
    assert not books.sent - seen, "lost"
    assert not set(books.taken) - books.sent - books.sent_perhaps, "never sent, or rolled back"
    assert twice <= books.taken_perhaps, "repeated though nobody was in doubt"
    assert not (set(books.taken) - books.taken_perhaps) & rest, "taken, and still there"
    standby.stop()
    master.stop()
    verify(tmp_path / "data")
    assert len(books.sent) > 100 * KILLS
