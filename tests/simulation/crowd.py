"""Still more of the crowd: copies, what comes later, what ends by itself, and what is removed."""

import contextlib
from types import ModuleType
from typing import Any

from simulation.clients import CalmConsumer, CalmProducer, Program
from simulation.pair import SERVICE_PORT

from lockkeeper.message.destination import queue
from lockkeeper.message.openwire import ConnectionId, DestinationInfo, DestinationOperation
from lockkeeper.message.primitives import Value

SPLIT = ("SPLIT.A", "SPLIT.B")
FAN, FANNED = "FAN", ("FANNED.A", "FANNED.B")
LATER = "LATER"
EXPIRING, DOOMED = "EXPIRING", "DOOMED"
QUEUES = (*SPLIT, *FANNED, LATER, EXPIRING, DOOMED)
FETCHED_AHEAD = (*SPLIT, *FANNED, LATER)
DEAD_LETTERS = "ActiveMQ.DLQ"


class Splitter(CalmProducer):
    """Names two queues at once: each message has a copy in both."""

    places = SPLIT
    destination = queue(",".join(SPLIT))


class Fanner(CalmProducer):
    """Sends to a queue whose messages go to two others."""

    places = FANNED
    destination = queue(FAN)


class DelayedProducer(CalmProducer):
    """Sends what is to be delivered a little later."""

    places = (LATER,)
    destination = queue(LATER)

    def properties(self) -> dict[str, Value]:
        return {"AMQ_SCHEDULED_DELAY": self.random.randint(1, 1500)}


def with_scheduled(jobs: list[str], came: list[str]) -> list[str]:
    """Return what has come, and what is to come and has not done so since it was looked at."""
    return came + [each for each in jobs if each not in came]


class ExpiringProducer(CalmProducer):
    """Sends what ends by itself: it becomes a dead letter, sooner or later."""

    places = (EXPIRING,)
    destination = queue(EXPIRING)

    def begin(self) -> Any:
        unit = super().begin()
        expect_expiry(self.ledger_module, self.books, [entry.message for entry in unit.adds])
        return unit

    def time_to_live(self) -> float:
        return self.random.choice((0.05, 0.5, 2, 600))


def expect_expiry(ledger: ModuleType, books: Any, names: list[str]) -> None:
    """Say that messages may become dead letters from now on."""
    for name in names:
        dead, here = ledger.Entry(DEAD_LETTERS, name), ledger.Entry(EXPIRING, name)
        books.begin(ledger.Unit(adds=[dead], removes=[here], is_move=True))


class AnyConsumer(CalmConsumer):
    """Takes from one of the queues that the others here fill."""

    def prepare(self) -> None:
        self.place = self.random.choice(FETCHED_AHEAD)
        super().prepare()


class Remover(Program):
    """Sends to a queue, and removes it with all that is in it, again and again."""

    def run(self) -> None:
        wire = self.modules["wire"]
        with contextlib.suppress(OSError, wire.RefusedError), wire.Wire(SERVICE_PORT) as self.wire:
            self.producer = self.wire.producer()
            self.number = 0
            # What others before it have sent, and may still be under way.
            self.certain: list[Any] = []
            while not self.stopping.is_set():
                self.step()

    def step(self) -> None:
        for _ in range(self.random.randint(0, 4)):
            self.send()
        if self.random.random() < 0.5:
            self.remove()
        self.stopping.wait(self.random.random() / 10)

    def send(self) -> None:
        ledger, wire = self.ledger_module, self.modules["wire"]
        self.number += 1
        entry = ledger.Entry(DOOMED, f"{self.producer}:{self.number}")
        unit = self.books.begin(ledger.Unit(adds=[entry]))
        content = b"doomed" * self.random.randint(1, 300)
        message = wire.bytes_message(self.producer, self.number, queue(DOOMED), content)
        try:
            self.wire.request(message)
        except wire.RefusedError:
            unit.outcome = ledger.DROPPED
            raise
        self.books.done(unit)
        self.certain.append(entry)

    def remove(self) -> None:
        ledger = self.ledger_module
        others = [each for each in self.books.entries_of(DOOMED) if each not in self.certain]
        self.books.begin(ledger.Unit(removes=others))
        unit = self.books.begin(ledger.Unit(removes=self.certain))
        self.wire.request(
            DestinationInfo(
                connection_id=ConnectionId(self.wire.name),
                destination=queue(DOOMED),
                operation_type=DestinationOperation.REMOVE,
            )
        )
        self.books.done(unit)
        self.certain = []
