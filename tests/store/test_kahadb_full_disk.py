"""A disk without room: messages are refused, none is lost, and all goes on when there is room."""

import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_kit import Kit
from test_kahadb_compaction import contents, keep_one, make

from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper.store.base import Add, Receipt, Reference, StoreFullError
from lockkeeper.store.kahadb import KahaDBStore

A = queue("A")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte and a hundred names of files."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k,nr_inodes=100", "none", str(mounted)]
    try:
        result = subprocess.run(command, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if result.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield mounted
    subprocess.run(["umount", "-l", str(mounted)], check=True)


def test_a_full_disk_refuses_messages_but_loses_none_and_goes_on_when_freed(
    small_disk: Path, kit: Kit
) -> None:
    store = KahaDBStore(small_disk / "data", clock=kit.clock, file_bytes_max=128 << 10)
    store.open()
    sent = []
    with pytest.raises(StoreFullError, match=r"db-\d+.log: no room on the disk"):
        for number in range(1000):
            store.check_full()
            sent.append(kit.reference(number, size=1000))
            store.add(A, sent[-1], kit.Receipt())
            kit.until_durable(store)
            kit.maintain(store, number)
    assert 100 < len(sent) < 500
    # There is still room to consume: that is how a disk gets empty again.
    for one in sent[:-10]:
        store.remove(A, one)
    kit.until_durable(store)
    now = 1_000_000
    kit.maintain(store, now)
    kit.until_durable(store)
    for _ in range(100):
        now += 1000
        kit.maintain(store, now)
        try:
            store.check_full()
        except StoreFullError:
            select.select([], [], [], 0.05)
            continue
        break
    store.check_full()
    store.add(A, kit.reference(7777), None)
    store.close()
    recovered = store.open()
    expected = [*range(len(sent) - 10, len(sent)), 7777]
    assert kit.numbers(store, recovered.queues[A]) == expected
    store.close()


def test_a_disk_that_is_full_when_a_file_is_needed_keeps_everything(
    small_disk: Path, kit: Kit
) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(450 << 10))
    store = KahaDBStore(small_disk / "data", file_bytes_max=128 << 10)
    store.open()
    receipt = kit.Receipt()
    store.add(A, kit.reference(1), receipt)
    assert list(store.flush()) == []
    with pytest.raises(StoreFullError):
        store.check_full()
    assert store.waiting() == 1
    with pytest.raises(StoreFullError, match="no room"):
        store.close()
    filler.unlink()
    assert store.open().queues == {}
    store.add(A, kit.reference(1), receipt)
    assert kit.until_durable(store) == [receipt]
    store.close()


def fill(directory: Path, file_name: str = "filler") -> Path:
    """Write zeros into a file until the disk has no room for another one."""
    filler = directory / file_name
    with filler.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                return filler


def is_copied(store: KahaDBStore, kit: Kit, seconds: int) -> bool:
    """Do what is due for so long; tells whether a file was copied meanwhile."""
    copied = False
    for _ in range(seconds):
        kit.maintain(store, kit.clock.now + 1000)
        copied |= bool(store._bodies.moved)
    return copied


