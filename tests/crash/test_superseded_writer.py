"""A master stopped before each of its system calls in turn, and superseded meanwhile.

When it wakes it makes that call, whatever it has checked before. No byte that its successor has
written may change, and nothing that the successor has answered for may be gone.
"""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from stores import Receipt, numbers, reference, settled

import lockkeeper.store
from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import queue
from lockkeeper.store.base import Identity, StoreError
from lockkeeper.store.kahadb import DirectoryLock, KahaDBStore
from lockkeeper.store.kahadb.compaction import Settings
from lockkeeper.store.locker import Deadline, Locker, boot_time

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.patient]

WORK, SUCCESSION = queue("WORK"), queue("SUCCESSION")
FILE_BYTES, BODY_BYTES = 8192, 1500
MESSAGES, KEPT_EVERY, CLEAN_UPS = 12, 4, 6
SECOND = 1_000_000_000
BROKER = Identity("b", "ID:b-1")
STORE_ROOM = str(Path(lockkeeper.store.__file__).parent)
SYSTEM = frozenset(("posix", "fcntl", "_io", "io"))
# Calls that only look, or only concern this process; before every other one it is stopped.
HARMLESS = {"fspath", "stat", "fstat", "lstat", "scandir", "listdir", "getpid", "read", "pread"}
HARMLESS |= {"readinto", "readall", "close", "fileno", "eventfd", "eventfd_read", "eventfd_write"}
HARMLESS |= {"posix_fadvise", "setpriority", "clock_gettime_ns"}
STOLEN, DONE = 3, 0
WAIT_SECONDS_MAX = 30


class Trap:
    """Stops this process before a system call of the store, in whatever thread it is made."""

    def __init__(self, number: int, before: Callable[[], None]) -> None:
        """*number* is that of the call, from 1; *before* is called right before the stop."""
        self.left = number
        self.before = before

    def set(self) -> None:
        """Begin to count."""
        threading.setprofile(self.look)
        sys.setprofile(self.look)

    def look(self, frame: FrameType, event: str, called: Any) -> None:
        """Called by the interpreter before each call of a built-in function."""
        if event != "c_call" or called.__name__ in HARMLESS or not is_system(called):
            return
        if not is_of_store(frame):
            return
        self.left -= 1
        if self.left == 0:
            sys.setprofile(None)
            self.before()
            os.kill(os.getpid(), signal.SIGSTOP)


def is_system(called: Any) -> bool:
    """Tell whether a built-in function is of a module that calls the system."""
    return called.__module__ in SYSTEM or type(called.__self__).__module__ in SYSTEM


def is_of_store(frame: FrameType | None) -> bool:
    """Tell whether a frame, or one that called it, is code of the store."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(STORE_ROOM):
            return True
        frame = frame.f_back
    return False


class Blind:
    """The lock of a file system that gives it to everybody: only the deadline is left."""

    def try_acquire(self, now: int) -> bool:
        """See `Locker.try_acquire`."""
        return True

    def check_lock(self) -> None:
        """See `Locker.check_lock`."""

    def release(self) -> None:
        """See `Locker.release`."""


def lead(directory: Path, lock: Locker, deadline: Deadline | None, archive: bool) -> None:
    """Be a master for a while: repair, fill files, consume, clean up, compact, stop.

    Raises StoreError.
    """
    store = KahaDBStore(
        directory,
        lock,
        file_bytes_max=FILE_BYTES,
        cleanup_interval_ms=1,
        archive=archive,
        keep_alive_ms=1,
        deadline=deadline,
        compaction=Settings(after_no_gc=1, ignores_store_growth=True),
    )
    store.open()
    store.begin_term(2, 5, BROKER, "b-0")
    for number in range(101, 101 + MESSAGES):
        one = reference(number, WORK, BODY_BYTES)
        store.add(WORK, one, Receipt())
        settled(store)
        if number % KEPT_EVERY:
            store.remove(WORK, one, Receipt())
            settled(store)
        time.sleep(0.002)
        store.maintain(0)
        store.spool([reference(number, WORK, BODY_BYTES)])
    for _ in range(CLEAN_UPS):
        settled(store)
        store.maintain(0)
        store._compaction.wait()
        time.sleep(0.002)
    store.close()


def stopped_master(directory: Path, number: int, loses: str, archive: bool) -> int:
    """Start a master in a process of its own that stops before its call *number*; its pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        deadline = Deadline()
        deadline.begin(boot_time() + 600 * SECOND, "it was not renewed")
        by_lock = loses == "lock"
        lock: Locker = DirectoryLock(directory) if by_lock else Blind()
        trap = Trap(number, lambda: deadline.begin(boot_time(), "it was not renewed"))
        if by_lock:
            trap.before = lambda: None
        trap.set()
        lead(directory, lock, None if by_lock else deadline, archive)
        code = DONE
    except StoreError as error:
        print(f"call {number}: {error}", file=sys.stderr)
        code = STOLEN
    finally:
        os._exit(code)


