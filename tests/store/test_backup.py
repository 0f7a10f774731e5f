"""A journal is copied as it was at one moment, whatever happens to it meanwhile, and put back."""

import errno
import itertools
import json
import os
import random
import shutil
import threading
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.journal.files import data_file_id
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.store.backup import back_up, copy_journal, restore
from lockkeeper.store.backup.manifest import Manifest
from lockkeeper.store.backup.places import LocalPlace, open_place
from lockkeeper.store.backup.series import choose, delete_old
from lockkeeper.store.base import Add, Operation, Reference, Remove, StoreError, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.compaction import Settings
from lockkeeper.store.kahadb.lock import DirectoryLock

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb"
SCENARIOS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
QUEUES = [queue("A"), queue("B")]
NEWS = topic("NEWS")
READER = Subscription("client", "reader", NEWS, None, False)
EAGER = Settings(after_no_gc=1, ignores_store_growth=True)
FILE_BYTES = 6000
CLEANUP_MS = 30_000

Contents = dict[str, tuple[int, ...]]
"""Numbers of the messages in each queue, and under `news` those of the subscription."""


def contents(directory: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    """Return every message in a journal, byte by byte, by destination and subscription."""
    store = KahaDBStore(directory)
    recovered = store.open()
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    lists = {str(name): list(references) for name, references in recovered.queues.items()}
    for each in recovered.subscriptions:
        lists[each.subscription.key + str(each.subscription.destination)] = each.pending
    for identifier, operations in recovered.prepared.items():
        lists[str(identifier)] = [one for each in operations for one in each.references]
    for name, references in lists.items():
        store.load(references, 1)
        found[name] = [(one.loaded.key, bytes(one.loaded.body)) for one in references]
    store.close()
    return found


class Writer(threading.Thread):
    """A broker's store at work: every change is a batch, and noted with where it ends."""

    def __init__(self, directory: Path, kit: Kit, seed: int) -> None:
        super().__init__()
        self.directory, self.kit = directory, kit
        self.random = random.Random(seed)
        self.queues: dict[Destination, dict[int, Reference]] = {name: {} for name in QUEUES}
        self.news: dict[int, Reference] = {}
        self.number = 0
        self.steps = 0
        self.states: list[tuple[tuple[int, int], Contents]] = []
        self.failure: BaseException | None = None
        self.is_over = False
        self.deleted = 0

    def run(self) -> None:
        try:
            self.open()
            self.store.subscribe(READER, None)
            self.note()
            while not self.is_over:
                self.step()
            self.store.close()
        except BaseException as error:
            self.failure = error

    def open(self) -> None:
        self.store = KahaDBStore(
            self.directory,
            file_bytes_max=FILE_BYTES,
            clock=self.kit.clock,
            compaction=EAGER,
        )
        recovered = self.store.open()
        for name in QUEUES:
            references = list(recovered.queues.get(name, ()))
            numbers = self.kit.numbers(self.store, references)
            self.queues[name] = dict(zip(numbers, references, strict=True))
        for each in recovered.subscriptions:
            numbers = self.kit.numbers(self.store, each.pending)
            self.news = dict(zip(numbers, each.pending, strict=True))

    def note(self) -> None:
        """Make all durable, then say what there is up to here."""
        self.kit.until_durable(self.store)
        files = self.store._files
        state = {str(name): tuple(numbers) for name, numbers in self.queues.items()}
        state["news"] = tuple(self.news)
        self.states.append(((files.file_id, files.end), state))

    def step(self) -> None:
        self.steps += 1
        actions = [self.add, self.consume, self.publish, self.read, self.transact]
        self.random.choices(actions, [6, 6, 3, 3, 2])[0]()
        self.note()
        if self.steps % 7 == 0:
            before = set(self.directory.glob("db-*.log"))
            self.kit.maintain(self.store, self.steps * CLEANUP_MS)
            self.note()
            self.deleted += len(before - set(self.directory.glob("db-*.log")))
        if self.steps % 97 == 0:
            self.store.close()
            self.open()

    def new(self, destination: Destination) -> Reference:
        self.number += 1
        return self.kit.reference(self.number, destination, self.random.choice([10, 400, 1500]))

    def add(self) -> None:
        name = self.random.choice(QUEUES)
        one = self.new(name)
        self.store.add(name, one, None)
        self.queues[name][self.number] = one

    def pick(self) -> tuple[Destination, Reference] | None:
        name = self.random.choice(QUEUES)
        numbers = list(self.queues[name])
        if len(numbers) < 3:
            return None
        number = numbers[int(len(numbers) * self.random.random() ** 3)]
        return name, self.queues[name].pop(number)

    def consume(self) -> None:
        picked = self.pick()
        if picked:
            self.store.remove(*picked)

    def publish(self) -> None:
        one = self.new(NEWS)
        self.store.add(NEWS, one, None)
        self.news[self.number] = one

    def read(self) -> None:
        if self.news:
            one = self.news.pop(next(iter(self.news)))
            self.store.remove(NEWS, one, None, READER)

    def transact(self) -> None:
        name = self.random.choice(QUEUES)
        one = self.new(name)
        self.queues[name][self.number] = one
        operations: list[Operation] = [Add(name, [one])]
        picked = self.pick()
        if picked and picked[1] is not one:
            operations.append(Remove(picked[0], [picked[1]]))
        elif picked:
            self.queues[picked[0]][self.number] = one
        self.store.commit(LocalTransactionId("ID:c-1", self.steps), operations, None)


def shown(directory: Path, kit: Kit) -> Contents:
    """Return the state of a restored journal as the writer notes it."""
    store = KahaDBStore(directory)
    recovered = store.open()
    state = {
        str(name): tuple(kit.numbers(store, list(recovered.queues.get(name, ()))))
        for name in QUEUES
    }
    (news,) = recovered.subscriptions
    state["news"] = tuple(kit.numbers(store, news.pending))
    store.close()
    return state


@pytest.mark.parametrize("seed", range(4))
def test_a_backup_is_the_journal_at_its_mark_while_it_is_written(
    seed: int, tmp_path: Path, kit: Kit
) -> None:
    writer = Writer(tmp_path / "data", kit, seed)
    writer.start()
    backups: list[tuple[int, Path, Manifest]] = []
    try:
        while len(backups) < 12 or not writer.deleted:
            if writer.states:
                known = len(writer.states)
                target = tmp_path / f"backup-{len(backups)}"
                backups.append((known, target, back_up(writer.directory, LocalPlace(target))))
            assert writer.is_alive(), writer.failure
    finally:
        writer.is_over = True
        writer.join()
    assert writer.failure is None
    for number, (known, target, manifest) in enumerate(backups):
        name, _, offset = manifest.mark.partition(":")
        file_id = data_file_id(name)
        assert file_id is not None
        mark = (file_id, int(offset))
        assert mark >= writer.states[known - 1][0], "something durable is missing"
        before = [state for place, state in writer.states if place <= mark][-1]
        at_or_after = next(state for place, state in writer.states if place >= mark)
        restore(LocalPlace(target), tmp_path / f"restored-{number}")
        found = shown(tmp_path / f"restored-{number}", kit)
        assert found in (before, at_or_after)
        if mark in dict(writer.states):
            assert found == before
        assert manifest.pending == sum(map(len, found.values()))


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("where", ["directory", "object store"])
def test_a_journal_of_activemq_comes_back_identically(
    scenario: str, where: str, tmp_path: Path
) -> None:
    source = shutil.copytree(GOLDEN / scenario, tmp_path / "data")
    before = {path.name: path.read_bytes() for path in source.iterdir()}
    url = f"memory://{tmp_path.name}-{scenario}"
    place = open_place(url if where == "object store" else str(tmp_path / "backup"))
    back_up(source, place)
    assert {path.name: path.read_bytes() for path in source.iterdir()} == before
    restore(place, tmp_path / "restored")
    expected = contents(source)
    assert expected
    assert contents(tmp_path / "restored") == expected


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of ActiveMQ with several files."""
    return shutil.copytree(GOLDEN / "amq-5.17.2-crash", tmp_path / "data")


def test_a_file_deleted_after_the_moment_is_copied_all_the_same(
    journal: Path, tmp_path: Path
) -> None:
    expected = contents(shutil.copytree(journal, tmp_path / "copy"))
    reads: list[int] = []

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        reads.append(descriptor)
        if len(reads) == 2:
            for path in journal.glob("db-*.log"):
                path.unlink()
        return os.pread(descriptor, size, offset)

    back_up(journal, LocalPlace(tmp_path / "backup"), read_at)
    restore(LocalPlace(tmp_path / "backup"), tmp_path / "restored")
    assert contents(tmp_path / "restored") == expected


def test_where_deleted_files_are_forgotten_another_moment_is_copied(
    journal: Path, tmp_path: Path
) -> None:
    reads: list[int] = []

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        reads.append(os.fstat(descriptor).st_ino)
        if len(reads) == 3:
            (journal / "db-1.log").unlink()
            raise OSError(errno.ESTALE, "Stale file handle")
        return os.pread(descriptor, size, offset)

    manifest = back_up(journal, LocalPlace(tmp_path / "backup"), read_at)
    names = [f"db-{number}.log" for number in range(2, 6)]
    assert [file.name for file in manifest.files] == names
    found = {path.name for path in (tmp_path / "backup").iterdir()}
    assert found == {*names, "manifest.json"}
    # The last one, to find the end, twice; each of the others once, and what was not copied.
    assert len(reads) == 1 + 1 + 1 + 1 + 3


def test_a_directory_that_never_stands_still_is_given_up(journal: Path, tmp_path: Path) -> None:
    numbers = itertools.count(6)

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        if size > len(EOF_RECORD):
            (journal / f"db-{next(numbers)}.log").write_bytes(EOF_RECORD)
        return os.pread(descriptor, size, offset)

    with pytest.raises(StoreError, match="20 times while it was looked at; try again"):
        back_up(journal, LocalPlace(tmp_path / "backup"), read_at)
    assert not (tmp_path / "backup").exists()


def test_a_damaged_journal_is_not_copied_and_the_way_out_is_told(
    journal: Path, tmp_path: Path
) -> None:
    data = bytearray((journal / "db-2.log").read_bytes())
    data[3000] ^= 0xFF
    (journal / "db-2.log").write_bytes(data)
    with pytest.raises(StoreError, match=r"db-2\.log: corrupt batch.*lockkeeper journal salvage"):
        back_up(journal, LocalPlace(tmp_path / "backup"))
    assert not (tmp_path / "backup" / "manifest.json").exists()


def test_a_write_that_was_cut_off_is_left_out(journal: Path, tmp_path: Path) -> None:
    whole = back_up(journal, LocalPlace(tmp_path / "whole"))
    end = whole.files[-1].size
    batch = (journal / "db-1.log").read_bytes()[:200]
    with (journal / "db-5.log").open("r+b") as file:
        file.truncate(end)
        file.seek(end)
        file.write(batch[:60])
    assert back_up(journal, LocalPlace(tmp_path / "torn")).files == whole.files


def test_a_directory_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no journal here, files db-N\.log are expected"):
        back_up(tmp_path, LocalPlace(tmp_path / "backup"))


def test_nothing_is_put_where_something_is(journal: Path, tmp_path: Path) -> None:
    place = LocalPlace(tmp_path / "backup")
    back_up(journal, place)
    with pytest.raises(StoreError, match="not empty; give a place that is not there yet"):
        back_up(journal, place)
    with pytest.raises(StoreError, match=r"not empty, db-1\.log is there"):
        restore(place, journal)


def test_a_changed_backup_is_not_restored(journal: Path, tmp_path: Path) -> None:
    place = LocalPlace(tmp_path / "backup")
    back_up(journal, place)
    data = bytearray(place.read("db-3.log"))
    data[-1] ^= 1
    (place.directory / "db-3.log").write_bytes(data)
    with pytest.raises(StoreError, match=r"db-3\.log: not the \d+ bytes that the manifest"):
        restore(place, tmp_path / "restored")
    assert not list((tmp_path / "restored").glob("db-*.log"))


def test_a_copy_without_manifest_is_no_backup(journal: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no whole backup, manifest\.json is missing"):
        restore(LocalPlace(journal), tmp_path / "restored")
    (journal / "manifest.json").write_text('{"format": "lockkeeper-backup/2"}')
    with pytest.raises(StoreError, match="format lockkeeper-backup/2, not lockkeeper-backup/1"):
        restore(LocalPlace(journal), tmp_path / "restored")
    (journal / "manifest.json").write_text(
        json.dumps(
            {
                "format": "lockkeeper-backup/1",
                "at": 1,
                "epoch": 0,
                "pending": 0,
                "files": [{"name": "../db-1.log", "size": 1, "sha256": ""}],
            }
        )
    )
    with pytest.raises(StoreError, match=r"no manifest of a backup: a file is no db-N\.log"):
        restore(LocalPlace(journal), tmp_path / "restored")


def test_a_restore_that_was_broken_off_is_begun_anew(journal: Path, tmp_path: Path) -> None:
    place = LocalPlace(tmp_path / "backup")
    back_up(journal, place)
    restored = tmp_path / "restored"
    (restored / ".restoring").mkdir(parents=True)
    (restored / ".restoring" / "db-2.log").write_bytes(b"half")
    (restored / "db-1.log").write_bytes(b"already named")
    (restored / "lost+found").mkdir()
    restore(place, restored)
    assert contents(restored) == contents(journal)


@pytest.mark.parametrize("begun", [True, False])
def test_a_restore_and_a_broker_are_never_at_work_in_one_directory(
    journal: Path, tmp_path: Path, begun: bool
) -> None:
    place, restored = LocalPlace(tmp_path / "backup"), tmp_path / "restored"
    back_up(journal, place)
    if begun:
        # As a restore that was broken off left it: a broker has begun there since.
        (restored / ".restoring").mkdir(parents=True)
    broker = DirectoryLock(restored)
    assert broker.try_acquire(1)
    (restored / "db-1.log").write_bytes(b"of the broker")
    with pytest.raises(StoreError, match="a broker, or another restore, has the lock"):
        restore(place, restored)
    with pytest.raises(StoreError, match="a broker, or another restore, has the lock"):
        copy_journal(journal, restored)
    assert (restored / "db-1.log").read_bytes() == b"of the broker"
    broker.release()


def test_a_broker_stands_by_while_its_journal_is_put_back(journal: Path, tmp_path: Path) -> None:
    back_up(journal, LocalPlace(tmp_path / "backup"))
    restored = tmp_path / "restored"
    broker = DirectoryLock(restored)
    seen: list[bool] = []

    class Watched(LocalPlace):
        def read(self, name: str) -> bytes:
            if name.endswith(".log"):
                seen.append(broker.try_acquire(1))
            return super().read(name)

    restore(Watched(tmp_path / "backup"), restored)
    assert set(seen) == {False}
    assert broker.try_acquire(1)
    broker.release()
    assert contents(restored) == contents(journal)


def clock(at: int) -> str:
    return f'lk1 {{"t":"clock","at":{at}}}'


@pytest.fixture
def timed(tmp_path: Path, kit: Kit) -> LocalPlace:
    """The backup of a journal with a message at 1000, 2000, … ms, in files of three."""
    store = KahaDBStore(tmp_path / "timed", file_bytes_max=2000)
    store.open()
    for number in range(1, 10):
        if number == 8:
            store.trace("LOADED by another broker")
            kit.until_durable(store)
        store.add(QUEUES[0], kit.reference(number, QUEUES[0], 300), None)
        store.trace(clock(number * 1000))
        kit.until_durable(store)
        # Written within the same 50 ms: it has no clock line of its own.
        store.add(QUEUES[0], kit.reference(number + 100, QUEUES[0], 100), None)
        kit.until_durable(store)
    store.close()
    assert len(list((tmp_path / "timed").glob("db-*.log"))) > 2
    place = LocalPlace(tmp_path / "backup")
    back_up(tmp_path / "timed", place)
    return place


@pytest.mark.parametrize(
    ("until", "last"),
    [(1000, 1), (1500, 1), (2000, 2), (4999, 4), (6999, 6), (8000, 8), (10**6, 9)],
)
def test_a_journal_ends_at_a_point_in_time(
    until: int, last: int, timed: LocalPlace, tmp_path: Path, kit: Kit
) -> None:
    pending = restore(timed, tmp_path / "restored", until)
    expected = [each for number in range(1, last + 1) for each in (number, number + 100)]
    assert pending == len(expected)
    store = KahaDBStore(tmp_path / "restored")
    assert kit.numbers(store, list(store.open().queues[QUEUES[0]])) == expected
    # The journal goes on from there.
    store.add(QUEUES[0], kit.reference(50, QUEUES[0]), None)
    kit.until_durable(store)
    store.close()


def test_a_time_that_the_journal_does_not_tell_is_refused(
    timed: LocalPlace, journal: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match=r"is older than 1970-01-01T00:00:01\.000"):
        restore(timed, tmp_path / "restored", 999)
    between = r"behind 1970-01-01T00:00:07\.000\S+ a broker wrote.*or 1970-01-01T00:00:08\.000"
    with pytest.raises(StoreError, match=between):
        restore(timed, tmp_path / "restored", 7500)
    with pytest.raises(StoreError, match=r"ends at 20.*take a later backup"):
        restore(timed, tmp_path / "restored", 10**14)
    place = LocalPlace(tmp_path / "amq")
    back_up(journal, place)
    with pytest.raises(StoreError, match="its journal tells none"):
        restore(place, tmp_path / "restored", 1000)
    # What was refused is not in the way.
    restore(timed, tmp_path / "restored", 7000)


@pytest.mark.parametrize("where", ["directory", "object store"])
def test_a_series_keeps_its_newest(where: str, journal: Path, tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}-series"
    series = open_place(url if where == "object store" else str(tmp_path / "series"))
    names = [f"2026112{day}T000000Z" for day in range(5)]
    made = {name: back_up(journal, series.below(name)) for name in names if name != names[3]}
    series.below(names[3]).write("db-1.log", b"broken off")
    series.write("notes", b"not ours")
    assert delete_old(series, keep=2) == 3
    assert series.names() == [names[2], names[4], "notes"]
    restore(choose(series, None), tmp_path / "restored")
    assert str(choose(series, None)).endswith(names[4])
    assert str(choose(series, made[names[2]].at)).endswith(names[2])
    assert str(choose(series, made[names[4]].at)).endswith(names[4])
    with pytest.raises(StoreError, match="no backup was taken at"):
        choose(series, made[names[4]].at + 1)
