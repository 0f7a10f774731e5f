"""A master may write until its deadline, and only as long as nobody came after it."""

import time
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import Trace
from lockkeeper.journal.scan import record_offsets, scan_file
from lockkeeper.message.destination import queue
from lockkeeper.store.base import Identity
from lockkeeper.store.kahadb import DirectoryLock, KahaDBStore
from lockkeeper.store.kahadb.term import epoch_of, identity_of, term_line
from lockkeeper.store.locker import BothGuards, Deadline, LockLostError, boot_time

A = queue("A")
BROKER = Identity("b", "ID:b-1")
FILE_BYTES = 1 << 16
SECOND = 1_000_000_000


def traces(directory: Path) -> dict[int, list[str]]:
    """Return the texts of trace records by file number."""
    found: dict[int, list[str]] = {}
    for file in list_data_files(directory):
        data = file.path.read_bytes()
        scan = scan_file(data, file.path.name)
        records = (
            decode_record(data, offset, "")
            for batch in scan.batches
            for offset, _ in record_offsets(data, batch)
        )
        found[file.file_id] = [each.message for each in records if isinstance(each, Trace)]
    return found


def bytes_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("db-*.log")}


class Blind:
    """A lock as of a file system that gives it to everybody."""

    def try_acquire(self, now: int) -> bool:
        return True

    def check_lock(self) -> None:
        return None

    def release(self) -> None:
        return None


@pytest.fixture
def deadline() -> Deadline:
    deadline = Deadline()
    deadline.begin(boot_time() + 60 * SECOND, "it was not renewed")
    return deadline


def test_the_line_of_a_term_tells_its_epoch() -> None:
    line = term_line(12, 1700000000000, BROKER, "b-0")
    assert line == (
        'lk1 {"t":"term","epoch":12,"at":1700000000000,"broker":"b","replica":"b-0",'
        '"brokerId":"ID:b-1"}'
    )
    assert epoch_of(line) == 12
    assert identity_of(line) == BROKER
    assert epoch_of('lk1 {"t":"event","at":1,"event":"start","epoch":99}') == 0
    assert epoch_of("LOADED") == epoch_of('lk1 {"t":"term","epoch":x}') == 0


@pytest.mark.parametrize(
    "text",
    [
        'lk1 {"t":"term","epoch":7,"at":1,"broker":"b","replica":"b-0"}',
        'lk1 {"t":"term","epoch":7,"broker":"b","brokerId":"ID:b',
        'lk1 {"t":"term","epoch":7,"broker":"b","brokerId":"ID:b,ID:c"}',
        'lk1 {"t":"term","epoch":7,"broker":1,"brokerId":"ID:b"}',
        'lk1 {"t":"event","epoch":7,"broker":"b","brokerId":"ID:b"}',
    ],
)
def test_a_line_that_does_not_tell_an_identity_tells_none(text: str) -> None:
    assert identity_of(text) is None


def test_the_next_master_learns_the_last_epoch(tmp_path: Path, kit: Kit) -> None:
    for epoch in (1, 2, 3):
        store = KahaDBStore(tmp_path, file_bytes_max=FILE_BYTES)
        recovered = store.open()
        assert recovered.epoch == epoch - 1
        assert recovered.identity == (None if epoch == 1 else BROKER)
        store.begin_term(epoch, 5, BROKER, "b-0")
        store.add(A, kit.reference(epoch), None)
        store.close()


def test_every_file_tells_the_epoch_so_that_it_outlives_the_first(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, clock=kit.clock, file_bytes_max=FILE_BYTES)
    store.open()
    store.begin_term(7, 5, BROKER, "b-0")
    now = 0
    for number in range(1, 60):
        message = kit.reference(number, size=8000)
        store.add(A, message, None)
        kit.until_durable(store)
        store.remove(A, message, kit.Receipt())
        kit.until_durable(store)
        now += 60_000
        kit.maintain(store, now)
        kit.until_durable(store)
    kit.maintain(store, now + 60_000)
    found = traces(tmp_path)
    assert 1 not in found
    assert [sum(epoch_of(text) == 7 for text in texts) for texts in found.values()] == [1]
    store.close()
    assert KahaDBStore(tmp_path).open().epoch == 7


