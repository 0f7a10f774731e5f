"""What the simulation's watchers take for a fault, and what not."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.disk import Disk
from simulation.hub import Hub
from simulation.kernel import Kernel
from simulation.watchers import Writers


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
