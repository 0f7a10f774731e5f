"""Files of segments' indexes: few of them stay open, and what is read is what was written."""

import errno
import os
import random
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lockkeeper.message.segments import SegmentName
from lockkeeper.server.descriptors import KEPT, connections_possible
from lockkeeper.store.kahadb import segment_files
from lockkeeper.store.kahadb.segment_files import (
    BUFFER_BYTES,
    OPEN_MAX,
    FileOctets,
    OpenFiles,
    SegmentFiles,
)
from lockkeeper.store.segment import Entry, MemoryOctets

PARTITIONS = 300
ENTRIES = BUFFER_BYTES // 20


def open_files(directory: Path) -> list[Path]:
    """Return which files in *directory* this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(descriptor.readlink())
    return [path for path in found if path.is_relative_to(directory)]


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """As many descriptors as a broker leaves to everything but clients, and those in use."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + OPEN_MAX + 8, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_any_number_of_partitions_takes_few_descriptors(tmp_path: Path) -> None:
    files = SegmentFiles(tmp_path, lambda: None)
    segments = [files.make(SegmentName("s", number, 0)) for number in range(PARTITIONS)]
    entries = [Entry(offset, offset << 8, 7, 1, offset) for offset in range(ENTRIES)]
    for segment in segments:
        segment.append(entries, [(offset, offset) for offset in range(ENTRIES)])
    assert len(open_files(tmp_path)) == OPEN_MAX
    for segment in segments:
        assert segment.entry(3) == entries[3]
        assert segment.entry(ENTRIES - 1) == entries[-1]
    assert len(open_files(tmp_path)) == OPEN_MAX
    files.close()
    assert open_files(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_clients_leave_the_descriptors_of_indexes_alone() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert KEPT >= OPEN_MAX + 256
    assert connections_possible() == soft - KEPT


@pytest.mark.parametrize("seed", range(5))
def test_files_that_are_closed_for_others_do_what_memory_does(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_files, "BUFFER_BYTES", 50)
    chance = random.Random(seed)
    among = OpenFiles(2)
    pairs = [(FileOctets(tmp_path / str(at), among), MemoryOctets()) for at in range(5)]
    for _ in range(2000):
        file, memory = chance.choice(pairs)
        size = memory.size
        start = chance.randint(0, size)
        length = chance.randint(0, min(size - start, 90))
        match chance.randrange(8):
            case 0 | 1 | 2:
                data = chance.randbytes(chance.randint(0, 40))
                file.append(data)
                memory.append(data)
            case 3:
                data = chance.randbytes(length)
                file.write(start, data)
                memory.write(start, data)
            case 4:
                file.seal()
            case _:
                assert file.read(start, length) == memory.read(start, length)
        assert file.size == memory.size
        assert len(open_files(tmp_path)) <= 2


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_segment_without_room_for_a_directory_is_in_memory(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("tempfile.mkdtemp", full)
    segment = SegmentFiles(tmp_path, lambda: None).make(SegmentName("s", 0, 0))
    segment.append([Entry(0, 9, 7, 1, 5)], [])
    assert segment.entry(0) == Entry(0, 9, 7, 1, 5)
    assert list(tmp_path.iterdir()) == []
