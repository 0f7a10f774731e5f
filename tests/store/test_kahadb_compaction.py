"""Copies of data files without what nobody needs: what they free, and that nothing else changes."""

import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from store_kit import Kit

from lockkeeper.journal.batch import build_batch
from lockkeeper.journal.compacted import HEAD_BYTES, Compaction, compaction_in, first_in
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import Trace
from lockkeeper.journal.recount import recount_directory
from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import LocalTransactionId, TransactionId, XATransactionId
from lockkeeper.store.base import Add, Operation, Reference, Remove, StoreError, Subscription
from lockkeeper.store.kahadb import KahaDBStore, sifting
from lockkeeper.store.kahadb.audit import differences
from lockkeeper.store.kahadb.compaction import Settings
from lockkeeper.store.kahadb.rewriting import Rewriting
from lockkeeper.store.kahadb.sifting import Pace

A, B, DEAD, SLOW = queue("A"), queue("B"), queue("DLQ"), queue("SLOW")
NEWS = topic("NEWS")
FAST_READER = Subscription("client", "fast", NEWS, None, False)
SLOW_READER = Subscription("client", "slow", NEWS, None, False)
FILE_BYTES = 16 * 1024
EAGER = Settings(after_no_gc=1, ignores_store_growth=True)
NEVER = Settings(is_enabled=False)
ROUNDS_MAX = 500

Contents = dict[Destination | str | XATransactionId, list[int]]
"""Numbers of the messages in each queue, in order, of each subscription and transaction."""


def make(
    directory: Path, kit: Kit, settings: Settings = EAGER, archive: bool = False
) -> KahaDBStore:
    return KahaDBStore(
        directory,
        file_bytes_max=FILE_BYTES,
        cleanup_interval_ms=0,
        clock=kit.clock,
        compaction=settings,
        archive=archive,
    )


def clean_up(store: KahaDBStore, kit: Kit) -> None:
    """Let the store do all that is due, until nothing changes any more."""
    idle = 0
    for _ in range(ROUNDS_MAX):
        before = store.usage()[:2]
        kit.maintain(store, kit.clock.now + 1000)
        kit.until_durable(store)
        is_idle = store.usage()[:2] == before and not store._compaction.busy
        idle = idle + 1 if is_idle else 0
        if idle == 4:
            return
    raise AssertionError("the clean-up does not come to an end")


def journal_bytes(directory: Path) -> int:
    return sum(file.size for file in list_data_files(directory))


def allowed_bytes(directory: Path) -> int:
    live = sum(kept.live_bytes for kept in recount_directory(directory).files.values())
    return 3 * live + 4 * FILE_BYTES


def contents(directory: Path, kit: Kit, tmp_path: Path) -> Contents:
    """Return what a restart finds, in order: read from a copy of the directory."""
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    store = make(copy, kit, NEVER)
    recovered = store.open()
    found: Contents = {}
    for name, waiting in recovered.queues.items():
        found[name] = kit.numbers(store, waiting)
    for one in recovered.subscriptions:
        found[one.subscription.key] = kit.numbers(store, one.pending)
    for identifier, operations in recovered.prepared.items():
        references = [one for each in operations for one in each.references]
        found[identifier] = kit.numbers(store, references)
    store.close()
    shutil.rmtree(copy)
    return found


