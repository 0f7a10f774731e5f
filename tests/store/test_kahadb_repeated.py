"""What files tell besides messages outlives them: names of queues and ends, epoch, broker's id.

Rounds of traffic, upkeep and clean-up in random order, ended by the loss of power at any moment.
The disk takes its time, so that batches are under way when files are chosen and deleted.
"""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from store_kit import Kit, NamedReceipt

from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import Destination, queue
from lockkeeper.store.base import Identity, Receipt, Recovered, Reference
from lockkeeper.store.kahadb import KahaDBStore, existing
from lockkeeper.store.kahadb.compaction import Settings
from lockkeeper.store.kahadb.disk import Disk, open_disk

A = queue("A")
BROKER = Identity("b", "ID:b-1")
HOUR = 3_600_000
EAGER = Settings(after_no_gc=1, ignores_store_growth=True)


class SlowDisk:
    """A disk that is done when the test lets it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.is_held = False
        self.submit, self.wait, self.fileno = disk.submit, disk.wait, disk.fileno
        self.close = disk.close

    def completed(self) -> bool:
        return not self.is_held and self._disk.completed()


class Removal(NamedTuple):
    """The end of a queue."""

    queue: Destination


class Life:
    """One master after the other of one journal, and what each of them has promised."""

    def __init__(
        self, seed: int, directory: Path, kit: Kit, keep_alive_ms: int, ending: str = ""
    ) -> None:
        """Names of queues have this *ending*."""
        self.random = random.Random(seed)
        self.kit = kit
        self.keep_alive_ms = keep_alive_ms
        self.ending = ending
        self.generation = self.number = self.epoch = self.deleted = 0
        self.directory = directory / "0"
        self.promised: dict[NamedReceipt, Destination | Removal | int] = {}
        self.names: set[Destination] = set()
        self.removed: set[Destination] = set()
        self.durable_epoch = 0
        self.stores: list[KahaDBStore] = []
        self.begin()

    def begin(self) -> None:
        """Open the directory; a new term begins."""
        disks: list[SlowDisk] = []

        def make_disk(descriptor: int) -> SlowDisk:
            disks.append(SlowDisk(open_disk(descriptor)))
            return disks[0]

        self.store = KahaDBStore(
            self.directory,
            clock=self.kit.clock,
            file_bytes_max=4096,
            keep_alive_ms=self.keep_alive_ms,
            disk=make_disk,
            compaction=EAGER,
        )
        self.stores.append(self.store)
        self.check(self.store.open())
        self.disk = disks[0]
        self.epoch += 1
        self.store.begin_term(self.epoch, 5, BROKER, "b-0")
        self.promise(self.epoch)
        self.live: list[Reference] = []

    def check(self, recovered: Recovered) -> None:
        assert set(recovered.existing) >= self.names
        assert not self.removed.intersection(recovered.existing)
        assert recovered.epoch >= self.durable_epoch
        assert recovered.identity == (BROKER if recovered.epoch else None)

    def promise(self, what: Destination | Removal | int) -> None:
        """Have it noted when what was just handed over is durable."""
        receipt = NamedReceipt()
        self.promised[receipt] = what
        self.store.remove(A, Reference(None, 0), receipt)
        self.note(self.store.flush())

    def note(self, receipts: Sequence[Receipt]) -> None:
        for receipt in receipts:
            assert isinstance(receipt, NamedReceipt)
            what = self.promised.pop(receipt)
            if isinstance(what, Removal):
                self.removed.add(what.queue)
            elif isinstance(what, int):
                self.durable_epoch = max(self.durable_epoch, what)
            else:
                self.names.add(what)

    def step(self) -> None:
        actions = [
            (self.send, 8),
            (self.consume, 8),
            (self.name, 1),
            (self.remove, 0.5),
            (self.sync, 6),
            (self.hold, 2),
            (self.maintain, 6),
        ]
        weights = [weight for _, weight in actions]
        self.random.choices([action for action, _ in actions], weights)[0]()

    def send(self) -> None:
        self.number += 1
        one = self.kit.reference(self.number, size=900)
        self.store.add(A, one, None)
        # A few stay, and their file with them.
        if self.random.random() < 0.98:
            self.live.append(one)
        self.note(self.store.flush())

    def consume(self) -> None:
        if self.live:
            self.store.remove(A, self.live.pop(0))

    def name(self) -> None:
        self.number += 1
        destination = queue(f"EMPTY.{self.number}{self.ending}")
        self.store.remember_queue(destination)
        self.promise(destination)

    def remove(self) -> None:
        """Remove a queue in which nothing has ever been."""
        if self.names:
            destination = self.random.choice(sorted(self.names, key=str))
            self.names.remove(destination)
            self.store.remove_destination(destination, None)
            self.promise(Removal(destination))

    def sync(self) -> None:
        self.disk.is_held = False
        if self.store._commit.is_writing:
            self.note(self.store._commit.finish())
        self.note(self.store.flush())

    def hold(self) -> None:
        self.disk.is_held = True

    def maintain(self) -> None:
        before = len(list_data_files(self.directory))
        self.kit.clock.now += self.random.choice([400, 700, 29_800])
        self.store.maintain(0)
        self.deleted += max(0, before - len(list_data_files(self.directory)))
        self.store._compaction.wait()

    def lose_power(self) -> None:
        """Begin anew with what is there, without the batch that is under way."""
        self.generation += 1
        left = self.directory
        self.directory = left.with_name(str(self.generation))
        shutil.copytree(left, self.directory)
        if self.store._commit.is_writing:
            tear_last_batch(self.directory)
        self.promised.clear()
        self.begin()

    def close(self) -> None:
        for store in self.stores:
            store.close()


def tear_last_batch(directory: Path) -> None:
    """Take out the batch that was written last."""
    for file in reversed(list_data_files(directory)):
        data = bytearray(file.path.read_bytes())
        batches = scan_file(bytes(data), file.path.name).batches
        if batches:
            last = batches[-1]
            data[last.offset :] = bytes(len(data) - last.offset)
            file.path.write_bytes(data)
            return


def live(life: Life, fewest: int, most: int) -> None:
    """Take steps, from *fewest* to below *most* of them before each loss of power."""
    for _ in range(12):
        for _ in range(life.random.randrange(fewest, most)):
            life.step()
        life.lose_power()
    life.close()


@pytest.mark.parametrize("keep_alive_ms", [0, 1000, HOUR])
@pytest.mark.parametrize("seed", range(6))
def test_names_epoch_and_id_outlive_the_files_that_told_them(
    tmp_path: Path, kit: Kit, seed: int, keep_alive_ms: int
) -> None:
    life = Life(seed, tmp_path, kit, keep_alive_ms)
    live(life, 20, 120)
    assert life.deleted > 10
    assert len(life.names) + len(life.removed) > 10 and life.durable_epoch > 5


@pytest.mark.parametrize("seed", range(6))
def test_names_outlive_them_that_do_not_fit_into_one(
    tmp_path: Path, kit: Kit, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existing, "PART_BYTES", 2_000)
    monkeypatch.setattr(existing, "NAMES_PER_LINE", 3)
    life = Life(seed, tmp_path, kit, HOUR, "x" * 900)
    live(life, 40, 200)
    assert life.deleted > 10
    assert 900 * len(life.names) > 4096
    assert len(life.removed) > 3