def test_a_copy_for_which_there_was_no_room_is_made_when_there_is(
    small_disk: Path, tmp_path: Path, kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    directory = small_disk / "data"
    store = make(directory, kit)
    store.open()
    keep_one(store, kit, 120)
    expected = contents(directory, kit, tmp_path)
    files = len(list_data_files(directory))
    kit.until_durable(store)
    filler = fill(small_disk)
    with caplog.at_level("INFO"):
        assert not is_copied(store, kit, 40)
    assert len(list_data_files(directory)) == files
    assert caplog.text.count("is compacted later: [Errno 28] No space left on device") == 2
    assert not list(directory.glob("compacted-*"))
    filler.unlink()
    assert is_copied(store, kit, 40)
    assert len(list_data_files(directory)) < files
    store.close()
    assert contents(directory, kit, tmp_path) == expected


def test_an_archive_without_room_gets_its_files_when_it_has_some(
    small_disk: Path, kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    directory = small_disk / "data"
    store = KahaDBStore(directory, clock=kit.clock, file_bytes_max=4096, archive=True)
    store.open()
    stays = kit.reference(1)
    for number in range(2, 40):
        one = kit.reference(number, size=900)
        store.add(A, one, None)
        kit.until_durable(store)
        store.remove(A, one)
    store.add(A, stays, None)
    kit.until_durable(store)
    files = [file.file_id for file in list_data_files(directory)]
    names = take_all_names(small_disk)
    for _ in range(5):
        kit.clock.now += 31_000
        store.maintain(0)
        kit.until_durable(store)
    assert [file.file_id for file in list_data_files(directory)] == files
    assert caplog.text.count("data files that nothing needs stay for now: ") == 1
    # What waits for the archive is in nobody's way.
    names[0].unlink()
    for _ in range(2):
        store.maintain(0)
    for name in names[1:]:
        name.unlink()
    store.maintain(0)
    kit.maintain(store, kit.clock.now + 31_000)
    kit.maintain(store, kit.clock.now + 1_000)
    archived = directory / "data-archive"
    assert [file.file_id for file in list_data_files(archived)] == files[:-1]
    assert len(list(archived.iterdir())) == len(files) - 1
    assert [file.file_id for file in list_data_files(directory)] == files[-1:]
    store.close()
    assert kit.numbers(store, store.open().queues[A]) == [1]
    store.close()


def take_all_names(directory: Path) -> list[Path]:
    """Make files until the file system knows no more."""
    made: list[Path] = []
    with pytest.raises(OSError, match="No space left"):
        while True:
            path = directory / f"name-{len(made)}"
            path.touch(exist_ok=False)
            made.append(path)
    return made


def commit_in_vain(store: KahaDBStore, sent: list[Reference], receipt: Receipt) -> None:
    """Commit a transaction for which there is no room, and see it wait."""
    store.commit(LocalTransactionId("ID:c:1", 1), [Add(A, sent)], receipt)
    store.flush()
    for _ in range(100):
        store.completed()
        select.select([], [], [], 0.005)
    assert store.waiting() == 2
    with pytest.raises(StoreFullError, match="no room on the disk"):
        store.check_full()


def test_a_large_transaction_goes_on_where_the_disk_was_full(
    small_disk: Path, kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    store = KahaDBStore(small_disk / "data", file_bytes_max=32 << 10, batch_bytes_max=16 << 10)
    store.open()
    store.add(A, kit.reference(1), None)
    kit.until_durable(store)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(300 << 10))
    receipt = kit.Receipt("large")
    sent = [kit.reference(10 + number, size=8 << 10) for number in range(20)]
    commit_in_vain(store, sent, receipt)
    with pytest.raises(StoreFullError):
        store.close()
    store = KahaDBStore(small_disk / "data", file_bytes_max=32 << 10, batch_bytes_max=16 << 10)
    assert kit.numbers(store, store.open().queues[A]) == [1]
    commit_in_vain(store, sent, receipt)
    assert caplog.text.count("no room on the disk; free some and it goes on") == 2
    filler.unlink()
    assert kit.until_durable(store) == [receipt]
    store.maintain(0)
    store.check_full()
    store.close()
    assert kit.numbers(store, store.open().queues[A]) == [1, *range(10, 30)]
    store.close()


def test_a_large_message_that_ends_gives_back_the_room_that_it_took(
    small_disk: Path, kit: Kit
) -> None:
    store = KahaDBStore(
        small_disk / "data", clock=kit.clock, file_bytes_max=32 << 10, batch_bytes_max=4 << 10
    )
    store.open()
    store.add(A, kit.reference(1), None)
    kit.until_durable(store)
    (small_disk / "filler").write_bytes(bytes(300 << 10))
    large = kit.reference(2, size=300 << 10)
    store.add(A, large, None)
    store.flush()
    with pytest.raises(StoreFullError, match="no room on the disk"):
        for _ in range(1000):
            store.completed()
            store.check_full()
            select.select([], [], [], 0.005)
    store.remove(A, large)
    store.add(A, kit.reference(3), None)
    kit.until_durable(store)
    # The file with what was written of it goes, and there is room for the next one.
    kit.maintain(store, 100_000)
    kit.until_durable(store)
    kit.maintain(store, 101_000)
    store.check_full()
    store.close()
    assert kit.numbers(store, store.open().queues[A]) == [1, 3]
    store.close()