class Traffic:
    """Fast and slow consumers in one store, and what each destination must hold."""

    def __init__(self, store: KahaDBStore, kit: Kit, seed: int) -> None:
        self.random = random.Random(seed)
        self.store = store
        self.kit = kit
        self.number = 0
        self.waiting: dict[Destination, list[Reference]] = {A: [], B: [], DEAD: [], SLOW: []}
        self.pending: dict[Subscription, list[Reference]] = {FAST_READER: [], SLOW_READER: []}
        self.prepared: dict[XATransactionId, list[Operation]] = {}
        for subscription in self.pending:
            store.subscribe(subscription, None)

    def new(self, destination: Destination) -> Reference:
        self.number += 1
        size = self.random.choice([60, 200, 900, 3000])
        return self.kit.reference(self.number, destination, size)

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.5:
            self.send(A)
        elif chance < 0.6:
            self.send(SLOW)
        elif chance < 0.7:
            self.publish()
        elif chance < 0.8:
            self.move(LocalTransactionId("ID:c:1", self.number))
        elif chance < 0.81:
            self.send(DEAD)
        elif chance < 0.82:
            self.prepare()
        elif chance < 0.84:
            self.decide()
        self.consume()
        if self.random.random() < 0.3:
            self.kit.until_durable(self.store)

    def send(self, destination: Destination) -> None:
        one = self.new(destination)
        self.store.add(destination, one, None)
        self.waiting[destination].append(one)

    def publish(self) -> None:
        one = self.new(NEWS)
        one.holders = len(self.pending)
        self.store.add(NEWS, one, None)
        for references in self.pending.values():
            references.append(one)

    def move(self, identifier: TransactionId) -> None:
        """Consume from one queue and send to another, in a transaction."""
        if self.waiting[A]:
            add = Add(B, [self.new(B) for _ in range(self.random.randint(1, 3))])
            self.store.commit(identifier, [Remove(A, [self.waiting[A].pop(0)]), add], None)
            self.waiting[B].extend(add.references)

    def prepare(self) -> None:
        if self.waiting[A]:
            identifier = XATransactionId(1, b"%d" % self.number, b"b")
            operations: list[Operation] = [
                Remove(A, [self.waiting[A].pop(0)]),
                Add(B, [self.new(B)]),
            ]
            self.store.prepare(identifier, operations, None)
            self.prepared[identifier] = operations

    def decide(self) -> None:
        if self.prepared:
            identifier = self.random.choice(list(self.prepared))
            operations = self.prepared.pop(identifier)
            self.store.commit_prepared(identifier, operations, None)
            self.waiting[B].extend(operations[1].references)

    def consume(self) -> None:
        for destination, most in ((A, 5), (B, 5), (SLOW, 60)):
            while len(self.waiting[destination]) > most:
                one = self.waiting[destination].pop(0)
                self.store.remove(destination, one, skip_unwritten=False)
        for subscription, most in ((FAST_READER, 2), (SLOW_READER, 30)):
            while len(self.pending[subscription]) > most:
                one = self.pending[subscription].pop(0)
                self.store.remove(NEWS, one, None, subscription)

    def expected(self) -> Contents:
        """Return what a restart must find."""
        found: Contents = {
            destination: list(map(self.kit.number_of, references))
            for destination, references in self.waiting.items()
            if references
        }
        for subscription, references in self.pending.items():
            found[subscription.key] = list(map(self.kit.number_of, references))
        for identifier, operations in self.prepared.items():
            references = [each for one in operations for each in one.references]
            found[identifier] = list(map(self.kit.number_of, references))
        return found

    def unload(self) -> None:
        """Let bodies leave the memory, and read them back."""
        everything = [*self.waiting.values(), *self.pending.values()]
        references = {id(one): one for several in everything for one in several}
        written = [one for one in references.values() if one.state == 2]
        before = [one.loaded.body for one in written]
        for one in written:
            one.message = None
        self.store.load(written, 1)
        assert [len(one.loaded.body) for one in written] == list(map(len, before))


@pytest.mark.parametrize("seed", range(4))
def test_journal_stays_short_under_mixed_traffic(seed: int, tmp_path: Path, kit: Kit) -> None:
    directory = tmp_path / "data"
    store = make(directory, kit)
    store.open()
    traffic = Traffic(store, kit, seed)
    for _ in range(5):
        for _ in range(150):
            traffic.step()
        kit.until_durable(store)
        expected = traffic.expected()
        clean_up(store, kit)
        assert differences(directory, store._file_references) == []
        assert contents(directory, kit, tmp_path) == expected
        assert journal_bytes(directory) <= allowed_bytes(directory)
        traffic.unload()
        assert traffic.expected() == expected
    store.close()
    assert contents(directory, kit, tmp_path) == traffic.expected()


def keep_one(store: KahaDBStore, kit: Kit, count: int = 300) -> tuple[Reference, list[Reference]]:
    """Let one message stay, and others come and go behind it; returns those that are left."""
    stays = kit.reference(1, DEAD, 2000)
    store.add(DEAD, stays, None)
    waiting: list[Reference] = []
    for number in range(2, 2 + count):
        one = kit.reference(number, A, 2000)
        store.add(A, one, None)
        waiting.append(one)
        if len(waiting) > 5:
            store.remove(A, waiting.pop(0), skip_unwritten=False)
        if number % 5 == 0:
            kit.until_durable(store)
    kit.until_durable(store)
    return stays, waiting


