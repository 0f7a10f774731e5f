"""What the simulation's watchers take for a fault, and what not."""

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.books import make_books
from simulation.disk import Disk
from simulation.hub import SECOND, Hub
from simulation.kernel import Kernel
from simulation.watchers import WAKING, Lateness, Writers


@pytest.fixture
def world(tmp_path):
    """Two brokers over one disk, with somebody who looks who writes."""
    hub = Hub(0)
    disk = Disk(hub, Kernel(hub), tmp_path)
    pair = SimpleNamespace(reader=None)
    Writers(SimpleNamespace(pair=pair, world=SimpleNamespace(hub=hub, disk=disk)))
    tasks = [SimpleNamespace(process=hub.start(name)) for name in ("pair-0", "pair-1")]

    def write(who, descriptor, data, offset=0):
        hub.current = tasks[who]
        disk.pwrite(descriptor, data, offset)

    def make(who, name):
        hub.current = tasks[who]
        return disk.open(str(tmp_path / name), os.O_RDWR | os.O_CREAT)

    return SimpleNamespace(hub=hub, disk=disk, path=tmp_path, write=write, make=make)


def test_a_file_that_two_write_is_a_fault(world):
    world.write(0, world.make(0, "db-1.log"), b"first")
    world.write(1, world.make(1, "db-1.log"), b"other")
    assert len(world.hub.problems) == 1
    assert "pair-1 changes db-1.log, which is of pair-0" in world.hub.problems[0]


def test_a_file_that_a_copy_has_replaced_is_nobodys(world):
    """A master that wakes long after still has it open; what it writes there nobody reads."""
    before = world.make(0, "db-1.log")
    world.write(0, before, b"first")
    world.write(1, world.make(1, "compacted-1.tmp"), b"fi")
    world.disk.rename(str(world.path / "compacted-1.tmp"), str(world.path / "db-1.log"))
    world.write(0, before, b"late", 5)
    world.disk.ftruncate(before, 100)
    assert world.hub.problems == []
    assert (world.path / "db-1.log").read_bytes() == b"fi"


def test_the_copy_in_its_place_is_of_who_made_it(world):
    world.write(0, world.make(0, "db-1.log"), b"first")
    world.write(1, world.make(1, "compacted-1.tmp"), b"fi")
    world.disk.rename(str(world.path / "compacted-1.tmp"), str(world.path / "db-1.log"))
    world.write(0, world.make(0, "db-1.log"), b"x")
    assert "pair-0 changes db-1.log, which is of pair-1" in "".join(world.hub.problems)


@pytest.fixture
def books(world):
    """Books, with a pair whose second broker took over from the first."""
    place = Path(__file__).parents[1] / "crash" / "ledger.py"
    found = importlib.util.spec_from_file_location("simulated_ledger", place)
    ledger = importlib.util.module_from_spec(found)
    sys.modules[found.name] = ledger
    found.loader.exec_module(ledger)
    books = make_books(ledger)
    processes = [each for each in world.hub.processes if each.name.startswith("pair")]
    pair = SimpleNamespace(reader=processes[1], processes=lambda: processes)
    Lateness(SimpleNamespace(pair=pair, books=books, world=world))

    def deliver(sender, redeliveries=0):
        end = SimpleNamespace(peer=SimpleNamespace(process=processes[sender]))
        wire = SimpleNamespace(_socket=SimpleNamespace(end=end))
        thread = SimpleNamespace(wire=wire)
        world.hub.current = SimpleNamespace(process=world.hub.outside, thread=thread)
        books.delivered("consumer", ledger.Entry("WORK", "ID:1:1"), redeliveries)
        books._last_seen.clear()

    books.deliver, books.processes = deliver, processes
    return books


def test_what_a_predecessor_sent_may_come_again_as_if_for_the_first_time(books):
    books.deliver(0)
    books.deliver(1)
    assert books.problems == []


def test_what_one_master_sends_again_says_so(books):
    books.deliver(1)
    books.deliver(1, redeliveries=1)
    books.deliver(0)
    assert books.problems == []
    books.deliver(1)
    assert "was delivered twice, as if for the first time" in books.problems[0]


REFUSED = "RefusedError: javax.jms.InvalidClientIDException: … already connected from …"


def test_a_client_id_may_be_taken_when_a_broker_wakes(world, books):
    books.processes[1].stopped_until = world.hub.now = 3 * SECOND
    books.problem(REFUSED)
    assert books.problems == []


def test_a_client_id_must_be_free_a_moment_later(world, books):
    books.problem(REFUSED)
    books.processes[1].stopped_until = 3 * SECOND
    world.hub.now = 3 * SECOND + WAKING
    books.problem(REFUSED)
    assert books.problems == [REFUSED] * 2
