"""Extracts of data files: a start that reads them learns what one learns from the files."""

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from streams_kit import START, DiskBench, replayed, taken

from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.outputs import HalfStored
from lockkeeper.broker.streams.settings import Retention, StreamSettings, StreamsSettings
from lockkeeper.broker.streams.transactions import Outcome
from lockkeeper.journal.files import DataFile
from lockkeeper.message.destination import queue
from lockkeeper.store.base import WRITTEN, DamagedError, Recovered, Reference, StoreError
from lockkeeper.store.kahadb import extracting
from lockkeeper.store.kahadb.extracts import EXTRACT_PATTERN, extract_path, read_extract
from lockkeeper.store.kahadb.file_references import OFFSET_MASK
from lockkeeper.store.kahadb.recovery import no_extract, replay_directory
from lockkeeper.store.kahadb.store import KahaDBStore
from lockkeeper.store.segment import each_place

FILE_BYTES = 1 << 14
DELETED_SECONDS_MAX = 60
DELETED_AND_MADE_AGAIN = 41
"""The seed of a life in which a stream is deleted and made again within one file."""
SETTINGS = StreamsSettings(defaults=StreamSettings(2, Retention(time=20_000)))


def small_bench(directory: Path) -> DiskBench:
    return DiskBench(directory, SETTINGS, file_bytes_max=FILE_BYTES, cleanup_interval_ms=1)