def test_one_message_that_stays_does_not_keep_the_files_behind_it(tmp_path: Path, kit: Kit) -> None:
    store = make(tmp_path / "data", kit)
    store.open()
    stays, waiting = keep_one(store, kit)
    assert len(list_data_files(tmp_path / "data")) > 30
    clean_up(store, kit)
    assert len(list_data_files(tmp_path / "data")) <= 4
    assert store.usage().bytes_on_disk == journal_bytes(tmp_path / "data")
    stays.message = None
    store.load([stays], 1)
    assert kit.number_of(stays) == 1
    assert contents(tmp_path / "data", kit, tmp_path) == {
        DEAD: [1],
        A: [kit.number_of(one) for one in waiting],
    }
    store.close()


def test_files_stay_when_compaction_is_switched_off(tmp_path: Path, kit: Kit) -> None:
    store = make(tmp_path / "data", kit, NEVER)
    store.open()
    keep_one(store, kit)
    before = len(list_data_files(tmp_path / "data"))
    clean_up(store, kit)
    assert len(list_data_files(tmp_path / "data")) == before
    store.close()


@pytest.mark.parametrize(("settings", "rounds"), [(Settings(after_no_gc=3), 3), (EAGER, 1)])
def test_short_journal_is_compacted_after_clean_ups_that_freed_nothing(
    settings: Settings, rounds: int, tmp_path: Path, kit: Kit
) -> None:
    store = make(tmp_path / "data", kit, settings)
    store.open()
    keep_one(store, kit, 17)
    assert journal_bytes(tmp_path / "data") <= allowed_bytes(tmp_path / "data")
    for _ in range(rounds - 1):
        kit.maintain(store, kit.clock.now + 1000)
        assert not store._compaction.busy
    for _ in range(2):
        kit.maintain(store, kit.clock.now + 1000)
        kit.until_durable(store)
    clean_up(store, kit)
    assert list_data_files(tmp_path / "data")[0].size < FILE_BYTES
    store.close()


def test_a_short_journal_that_grows_is_left_alone_by_default(tmp_path: Path, kit: Kit) -> None:
    store = make(tmp_path / "data", kit, Settings(after_no_gc=1))
    store.open()
    keep_one(store, kit, 12)
    for number in range(1000, 1020):
        store.add(SLOW, kit.reference(number, SLOW, 14_000), None)
        kit.until_durable(store)
        kit.maintain(store, kit.clock.now + 1000)
        assert not store._compaction.busy
    store.close()


def test_file_that_is_copied_stays_whole_in_the_archive(tmp_path: Path, kit: Kit) -> None:
    directory = tmp_path / "data"
    store = make(directory, kit, archive=True)
    store.open()
    keep_one(store, kit)
    whole = (directory / "db-1.log").read_bytes()
    clean_up(store, kit)
    assert (directory / "data-archive" / "db-1.log").read_bytes() == whole
    assert len((directory / "db-1.log").read_bytes()) < FILE_BYTES
    store.close()


def test_a_compacted_file_says_which_file_it_was(tmp_path: Path, kit: Kit) -> None:
    directory = tmp_path / "data"
    store = make(directory, kit)
    store.open()
    path = directory / "db-1.log"
    other = kit.reference(1000, DEAD, 4000)
    store.add(DEAD, other, None)
    keep_one(store, kit)
    head = path.read_bytes()[:HEAD_BYTES]
    sizes = [path.stat().st_size]
    end = scan_file(path.read_bytes(), path.name).end
    assert compaction_in(head) is None
    assert end < sizes[0] == FILE_BYTES
    before = Compaction(sizes[0], first_in(head), end)
    for ended in ([], [other]):
        for one in ended:
            store.remove(DEAD, one, skip_unwritten=False)
        kit.until_durable(store)
        clean_up(store, kit)
        assert compaction_in(path.read_bytes()[:HEAD_BYTES]) == before
        sizes.append(path.stat().st_size)
    assert sizes == sorted(set(sizes), reverse=True)
    store.close()


