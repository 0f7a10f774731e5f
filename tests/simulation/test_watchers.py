"""What the simulation's watchers take for a fault, and what not."""

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from greenlet import getcurrent

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.books import make_books
from simulation.disk import Disk
from simulation.hub import SECOND, Hub, Process, Task
from simulation.kernel import Kernel
from simulation.watchers import WAKING, Lateness, Writers

if TYPE_CHECKING:
    from simulation.life import Life


class Brokers:
    """Two brokers over one disk, with somebody who looks who writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hub = Hub(0)
        self.disk = Disk(self.hub, Kernel(self.hub), path)
        Writers(life_with(pair=SimpleNamespace(reader=None), world=self))
        self.processes = [self.hub.start(name) for name in ("pair-0", "pair-1")]

    def write(self, who: int, descriptor: int, data: bytes, offset: int = 0) -> None:
        self.hub.current = thread_of(self.processes[who])
        self.disk.pwrite(descriptor, data, offset)

    def make(self, who: int, name: str) -> int:
        self.hub.current = thread_of(self.processes[who])
        return self.disk.open(str(self.path / name), os.O_RDWR | os.O_CREAT)


class Reader:
    """A client with books; the second of two brokers took over from the first."""

    def __init__(self, brokers: Brokers) -> None:
        place = Path(__file__).parents[1] / "crash" / "ledger.py"
        found = importlib.util.spec_from_file_location("simulated_ledger", place)
        assert found is not None and found.loader is not None
        self._ledger = importlib.util.module_from_spec(found)
        sys.modules[found.name] = self._ledger
        found.loader.exec_module(self._ledger)
        self.books = make_books(self._ledger)
        self._brokers = brokers
        processes = brokers.processes
        pair = SimpleNamespace(reader=processes[1], processes=lambda: processes)
        Lateness(life_with(pair=pair, books=self.books, world=brokers))

    def receive(self, sender: int, redeliveries: int = 0) -> None:
        """Note a message that the broker with the number *sender* has sent."""
        end = SimpleNamespace(peer=SimpleNamespace(process=self._brokers.processes[sender]))
        thread = thread_of(self._brokers.hub.outside)
        thread.thread = SimpleNamespace(wire=SimpleNamespace(_socket=SimpleNamespace(end=end)))
        self._brokers.hub.current = thread
        self.books.delivered("consumer", self._ledger.Entry("WORK", "ID:1:1"), redeliveries)
        self.books._last_seen.clear()


def thread_of(process: Process) -> Task:
    """Return a thread that never runs."""
    return Task(process, lambda: None, getcurrent())


def life_with(**parts: Any) -> "Life":
    """Return so much of a life as a watcher looks at."""
    return cast("Life", SimpleNamespace(**parts))


@pytest.fixture
def world(tmp_path: Path) -> Brokers:
    return Brokers(tmp_path)


@pytest.fixture
def reader(world: Brokers) -> Reader:
    return Reader(world)


def test_a_file_that_two_write_is_a_fault(world: Brokers) -> None:
    world.write(0, world.make(0, "db-1.log"), b"first")
    world.write(1, world.make(1, "db-1.log"), b"other")
    assert len(world.hub.problems) == 1
    assert "pair-1 changes db-1.log, which is of pair-0" in world.hub.problems[0]


def test_a_file_that_a_copy_has_replaced_is_nobodys(world: Brokers) -> None:
    """A master that wakes long after still has it open; what it writes there nobody reads."""
    before = world.make(0, "db-1.log")
    world.write(0, before, b"first")
    world.write(1, world.make(1, "compacted-1.tmp"), b"fi")
    world.disk.rename(str(world.path / "compacted-1.tmp"), str(world.path / "db-1.log"))
    world.write(0, before, b"late", 5)
    world.disk.ftruncate(before, 100)
    assert world.hub.problems == []
    assert (world.path / "db-1.log").read_bytes() == b"fi"


def test_the_copy_in_its_place_is_of_who_made_it(world: Brokers) -> None:
    world.write(0, world.make(0, "db-1.log"), b"first")
    world.write(1, world.make(1, "compacted-1.tmp"), b"fi")
    world.disk.rename(str(world.path / "compacted-1.tmp"), str(world.path / "db-1.log"))
    world.write(0, world.make(0, "db-1.log"), b"x")
    assert "pair-0 changes db-1.log, which is of pair-1" in "".join(world.hub.problems)


def test_what_a_predecessor_sent_may_come_again_as_if_for_the_first_time(reader: Reader) -> None:
    reader.receive(0)
    reader.receive(1)
    assert reader.books.problems == []


def test_what_one_master_sends_again_says_so(reader: Reader) -> None:
    reader.receive(1)
    reader.receive(1, redeliveries=1)
    reader.receive(0)
    assert reader.books.problems == []
    reader.receive(1)
    assert "was delivered twice, as if for the first time" in reader.books.problems[0]


REFUSED = "RefusedError: javax.jms.InvalidClientIDException: … already connected from …"


def test_a_client_id_may_be_taken_when_a_broker_wakes(world: Brokers, reader: Reader) -> None:
    world.processes[1].stopped_until = world.hub.now = 3 * SECOND
    reader.books.problem(REFUSED)
    assert reader.books.problems == []


def test_a_client_id_must_be_free_a_moment_later(world: Brokers, reader: Reader) -> None:
    reader.books.problem(REFUSED)
    world.processes[1].stopped_until = 3 * SECOND
    world.hub.now = 3 * SECOND + WAKING
    reader.books.problem(REFUSED)
    assert reader.books.problems == [REFUSED] * 2