def filled(directory: Path) -> DiskBench:
    """Return a broker with several files that have extracts, and other records between."""
    bench = small_bench(directory)
    client = bench.connect()
    for number in range(120):
        draft = Draft(b"x" * 600, {"KEYS": f"k{number} all", "UNIQ_KEY": f"U{number}", "TAGS": "t"})
        bench.append(client, "orders", draft, partition=number % 2)
        bench.broker.streams.commit_offset("g", "orders", number % 2, number // 2)
        if number % 10 == 0:
            bench.broker.streams.groups.write()
            bench.settle()
    bench.extract()
    return bench


def extracts(directory: Path) -> list[Path]:
    return sorted(directory.glob(EXTRACT_PATTERN))


def test_files_that_are_complete_have_extracts(tmp_path: Path) -> None:
    bench = filled(tmp_path / "kahadb")
    files = {file.number for file in bench.store.files()}
    found = {int(path.stem.removeprefix("db-")) for path in extracts(bench.directory)}
    assert len(files) > 5
    assert found == files - {max(files)}
    bench.store.close()
    whole, extracted = replayed(bench.directory, no_extract)
    assert not extracted
    state, extracted = replayed(bench.directory, read_extract)
    assert state == whole
    # The last two are read, whatever there is.
    assert extracted == {*sorted(files)[:-2]}


def test_messages_of_extracts_are_read_and_found(tmp_path: Path) -> None:
    bench = filled(tmp_path / "kahadb")
    bench.crash()
    client = bench.connect()
    bodies = [bench.bodies(client, "orders", partition=each, count=100) for each in (0, 1)]
    assert bodies == [["x" * 600] * 60] * 2
    find = bench.broker.streams.queries.find_key
    assert [each.offset for _, each in find("orders", "k5", 0, START * 2, 10)] == [2]
    assert [each.offset for _, each in find("orders", "U118", 0, START * 2, 10)] == [59]
    assert len(find("orders", "all", 0, START * 2, 200)) == 120
    bench.append(client, "orders", "next", partition=1)
    assert bench.broker.streams.queries.offsets("orders", 1) == (0, 61)


class Life:
    """A broker with streams and a queue, to which anything happens that a journal may tell."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.bench = small_bench(directory)
        self.client = self.bench.connect()
        self.chance = chance
        self.halves: list[int] = []
        self.waiting: list[Reference] = []

    def append(self) -> None:
        drafts = [
            Draft(self.chance.randbytes(self.chance.choice([0, 50, 3_000])), self._properties())
            for _ in range(self.chance.randint(1, 8))
        ]
        taken(self.client)
        stream, partition = self.chance.choice(["a", "b"]), self.chance.randint(0, 1)
        self.bench.append(self.client, stream, *drafts, partition=partition)

    def _properties(self) -> dict[str, str]:
        choices = [{}, {"KEYS": "k l"}, {"UNIQ_KEY": "U", "TAGS": "t"}, {"KEYS": "x" * 20_000}]
        return dict(self.chance.choices(choices, [6, 6, 6, 1])[0])

    def begin_half(self) -> None:
        self.bench.broker.streams.begin_transaction(self.client, "h", "p", "a", 0, Draft(b"h"))
        self.bench.settle()
        self.halves += [each.number for each in taken(self.client) if isinstance(each, HalfStored)]

    def end_half(self) -> None:
        if self.halves:
            number = self.halves.pop(self.chance.randrange(len(self.halves)))
            outcome = self.chance.choice([Outcome.COMMIT, Outcome.ROLLBACK])
            self.bench.broker.streams.end_transaction(self.client, "e", number, outcome)
            self.bench.settle()

    def take(self) -> None:
        """Take a message from its segment, as somebody at ActiveMQ may."""
        segments = list(self.bench.store.streams.segments)
        segment = self.chance.choice(segments) if segments else None
        if segment is not None and len(segment):
            entry = segment.entry(self.chance.randrange(segment.base, segment.end))
            if entry is not None:
                gone = Reference(None, entry.size, entry.location, WRITTEN)
                self.bench.store.remove(segment.destination, gone)
                self.bench.settle()
                segment.take_out(entry.offset)

    def apart(self) -> None:
        for stream in self.bench.broker.streams:
            stream.partition(0)._is_apart = True

    def commit_offset(self) -> None:
        if self.bench.broker.streams.find("a") is not None:
            self.bench.broker.streams.commit_offset("g", "a", 0, self.chance.randint(0, 9))
            self.bench.broker.streams.groups.write()

    def wait(self) -> None:
        self.bench.tick(self.chance.choice([1, 2_000, 12_000]))
        self.bench.extract()

    def delete(self) -> None:
        if self.bench.broker.streams.find("b") is not None:
            self.bench.broker.streams.remove("b")

    def start_again(self) -> None:
        self.chance.choice([self.bench.restart, self.bench.crash])()
        self.client = self.bench.connect()


OPERATIONS = {
    Life.append: 20, Life.begin_half: 2, Life.end_half: 2, Life.take: 1, Life.apart: 1,
    Life.commit_offset: 3, Life.wait: 6, Life.delete: 1, Life.start_again: 1,
}  # fmt: skip


def lived(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> tuple[list[Any], list[Any], set[int]]:
    """Return what two starts learn after a life, and the files of which one read extracts."""
    chance = random.Random(seed)
    life = Life(tmp_path_factory.mktemp("life") / "kahadb", chance)
    for operation in chance.choices(list(OPERATIONS), list(OPERATIONS.values()), k=120):
        operation(life)
        life.bench.settle()
    life.bench.extract()
    life.bench.store.close()
    whole, _ = replayed(life.bench.directory, no_extract)
    state, extracted = replayed(life.bench.directory, read_extract)
    shutil.rmtree(life.bench.directory.parent)
    return whole, state, extracted


@example(seed=DELETED_AND_MADE_AGAIN)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32))
def test_a_start_learns_the_same_from_extracts(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    whole, state, _ = lived(tmp_path_factory, seed)
    assert state == whole


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Return the directory of a broker that has ended, with extracts."""
    bench = filled(tmp_path / "kahadb")
    bench.store.close()
    return bench.directory


def test_an_extract_with_any_byte_changed_is_not_believed(closed: Path) -> None:
    path = extracts(closed)[0]
    data = path.read_bytes()
    chance = random.Random(7)
    for at in [*range(60), *chance.choices(range(len(data)), k=200), len(data) - 1]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        assert 1 not in replayed(closed, read_extract)[1]
    for size in (0, 3, 20, 30, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        assert 1 not in replayed(closed, read_extract)[1]


@pytest.mark.parametrize("change", ["time", "length"])
def test_an_extract_of_a_file_that_was_changed_is_not_believed(closed: Path, change: str) -> None:
    path = closed / "db-1.log"
    state, believed = path.stat(), read_files(closed)
    assert 1 in believed
    if change == "length":
        with path.open("ab") as file:
            file.write(b"\0")
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    else:
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    whole, _ = replayed(closed, no_extract)
    assert replayed(closed, read_extract) == (whole, believed - {1})


def read_files(directory: Path) -> set[int]:
    """Return the files of which a start reads extracts."""
    return replay_directory(directory, extract_of=read_extract).extracted


def test_damage_of_other_records_is_found_beside_an_extract(closed: Path) -> None:
    path = closed / "db-2.log"
    extract = read_extract(data_file(path))
    assert extract is not None
    start, end = extract.others[0]
    state = path.stat()
    data = bytearray(path.read_bytes())
    data[(start + end) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(DamagedError):
        replay_directory(closed, extract_of=read_extract)


@pytest.fixture
def harmed(closed: Path) -> Path:
    """Return a directory with damage in a stream's message that only an extract speaks for."""
    path = closed / "db-1.log"
    extract = read_extract(data_file(path))
    assert extract is not None
    location, _ = list(each_place(extract.parts[0].entries))[3]
    state, data = path.stat(), bytearray(path.read_bytes())
    data[location & OFFSET_MASK] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert 1 in read_files(closed)
    return closed


def messages(store: KahaDBStore, recovered: Recovered) -> int:
    """Read all messages of streams, and return how many there are."""
    found = 0
    for segment in recovered.segments:
        for offset in range(segment.base, segment.end):
            entry = segment.entry(offset)
            if entry is not None:
                found += len(store.streams.read_frames([entry]))
    return found


def test_who_accepts_loss_has_damage_behind_extracts_found(harmed: Path) -> None:
    store = KahaDBStore(harmed, accept_loss=True)
    recovered = store.open()
    assert 0 < messages(store, recovered) < 120
    store.close()
    assert [path.name.partition(".log.")[0] for path in (harmed / "damaged").glob("*.log.*")] == [
        "db-1"
    ]


def test_damage_behind_an_extract_is_found_by_the_start_after_a_read(harmed: Path) -> None:
    store = KahaDBStore(harmed)
    recovered = store.open()
    with pytest.raises(StoreError, match=r"db-1\.log: bad message"):
        messages(store, recovered)
    store.close()
    assert not extract_path(harmed / "db-1.log").exists()
    with pytest.raises(DamagedError, match=r"db-1\.log"):
        KahaDBStore(harmed).open()
    store = KahaDBStore(harmed, accept_loss=True)
    assert messages(store, store.open()) > 0
    store.close()


def data_file(path: Path) -> DataFile:
    return DataFile(int(path.stem.removeprefix("db-")), path, path.stat().st_size)


def test_nothing_behind_a_torn_file_is_believed(closed: Path) -> None:
    path = closed / "db-1.log"
    extract_path(path).unlink()
    path.write_bytes(path.read_bytes()[: FILE_BYTES // 2])
    with pytest.raises(DamagedError):
        replay_directory(closed, extract_of=read_extract)


def test_an_extract_goes_with_its_file(tmp_path: Path) -> None:
    bench = filled(tmp_path / "kahadb")
    before = extracts(bench.directory)
    # What a thread reads, for an extract or a compaction, is not deleted meanwhile.
    until = time.monotonic() + DELETED_SECONDS_MAX
    while set(before) & set(extracts(bench.directory)) and time.monotonic() < until:
        client = bench.connect()
        bench.append(client, "orders", "y" * 3_000, partition=0)
        bench.append(client, "orders", "y" * 3_000, partition=1)
        bench.tick(5_000)
        bench.store.maintain(bench.now)
        # A thread that does not get the interpreter meanwhile would read for ever.
        time.sleep(0.001)
    left = extracts(bench.directory)
    assert not set(before) & set(left)
    assert all(path.with_suffix(".log").exists() for path in left)
    bench.store.close()


def test_an_extract_without_a_file_is_deleted(closed: Path) -> None:
    stray = closed / "db-99.streams"
    shutil.copy(extracts(closed)[0], stray)
    store = KahaDBStore(closed)
    store.open()
    assert not stray.exists()
    store.close()


def test_only_streams_have_extracts(tmp_path: Path) -> None:
    bench = small_bench(tmp_path / "kahadb")
    store = bench.store
    for _ in range(200):
        store.trace("x" * 500)
        store.remember_queue(queue("q"))
        bench.settle()
    bench.extract()
    assert len(store.files()) > 2
    assert not extracts(bench.directory)
    store.close()


def test_the_comparison_finds_a_segment_that_ended(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: the order of the records in a file would count for nothing."""
    monkeypatch.setattr(extracting, "_ends_one_of", lambda *_: False)
    # When the disk is slow, files may be cut elsewhere.
    for _ in range(10):
        whole, state, _ = lived(tmp_path_factory, DELETED_AND_MADE_AGAIN)
        if state != whole:
            return
    pytest.fail("not found")