def test_one_of_an_earlier_version_may_have_been_full() -> None:
    first = 24 * "a"
    line = Trace(f'lk1 {{"t":"compacted","bytes":1000,"first":"{first}"}}')
    assert compaction_in(build_batch(encode_record(line))) == Compaction(1000, first, 995)


def test_copy_of_a_master_that_was_killed_is_deleted_before_the_journal_is_read(
    tmp_path: Path, kit: Kit
) -> None:
    directory = tmp_path / "data"
    store = make(directory, kit)
    store.open()
    keep_one(store, kit, 20)
    store.close()
    left = directory / "compacted-0123456789abcdef.tmp"
    shutil.copy(directory / "db-1.log", left)
    expected = contents(directory, kit, tmp_path)
    again = make(directory, kit)
    again.open()
    assert not left.exists()
    again.close()
    assert contents(directory, kit, tmp_path) == expected


@pytest.mark.parametrize("name", ["compacted-x.tmp", "next-x.zeros", "mended-x.part"])
def test_a_directory_of_somebody_else_is_in_nobody_s_way(
    tmp_path: Path, kit: Kit, name: str
) -> None:
    (tmp_path / name).mkdir()
    store = make(tmp_path, kit)
    store.open()
    store.add(A, kit.reference(1), kit.Receipt())
    kit.until_durable(store)
    store.close()
    assert (tmp_path / name).is_dir()


def test_a_directory_in_the_place_of_an_index_is_named_before_anything_is_written(
    tmp_path: Path, kit: Kit
) -> None:
    (tmp_path / "db.redo").mkdir()
    store = make(tmp_path, kit)
    with pytest.raises(StoreError, match=r"db\.redo: a directory, where ActiveMQ's index would be"):
        store.open()
    store.close()


def test_closing_in_the_middle_of_a_copy_leaves_no_trace(tmp_path: Path, kit: Kit) -> None:
    directory = tmp_path / "data"
    store = make(directory, kit)
    store.open()
    keep_one(store, kit)
    kit.clock.now += 1000
    store.maintain(0)
    kit.clock.now += 1000
    store.maintain(0)
    assert store._compaction.busy
    expected = contents(directory, kit, tmp_path)
    store.close()
    assert not list(directory.glob("compacted-*"))
    assert contents(directory, kit, tmp_path) == expected


@pytest.mark.replaces
def test_who_sifts_rests_nine_times_as_long_as_he_works_but_in_haste(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    works = iter((0.0001, 0.0011, 0.0061, 1.0, 2.0, 3.0))
    rests: list[float] = []
    monkeypatch.setattr(
        sifting, "time", SimpleNamespace(thread_time=lambda: next(works), sleep=rests.append)
    )
    pace = Pace()
    for in_haste in (False, False, False, False, True, False):
        pace.in_haste = in_haste
        pace.rest()
    assert rests == pytest.approx([0.001, 0.009, 0.045, 0.1, 0.001, 0.1])


@pytest.mark.parametrize("files", [6, 40])
def test_copies_are_made_in_haste_where_the_journal_grows_faster(
    files: int, tmp_path: Path, kit: Kit
) -> None:
    """40 files are more than four times the four, and what lives, that are in order."""
    store = make(tmp_path / "data", kit)
    store.open()
    keep_one(store, kit, files * FILE_BYTES // 2000)
    rewriting = begun(store, kit)
    assert rewriting.in_haste == (files > 4 * 4)
    store.close()


def test_a_copy_is_made_in_haste_while_senders_wait_for_the_disk(tmp_path: Path, kit: Kit) -> None:
    store = make(tmp_path / "data", kit)
    store.open()
    keep_one(store, kit, 6 * FILE_BYTES // 2000)
    rewriting = begun(store, kit)
    assert not rewriting.in_haste
    store._compaction.begin(kit.clock.now, in_haste=True)
    assert rewriting.in_haste
    store._compaction.begin(kit.clock.now, in_haste=False)
    assert not rewriting.in_haste
    store.close()


def begun(store: KahaDBStore, kit: Kit) -> Rewriting:
    """Let clean-ups find that nothing can be deleted, until a copy is begun."""
    for _ in range(10):
        kit.clock.now += 1000
        store.maintain(0)
        if store._compaction._work is not None:
            return store._compaction._work.rewriting
    raise AssertionError("no file is copied")