def test_a_term_waits_for_company_unless_a_deadline_says_that_others_may_come(
    tmp_path: Path, kit: Kit, deadline: Deadline
) -> None:
    patient = KahaDBStore(tmp_path / "patient")
    patient.open()
    patient.begin_term(1, 5, BROKER, "b-0")
    fenced = KahaDBStore(tmp_path / "fenced", deadline=deadline)
    fenced.open()
    fenced.begin_term(1, 5, BROKER, "b-0")
    for _ in range(20):
        for store in (patient, fenced):
            store.flush()
            store.completed()
        time.sleep(0.01)
    assert traces(tmp_path / "patient") == {}
    assert list(traces(tmp_path / "fenced")) == [1]


def test_past_the_deadline_nothing_is_written(tmp_path: Path, kit: Kit, deadline: Deadline) -> None:
    store = KahaDBStore(tmp_path, clock=kit.clock, deadline=deadline)
    store.open()
    store.add(A, kit.reference(1), None)
    kit.until_durable(store)
    before = bytes_of(tmp_path)
    deadline.begin(boot_time(), "it was not renewed")
    store.add(A, kit.reference(2), kit.Receipt())
    for _ in range(2):
        with pytest.raises(LockLostError, match="it was not renewed"):
            store.flush()
    with pytest.raises(LockLostError):
        kit.maintain(store, 10**9)
    with pytest.raises(LockLostError):
        store.close()
    assert bytes_of(tmp_path) == before


def test_what_becomes_durable_past_the_deadline_is_not_answered(
    tmp_path: Path, kit: Kit, deadline: Deadline
) -> None:
    store = KahaDBStore(tmp_path, deadline=deadline)
    store.open()
    receipt = kit.Receipt()
    store.add(A, kit.reference(1), receipt)
    store.flush()
    deadline.begin(boot_time(), "it was not renewed")
    with pytest.raises(LockLostError):
        while True:
            assert receipt not in store.completed()


def test_a_deadline_that_has_passed_is_never_extended() -> None:
    deadline = Deadline()
    with pytest.raises(LockLostError, match="nothing was held yet"):
        deadline.check()
    deadline.begin(boot_time() + SECOND // 20, "too late")
    deadline.check()
    deadline.extend(boot_time() + SECOND // 10)
    assert 0 < deadline.remaining <= SECOND // 10
    time.sleep(0.12)
    with pytest.raises(LockLostError, match="too late"):
        deadline.extend(boot_time() + SECOND)
    with pytest.raises(LockLostError, match="too late"):
        deadline.check()
    assert deadline.remaining == 0


def test_a_superseded_master_refuses_to_write(tmp_path: Path, kit: Kit) -> None:
    old = KahaDBStore(tmp_path, Blind(), clock=kit.clock, file_bytes_max=FILE_BYTES)
    old.open()
    old.begin_term(4, 5, BROKER, "b-0")
    old.add(A, kit.reference(1), None)
    kit.until_durable(old)
    new = KahaDBStore(tmp_path, Blind(), file_bytes_max=FILE_BYTES)
    assert new.open().epoch == 4
    new.begin_term(5, 5, BROKER, "b-1")
    new.add(A, kit.reference(2), None)
    kit.until_durable(new)
    before = bytes_of(tmp_path)
    with pytest.raises(LockLostError, match=r"db-2\.log was written by a master of epoch 5; .* 4"):
        kit.maintain(old, 1000)
    for number in range(3, 30):
        old.add(A, kit.reference(number, size=8000), None)
    with pytest.raises(LockLostError, match=r"db-2\.log was written by a master of epoch 5"):
        kit.until_durable(old)
        kit.until_durable(old)
    assert bytes_of(tmp_path)["db-2.log"] == before["db-2.log"]


def test_the_second_locker_is_only_for_who_has_the_first(tmp_path: Path) -> None:
    first, other = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    assert other.try_acquire(1)
    asked: list[int] = []

    class Second(Blind):
        def try_acquire(self, now: int) -> bool:
            asked.append(now)
            return False

    both = BothGuards(first, Second())
    assert not both.try_acquire(2) and not asked
    other.release()
    assert not both.try_acquire(3) and asked == [3]
    assert first.is_held
    both.release()
    assert not first.is_held
