"""A random life of one directory against a simple model: writes, clean-ups, restarts, crashes.

Files are tiny, so that they are rotated and collected all the time. After every restart the
directory must hold exactly what the model says, and the bookkeeping must have known it.
"""

import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import LocalTransactionId, XATransactionId
from lockkeeper.store.base import (
    VOLATILE,
    Add,
    Operation,
    Recovered,
    Reference,
    Remove,
    Subscription,
)
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences
from lockkeeper.store.kahadb.compaction import Settings
from lockkeeper.store.kahadb.store import NO_WISHES

QUEUES = [queue("A"), queue("B"), queue("C")]
TOPIC = topic("NEWS")
SUBSCRIPTIONS = [Subscription("client", name, TOPIC, None, False) for name in ("x", "y", "z")]
CLEANUP_MS = 30_000
EAGER = Settings(after_no_gc=1, ignores_store_growth=True)


class Life:
    """A store, and the model of what it must hold."""

    def __init__(
        self, seed: int, directory: Path, kit: Kit, compaction: Settings = NO_WISHES
    ) -> None:
        self.compaction = compaction
        self.random = random.Random(seed)
        self.kit = kit
        self.directory = directory
        self.generation = 0
        self.now = 1
        self.number = 0
        self.references: dict[int, Reference] = {}
        self.places: dict[int, int] = {}
        self.queues: dict[Destination, dict[int, None]] = {name: {} for name in QUEUES}
        self.pending: dict[Subscription, dict[int, None]] = {}
        self.prepared: dict[XATransactionId, list[Operation]] = {}
        self.store = self.make(directory)
        self.store.open()
        self.most_files = 0

    def make(self, directory: Path) -> KahaDBStore:
        return KahaDBStore(
            directory,
            file_bytes_max=6000,
            batch_bytes_max=2500,
            clock=self.kit.clock,
            compaction=self.compaction,
        )

    def new(self, destination: Destination) -> Reference:
        self.number += 1
        size = self.random.choice([10, 60, 400, 1500])
        one = self.kit.reference(self.number, destination, size)
        self.references[self.number] = one
        return one

    def step(self) -> None:
        actions: list[tuple[Callable[[], None], float]] = [
            (self.add, 10),
            (self.remove, 9),
            (self.publish, 4),
            (self.acknowledge, 6),
            (self.transact, 3),
            (self.prepare, 1),
            (self.decide, 1),
            (self.subscribe, 1),
            (self.unsubscribe, 1),
            (self.remove_destination, 0.3),
            (self.flush, 6),
            (self.maintain, 2),
            (self.restart, 0.5),
        ]
        weights = [weight for _, weight in actions]
        self.random.choices([action for action, _ in actions], weights)[0]()
        self.most_files = max(self.most_files, self.store.usage().files)

    def add(self) -> None:
        destination = self.random.choice(QUEUES)
        one = self.new(destination)
        self.store.add(destination, one, None)
        self.enter(destination, self.number)

    def enter(self, destination: Destination, number: int) -> None:
        """Give a message its place at the end of a queue."""
        self.places[number] = len(self.places)
        self.queues[destination][number] = None

    def pick(self) -> tuple[Destination, int] | None:
        """Return a queue and the number of one of its messages, mostly an old one."""
        destination = self.random.choice(QUEUES)
        numbers = list(self.queues[destination])
        if not numbers:
            return None
        return destination, numbers[int(len(numbers) * self.random.random() ** 3)]

    def remove(self) -> None:
        picked = self.pick()
        if picked is not None:
            destination, number = picked
            skip = self.random.random() < 0.7
            self.store.remove(destination, self.references[number], skip_unwritten=skip)
            del self.queues[destination][number]

    def publish(self) -> None:
        if self.pending:
            one = self.new(TOPIC)
            one.holders = len(self.pending)
            self.store.add(TOPIC, one, None)
            for numbers in self.pending.values():
                numbers[self.number] = None

    def acknowledge(self) -> None:
        for subscription, numbers in self.pending.items():
            if numbers and self.random.random() < 0.6:
                number = next(iter(numbers))
                self.store.remove(TOPIC, self.references[number], None, subscription)
                del numbers[number]

    def operations(self) -> list[Operation]:
        """Return operations for a transaction; what they consume leaves the model."""
        operations: list[Operation] = []
        for _ in range(self.random.randint(1, 4)):
            destination = self.random.choice(QUEUES)
            operations.append(Add(destination, self.several(destination)))
            picked = self.pick()
            if picked is not None:
                destination, number = picked
                waiting = self.queues[destination]
                some = [number, *list(waiting)[-2:]][: self.random.randint(1, 3)]
                consumed = list(dict.fromkeys(some))
                for number in consumed:
                    del waiting[number]
                operations.append(Remove(destination, [self.references[one] for one in consumed]))
            if self.random.random() < 0.3:
                operations.append(Add(TOPIC, self.several(TOPIC)))
            for subscription, numbers in self.pending.items():
                if numbers and self.random.random() < 0.2:
                    number = next(iter(numbers))
                    del numbers[number]
                    one = self.references[number]
                    operations.append(Remove(TOPIC, [one], subscription))
        return operations

    def several(self, destination: Destination) -> list[Reference]:
        return [self.new(destination) for _ in range(self.random.randint(1, 3))]

    def numbers_of(self, operation: Operation) -> list[int]:
        return list(map(self.kit.number_of, operation.references))

    def wanted(self, operations: list[Operation]) -> list[Operation]:
        """Return operations without adds to a topic that nobody has subscribed to."""
        for operation in operations:
            if operation.destination == TOPIC and isinstance(operation, Add):
                for reference in operation.references:
                    reference.holders = len(self.pending)
        return [one for one in operations if self.pending or not self.is_published(one)]

    def is_published(self, operation: Operation) -> bool:
        return operation.destination == TOPIC and isinstance(operation, Add)

    def apply(self, operations: list[Operation]) -> None:
        for operation in operations:
            if self.is_published(operation):
                for numbers in self.pending.values():
                    numbers |= dict.fromkeys(self.numbers_of(operation))
            elif isinstance(operation, Add):
                for number in self.numbers_of(operation):
                    self.enter(operation.destination, number)

    def transact(self) -> None:
        operations = self.wanted(self.operations())
        self.store.commit(LocalTransactionId("ID:c:1", self.number), operations, None)
        self.apply(operations)

    def prepare(self) -> None:
        operations = self.operations()
        identifier = XATransactionId(1, b"%d" % self.number, b"b")
        self.store.prepare(identifier, operations, None)
        self.prepared[identifier] = operations

    def decide(self) -> None:
        if not self.prepared:
            return
        identifier = self.random.choice(list(self.prepared))
        operations = self.prepared.pop(identifier)
        if self.random.random() < 0.5:
            self.wanted(operations)
            self.store.commit_prepared(identifier, operations, None)
            self.apply(operations)
            return
        self.store.rollback_prepared(identifier, operations, None)
        for operation in operations:
            if isinstance(operation, Remove) and operation.subscription is not None:
                numbers = self.pending[operation.subscription]
                numbers |= dict.fromkeys(self.numbers_of(operation))
                in_order = sorted(numbers)
                self.pending[operation.subscription] = dict.fromkeys(in_order)
            elif isinstance(operation, Remove):
                numbers = self.queues[operation.destination]
                numbers |= dict.fromkeys(self.numbers_of(operation))
                in_order = sorted(numbers, key=self.places.__getitem__)
                self.queues[operation.destination] = dict.fromkeys(in_order)

    def let_go(self, subscription: Subscription) -> None:
        for number in self.pending.pop(subscription, {}):
            self.store.release(self.references[number])
        self.take_back(lambda one: isinstance(one, Remove) and one.subscription == subscription)

    def take_back(self, is_over: Callable[[Operation], bool]) -> None:
        """Have prepared transactions forget what ends with a destination or a subscription."""
        for identifier, operations in self.prepared.items():
            for operation in operations:
                for reference in operation.references if is_over(operation) else ():
                    self.store.release(reference)
            self.prepared[identifier] = [one for one in operations if not is_over(one)]

    def subscribe(self) -> None:
        subscription = self.random.choice(SUBSCRIPTIONS)
        self.let_go(subscription)
        self.store.subscribe(subscription, None)
        self.pending[subscription] = {}

    def unsubscribe(self) -> None:
        if self.pending:
            subscription = self.random.choice(list(self.pending))
            self.let_go(subscription)
            self.store.unsubscribe(subscription, None)

    def remove_destination(self) -> None:
        destination = self.random.choice(QUEUES)
        for number in self.queues[destination]:
            self.store.release(self.references[number])
        self.queues[destination] = {}
        self.take_back(lambda one: isinstance(one, Remove) and one.destination == destination)
        self.store.remove_destination(destination, None)

    def flush(self) -> None:
        if self.random.random() < 0.5:
            self.store.flush()
        else:
            self.kit.until_durable(self.store)

    def maintain(self) -> None:
        self.now += self.random.choice([500, CLEANUP_MS])
        self.kit.maintain(self.store, self.now)
        self.kit.until_durable(self.store)
        assert differences(self.directory, self.store._file_references) == []

    def restart(self) -> None:
        """Restart on the same directory, or, as after a crash, on a copy of the open one."""
        self.kit.until_durable(self.store)
        live = {key: one.live for key, one in self.store._file_references.files.items()}
        before = self.store
        if self.random.random() < 0.5:
            before.close()
        else:
            self.generation += 1
            copy = self.directory.with_name(f"copy-{self.generation}")
            shutil.copytree(self.directory, copy)
            before.close()
            shutil.rmtree(self.directory)
            self.directory = copy
        self.store = self.make(self.directory)
        self.check(self.store.open())
        found = {key: one.live for key, one in self.store._file_references.files.items()}
        assert {key: count for key, count in live.items() if count} == {
            key: count for key, count in found.items() if count
        }

    def check(self, recovered: Recovered) -> None:
        """Compare what came back with the model, and go on with the new references."""
        self.references = {}
        expected = {name: list(numbers) for name, numbers in self.queues.items() if numbers}
        found = {name: self.take(references) for name, references in recovered.queues.items()}
        assert found == expected
        assert {
            entry.subscription: self.take(entry.pending) for entry in recovered.subscriptions
        } == {key: list(numbers) for key, numbers in self.pending.items()}
        assert recovered.prepared.keys() == self.prepared.keys()
        for identifier, operations in recovered.prepared.items():
            before = self.described(self.prepared[identifier])
            self.take([each for one in operations for each in one.references])
            assert self.described(operations) == before
            self.prepared[identifier] = operations
        for file in list_data_files(self.directory):
            scan_file(file.path.read_bytes(), file.path.name).require_whole()

    def take(self, references: Iterable[Reference]) -> list[int]:
        numbers = self.kit.numbers(self.store, references)
        for number, one in zip(numbers, references, strict=True):
            assert one.state != VOLATILE
            self.references[number] = one
        return numbers

    def described(self, operations: list[Operation]) -> list[tuple[str, Destination, int]]:
        return [
            (type(operation).__name__, operation.destination, number)
            for operation in operations
            for number in self.numbers_of(operation)
        ]


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_and_nothing_comes_back(seed: int, tmp_path: Path, kit: Kit) -> None:
    life = Life(seed, tmp_path / "life", kit, EAGER if seed % 2 else NO_WISHES)
    for _ in range(500):
        life.step()
    life.restart()
    life.store.close()


def test_files_are_collected_while_traffic_goes_on(tmp_path: Path, kit: Kit) -> None:
    life = Life(99, tmp_path / "life", kit)
    for _ in range(300):
        life.add()
        life.add()
        while sum(map(len, life.queues.values())) > 6:
            life.remove()
        life.kit.until_durable(life.store)
        life.maintain()
    assert life.store._files.file_id > 20
    assert life.most_files < 12
    life.restart()
    life.store.close()
