"""Who is master of a directory: ActiveMQ's lock, seen from this process and from others."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb import DirectoryLock, KahaDBStore
from lockkeeper.store.locker import LockLostError, StoreLockedError

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b" if sys.argv[2] == "keep" else "w+b")
getattr(fcntl, sys.argv[3])(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""

Hold = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """Return a function that locks the file in another process, which it returns."""
    processes: list[subprocess.Popen[bytes]] = []

    def hold(function: str = "lockf", mode: str = "create") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock"), mode, function]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        processes.append(process)
        return process

    yield hold
    for process in processes:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[DirectoryLock]:
    lock = DirectoryLock(tmp_path)
    yield lock
    lock.release()


def locked_elsewhere(path: Path) -> bool:
    """Tell whether another process finds the file locked."""
    probe = (
        "import fcntl,sys\nfile=open(sys.argv[1],'r+b')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)\n"
        "except BlockingIOError: print('locked')\n"
    )
    output = subprocess.run([sys.executable, "-c", probe, str(path)], capture_output=True)
    return output.stdout == b"locked\n"


def test_a_free_lock_is_taken_and_stamped_with_the_time(
    lock: DirectoryLock, tmp_path: Path
) -> None:
    assert lock.try_acquire(1_795_247_372_485)
    assert lock.is_held
    assert (tmp_path / "lock").read_bytes() == (1_795_247_372_485).to_bytes(8, "big")
    lock.check_lock()


def test_the_first_byte_is_locked_for_other_processes_until_the_release(
    lock: DirectoryLock, tmp_path: Path
) -> None:
    assert lock.try_acquire(1)
    assert locked_elsewhere(tmp_path / "lock")
    lock.release()
    assert not locked_elsewhere(tmp_path / "lock")
    assert (tmp_path / "lock").exists()


def test_a_lock_of_another_process_is_respected_and_its_file_left_alone(
    lock: DirectoryLock, tmp_path: Path, hold: Hold
) -> None:
    (tmp_path / "lock").write_bytes(b"8 bytes!")
    process = hold(mode="keep")
    before = (tmp_path / "lock").stat()
    assert not lock.try_acquire(7)
    with pytest.raises(StoreLockedError, match="locked by another broker"):
        KahaDBStore(tmp_path, lock).open()
    after = (tmp_path / "lock").stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    process.kill()
    process.wait()
    assert lock.try_acquire(8)


def test_the_other_kind_of_lock_is_not_ours(lock: DirectoryLock, hold: Hold) -> None:
    hold("flock")
    assert lock.try_acquire(1)


def test_a_second_lock_in_the_same_process_is_refused(lock: DirectoryLock, tmp_path: Path) -> None:
    assert lock.try_acquire(1)
    second = DirectoryLock(tmp_path)
    assert not second.try_acquire(2)
    second.release()
    assert locked_elsewhere(tmp_path / "lock")
    lock.check_lock()


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "new" / "data")
    assert lock.try_acquire(1)
    lock.release()


def test_a_file_in_place_of_the_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("something else")
    with pytest.raises(StoreError, match=r"cannot lock .*data/lock"):
        DirectoryLock(tmp_path / "data").try_acquire(1)


def test_a_replaced_file_means_that_the_lock_is_lost(lock: DirectoryLock, tmp_path: Path) -> None:
    assert lock.try_acquire(1)
    (tmp_path / "other").write_bytes(b"8 bytes!")
    (tmp_path / "other").rename(tmp_path / "lock")
    with pytest.raises(LockLostError, match="replaced"):
        lock.check_lock()


def test_a_removed_file_means_that_the_lock_is_lost(lock: DirectoryLock, tmp_path: Path) -> None:
    assert lock.try_acquire(1)
    (tmp_path / "lock").unlink()
    with pytest.raises(LockLostError, match="gone"):
        lock.check_lock()


def test_a_touched_file_means_that_another_master_wrote_it(
    lock: DirectoryLock, tmp_path: Path
) -> None:
    assert lock.try_acquire(1)
    os.utime(tmp_path / "lock", ns=(5, 5))
    with pytest.raises(LockLostError, match="written to"):
        lock.check_lock()


def test_a_lock_that_is_not_held_is_lost(lock: DirectoryLock) -> None:
    with pytest.raises(LockLostError, match="not locked"):
        lock.check_lock()


def test_a_file_replaced_while_waiting_is_not_taken_for_the_lock(
    lock: DirectoryLock, tmp_path: Path, hold: Hold
) -> None:
    process = hold()
    assert not lock.try_acquire(1)
    (tmp_path / "lock").rename(tmp_path / "away")
    (tmp_path / "lock").touch()
    process.kill()
    process.wait()
    assert not lock.try_acquire(2)
    assert lock.try_acquire(3)
    lock.check_lock()


def test_a_store_opens_only_with_the_lock_and_gives_it_back(
    tmp_path: Path, hold: Hold, kit: Kit
) -> None:
    process = hold()
    store = KahaDBStore(tmp_path, clock=kit.clock)
    with pytest.raises(StoreLockedError):
        store.open()
    process.kill()
    process.wait()
    store.open()
    kit.maintain(store, 2_000)
    assert locked_elsewhere(tmp_path / "lock")
    os.utime(tmp_path / "lock", ns=(5, 5))
    with pytest.raises(LockLostError):
        kit.maintain(store, 4_000)
    store.close()
    assert not locked_elsewhere(tmp_path / "lock")


@pytest.mark.parametrize("step", [-3_600_000, 3_600_000])
def test_a_clock_that_is_set_hides_no_lost_lock(tmp_path: Path, step: int) -> None:
    store = KahaDBStore(tmp_path, keep_alive_ms=50)
    store.open()
    now = 1_795_247_372_485
    store.maintain(now)
    store.maintain(now + step)
    (tmp_path / "lock").unlink()
    # The clock of people stands still from here on.
    with pytest.raises(LockLostError, match="is gone"):
        for _ in range(200):
            store.maintain(now + step)
            time.sleep(0.01)
    store.close()


def test_a_clock_that_jumps_has_the_lock_looked_at(tmp_path: Path, kit: Kit) -> None:
    store = KahaDBStore(tmp_path, clock=kit.clock)
    store.open()
    store.maintain(5_000)
    (tmp_path / "lock").unlink()
    store.maintain(5_000)
    with pytest.raises(LockLostError, match="is gone"):
        store.maintain(65_000)
    store.close()


def test_a_store_takes_over_a_lock_that_is_held_already(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    assert lock.try_acquire(5)
    store = KahaDBStore(tmp_path, lock)
    store.open()
    store.close()
    assert not lock.is_held


def test_a_lock_refused_for_another_reason_is_an_error(
    lock: DirectoryLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(StoreError, match="No locks available"):
        lock.try_acquire(1)
