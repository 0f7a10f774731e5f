"""Files that a process of its own reads for a compaction: what it tells, and when it ends."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from store_kit import Kit
from test_kahadb_compaction import EAGER, Traffic, clean_up, contents, keep_one, make

from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import topic
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.kahadb import KahaDBStore, apart
from lockkeeper.store.kahadb.compaction import RETRY_MS
from lockkeeper.store.kahadb.needed import UndecidedError
from lockkeeper.store.kahadb.sifting import Subscribed, Task, sift

MEBIBYTE = 1 << 20
APART = EAGER._replace(in_own_process=True)


def task_of(directory: Path, file_id: int, related: frozenset[int] = frozenset()) -> Task:
    place = Subscribed("client:naïve", topic("NEWS.ü"), 0, True)
    undecided = frozenset({XATransactionId(-3, b"\x00g", b"")})
    return Task(directory, file_id, related, {}, [place], undecided)


@pytest.fixture
def long_task(tmp_path: Path, kit: Kit) -> Task:
    """A file of 100 MB that is read twice: with all the rests it takes ten seconds at least."""
    store = KahaDBStore(tmp_path, clock=kit.clock)
    store.open()
    keep_one(store, kit, 500)
    store.close()
    (file,) = list_data_files(tmp_path)
    data = file.path.read_bytes()
    (*_, last) = scan_file(data, file.path.name).batches
    file.path.write_bytes(data[: last.end] * (100 * MEBIBYTE // last.end))
    return task_of(tmp_path, file.file_id)._replace(subscribed=[])


def test_a_task_is_understood_as_it_was_given(tmp_path: Path) -> None:
    task = task_of(tmp_path / "naïve\n", 7, frozenset({1, 2}))._replace(ends={7: 12})
    line = apart._task_line(task)
    assert line.count(b"\n") == 1
    assert apart._task_in(line) == task


@pytest.mark.parametrize("seed", range(2))
def test_it_tells_what_is_told_here(seed: int, tmp_path: Path, kit: Kit) -> None:
    """Of each file of a journal with everything in it, whether it is of use or undecided."""
    directory = tmp_path / "data"
    store = make(directory, kit)
    store.open()
    traffic = Traffic(store, kit, seed)
    for _ in range(200):
        traffic.step()
    kit.until_durable(store)
    store.close()
    files = frozenset(each.file_id for each in list_data_files(directory))
    answered = 0
    for file_id in sorted(files)[:8]:
        task = task_of(directory, file_id, files - {file_id})._replace(subscribed=[])
        started = apart.begin(task)
        assert started is not None
        started.hurry(in_haste=True)
        try:
            here = sift(task, lambda: None)
        except UndecidedError as error:
            with pytest.raises(UndecidedError) as told:
                started.answer()
            assert str(told.value) == str(error)
            continue
        assert started.answer() == here
        answered += 1
    assert answered > 0


def test_files_are_compacted_by_it_and_nothing_is_lost(tmp_path: Path, kit: Kit) -> None:
    directory = tmp_path / "data"
    store = make(directory, kit, APART)
    store.open()
    keep_one(store, kit)
    expected = contents(directory, kit, tmp_path)
    clean_up(store, kit)
    assert len(list_data_files(directory)) <= 4
    store.close()
    assert contents(directory, kit, tmp_path) == expected
    assert children() == []


def test_it_gives_way_to_everybody_but_in_haste(long_task: Task) -> None:
    started = apart.begin(long_task)
    assert started is not None
    number = started._process.pid
    for in_haste, policy in ((False, os.SCHED_IDLE), (True, os.SCHED_OTHER)) * 2:
        started.hurry(in_haste)
        wanted = policy
        until(lambda: os.sched_getscheduler(number) == wanted)  # noqa: B023
        assert policy == os.SCHED_IDLE or os.getpriority(os.PRIO_PROCESS, number) == 19
    started.give_up()
    with pytest.raises(ChildProcessError, match="has ended"):
        started.answer()


def test_a_store_that_is_closed_lets_it_end(tmp_path: Path, kit: Kit) -> None:
    directory = tmp_path / "data"
    store = make(directory, kit, APART)
    store.open()
    keep_one(store, kit)
    while not children():
        kit.clock.now += 1000
        store.maintain(0)
    store.close()
    assert children() == []
    assert not list(directory.glob("compacted-*"))


def test_where_one_is_killed_another_copies_the_file_later(
    tmp_path: Path, kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "data"
    store = make(directory, kit, APART)
    store.open()
    keep_one(store, kit)
    expected = contents(directory, kit, tmp_path)
    with caplog.at_level("INFO"):
        while "has ended" not in caplog.text:
            for child in children():
                child.kill()
            kit.clock.now += 1000
            store.maintain(0)
    assert len(list_data_files(directory)) > 30
    kit.clock.now += RETRY_MS
    clean_up(store, kit)
    assert len(list_data_files(directory)) <= 4
    store.close()
    assert contents(directory, kit, tmp_path) == expected


def test_it_ends_with_the_broker_that_is_killed(long_task: Task, tmp_path: Path) -> None:
    broker = os.fork()
    if not broker:
        started = apart.begin(long_task)
        (tmp_path / "child").write_text(str(started is not None and started._process.pid))
        time.sleep(60)
        os._exit(0)
    until(lambda: read(tmp_path / "child") != "")
    process = psutil.Process(int(read(tmp_path / "child")))
    until(lambda: "db-1.log" in str(process.memory_maps(grouped=False)))
    os.kill(broker, signal.SIGKILL)
    os.waitpid(broker, 0)
    process.wait(3)


def test_without_a_process_it_is_read_here(
    tmp_path: Path, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    directory = tmp_path / "data"
    store = make(directory, kit, APART)
    store.open()
    keep_one(store, kit)
    clean_up(store, kit)
    assert len(list_data_files(directory)) <= 4
    store.close()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