def succeed(directory: Path, loses: str) -> tuple[KahaDBStore, set[int]]:
    """Take over, and answer for messages in several files; what was found in WORK."""
    lock: Locker = DirectoryLock(directory) if loses == "lock" else Blind()
    store = KahaDBStore(directory, lock, file_bytes_max=FILE_BYTES, keep_alive_ms=1)
    recovered = store.open()
    found = set(numbers(store, recovered.queues.get(WORK, [])))
    store.begin_term(3, 5, BROKER, "b-1")
    for number in range(1001, 1011):
        receipt = Receipt()
        store.add(SUCCESSION, reference(number, SUCCESSION, BODY_BYTES), receipt)
        assert receipt in settled(store)
        store.maintain(0)
    return store, found


@pytest.fixture
def template(home: Path) -> Path:
    """A directory as a killed broker left it: a torn write, an index, prepared files."""
    directory = home / "template"
    store = KahaDBStore(directory, file_bytes_max=FILE_BYTES)
    store.open()
    store.begin_term(1, 5, BROKER, "b-0")
    for number in range(1, 9):
        one = reference(number, WORK, BODY_BYTES)
        store.add(WORK, one, None)
        settled(store)
        if number < 6:
            store.remove(WORK, one)
    store.close()
    last = list_data_files(directory)[-1].path
    data = last.read_bytes()
    last.write_bytes(data[: data.rindex(EOF_RECORD) - 100])
    for name in ("db.data", "db.redo", "next-0123456789abcdef.zeros"):
        (directory / name).write_bytes(b"stale")
    return directory


def wait_until_stopped(pid: int) -> bool:
    """Wait until the process has stopped itself; False when it ended instead."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    return os.WIFSTOPPED(status)


def ends(pid: int) -> int:
    """Let a stopped process go on; how it ended."""
    os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("a superseded master goes on")


def steal(directory: Path) -> None:
    """Put another lock in the place of the one that is held, as after a network file system."""
    (directory / "lock.new").write_bytes(bytes(8))
    (directory / "lock.new").replace(directory / "lock")


@pytest.mark.parametrize(
    ("loses", "archive"), [("lock", False), ("deadline", False), ("lock", True)]
)
def test_a_master_stopped_anywhere_changes_nothing_of_its_successor(
    loses: str, archive: bool, template: Path, home: Path
) -> None:
    stops = 0
    while True:
        directory = home / "data"
        shutil.copytree(template, directory)
        pid = stopped_master(directory, stops + 1, loses, archive)
        if not wait_until_stopped(pid):
            break
        stops += 1
        if loses == "lock":
            steal(directory)
        present = {file.file_id for file in list_data_files(directory)}
        successor, found = succeed(directory, loses)
        ours = [file for file in list_data_files(directory) if file.file_id not in present]
        before = [file.path.read_bytes() for file in ours]
        assert len(ours) > 1
        code = ends(pid)
        assert [file.path.read_bytes() for file in ours] == before, f"stopped at call {stops}"
        assert code in (STOLEN, DONE), f"stopped at call {stops}"
        check(directory, found, f"stopped at call {stops}")
        # It is the master still.
        successor.maintain(0)
        receipt = Receipt()
        successor.add(SUCCESSION, reference(2000, SUCCESSION), receipt)
        assert receipt in settled(successor)
        successor.close()
        shutil.rmtree(directory)
    print(f"stopped before each of {stops} calls")
    assert stops > 60


def check(directory: Path, found: set[int], where: str) -> None:
    """Open a copy of the directory, as after a crash, and compare."""
    copy = directory.with_name("copy")
    shutil.copytree(directory, copy)
    again = KahaDBStore(copy)
    recovered = again.open()
    assert numbers(again, recovered.queues[SUCCESSION]) == list(range(1001, 1011)), where
    left = set(numbers(again, recovered.queues.get(WORK, [])))
    # The call at which it was stopped may have recorded one more addition, or one more end, that
    # nobody was told of.
    assert {one for one in found if one < 101 or not one % KEPT_EVERY} <= left, where
    assert len(left ^ found) <= 1, where
    again.close()
    shutil.rmtree(copy)
