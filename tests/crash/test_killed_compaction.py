"""A broker that is killed before each system call of a compaction in turn: nothing is different."""

import os
import shutil
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from stores import Receipt, numbers, reference, settled

import lockkeeper.store
from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import LocalTransactionId, XATransactionId
from lockkeeper.store.base import Add, Remove, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences
from lockkeeper.store.kahadb.compaction import Settings

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.patient]

WORK, DEAD, NEWS = queue("WORK"), queue("DLQ"), topic("NEWS")
READERS = [Subscription("c", name, NEWS, None, False) for name in ("keeps-up", "lags")]
FILE_BYTES, BODY_BYTES, MESSAGES, CLEAN_UPS = 8192, 1500, 50, 30
EAGER = Settings(after_no_gc=1, ignores_store_growth=True)
STORE_ROOM = str(Path(lockkeeper.store.__file__).parent)
CHANGES = {"open", "pwrite", "pwritev", "write", "fsync", "link", "unlink", "rename", "mkdir"}
CHANGES |= {"fdatasync", "posix_fallocate", "ftruncate", "remove", "replace", "mmap"}
KILLED = 9


def make(directory: Path, settings: Settings) -> KahaDBStore:
    """Return a store with small files that cleans up whenever it can."""
    return KahaDBStore(
        directory, file_bytes_max=FILE_BYTES, cleanup_interval_ms=0, compaction=settings
    )


@pytest.fixture
def template(home: Path) -> Path:
    """A directory in which a few messages keep every file."""
    directory = home / "template"
    store = make(directory, Settings(is_enabled=False))
    store.open()
    for reader in READERS:
        store.subscribe(reader, Receipt())
    last = None
    for number in range(1, MESSAGES):
        name = DEAD if number % 20 == 1 else WORK
        one = reference(number, name, BODY_BYTES)
        store.add(name, one, Receipt())
        if number % 9 == 2:
            news = reference(1000 + number, NEWS, BODY_BYTES)
            news.holders = len(READERS)
            store.add(NEWS, news, Receipt())
            store.remove(NEWS, news, None, READERS[0])
        if last is not None and number % 7 == 3:
            moved = Add(WORK, [reference(2000 + number, WORK, BODY_BYTES)])
            identifier = XATransactionId(1, b"%d" % number, b"b")
            store.prepare(identifier, [Remove(WORK, [last]), moved], Receipt())
            store.commit_prepared(identifier, [Remove(WORK, [last]), moved], Receipt())
            last = moved.references[0]
        elif last is not None:
            local = LocalTransactionId("ID:c-1:1", number)
            store.commit(local, [Remove(WORK, [last])], Receipt())
            last = None
        if name is WORK:
            if last is not None:
                store.remove(WORK, last, None, None, False)
            last = one
        settled(store)
    store.close()
    return directory


def contents(directory: Path) -> dict[str, list[int]]:
    """Return what a start finds, in order; the directory stays as it is."""
    copy = directory.with_name("copy")
    shutil.copytree(directory, copy)
    store = make(copy, Settings(is_enabled=False))
    recovered = store.open()
    found = {name.name: numbers(store, list(each)) for name, each in recovered.queues.items()}
    for one in recovered.subscriptions:
        found[one.subscription.key] = numbers(store, one.pending)
    assert not recovered.prepared
    assert differences(copy, store._file_references) == []
    store.close()
    shutil.rmtree(copy)
    return found


def compact(directory: Path) -> None:
    """Write a little, and clean up until nothing is left to do."""
    store = make(directory, EAGER)
    store.open()
    store.trace("lk1 {}")
    settled(store)
    for _ in range(CLEAN_UPS):
        settled(store)
        store.maintain(0)
        store._compaction.wait()
    store.close()


class Killer:
    """Ends this process before a system call of the store, in whatever thread it is made."""

    def __init__(self, number: int) -> None:
        self.left = number

    def look(self, frame: FrameType, event: str, called: Any) -> None:
        """Called by the interpreter before each call of a built-in function."""
        if event != "c_call" or called.__module__ not in ("posix", "fcntl", "mmap", "_io"):
            return
        asking: FrameType | None = frame
        while asking is not None and not asking.f_code.co_filename.startswith(STORE_ROOM):
            asking = asking.f_back
        if asking is None or called.__name__ not in CHANGES:
            return
        self.left -= 1
        if self.left == 0:
            os._exit(KILLED)


def killed_at(directory: Path, number: int) -> bool:
    """Compact in a process of its own, killed before its call *number*; whether it was."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, KILLED), f"call {number} ended with {code}"
        return code == KILLED
    code = 1
    try:
        killer = Killer(number)
        threading.setprofile(killer.look)
        sys.setprofile(killer.look)
        compact(directory)
        code = 0
    finally:
        os._exit(code)


def test_what_is_stored_is_the_same_wherever_a_compaction_ends(template: Path, home: Path) -> None:
    expected = contents(template)
    assert len(expected) == 4
    assert len(list_data_files(template)) > 8
    directory = home / "data"
    calls = 0
    while True:
        shutil.copytree(template, directory)
        if not killed_at(directory, calls + 1):
            break
        calls += 1
        assert contents(directory) == expected, f"killed before call {calls}"
        shutil.rmtree(directory)
    assert calls > 50
    print(f"killed before each of {calls} calls")
    assert contents(directory) == expected
    assert len([file for file in list_data_files(directory) if file.size < FILE_BYTES]) >= 3
    assert not list(directory.glob("compacted-*"))
