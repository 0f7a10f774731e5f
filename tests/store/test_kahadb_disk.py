"""Syncing in the background, by the kernel and by a thread."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockkeeper.store.kahadb.alarm import Alarm, EitherReadable
from lockkeeper.store.kahadb.disk import AioDisk, Disk, ThreadDisk, open_disk


@pytest.fixture(params=[AioDisk, ThreadDisk])
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    try:
        disk = request.param()
    except OSError as error:
        pytest.skip(f"refused here: {error}")
    yield disk
    disk.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, b"content", 0)
    yield descriptor
    os.close(descriptor)


def becomes_readable(descriptor: int, seconds: float = 10.0) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


def until_completed(disk: Disk) -> None:
    while not disk.completed():
        assert becomes_readable(disk.fileno())


def test_nothing_is_completed_when_nothing_was_submitted(disk: Disk) -> None:
    assert not disk.completed()
    assert not becomes_readable(disk.fileno(), 0)


def test_the_descriptor_tells_when_a_sync_is_done(disk: Disk, file: int) -> None:
    for _ in range(50):
        disk.submit(file)
        until_completed(disk)
    assert not disk.completed()
    assert not becomes_readable(disk.fileno(), 0.05)


def test_waiting_ends_when_the_sync_is_done(disk: Disk, file: int) -> None:
    for _ in range(50):
        disk.submit(file)
        disk.wait()
        assert not disk.completed()
    disk.wait()


def test_a_result_is_not_taken_before_its_signal(
    monkeypatch: pytest.MonkeyPatch, file: int
) -> None:
    """A signal that comes later would wake the event loop again and again."""
    allowed, signal_now = threading.Event(), os.eventfd_write
    monkeypatch.setattr(os, "eventfd_write", lambda *signal: allowed.wait() and signal_now(*signal))
    disk = ThreadDisk()
    disk.submit(file)
    while disk._results.empty():
        assert not disk.completed()
    assert not disk.completed()
    threading.Timer(0.05, allowed.set).start()
    disk.wait()
    assert not becomes_readable(disk.fileno(), 0.1)
    disk.close()


@pytest.fixture
def signals() -> Iterator[list[int]]:
    """Interrupt this process several thousand times a second; a list of what came."""
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: came.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    yield came
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_signals_do_not_make_a_sync_fail(disk: Disk, file: int, signals: list[int]) -> None:
    while len(signals) < 1000:
        os.pwrite(file, b"more", len(signals))
        disk.submit(file)
        disk.wait()
        disk.submit(file)
        until_completed(disk)


def test_a_failed_sync_raises_once(disk: Disk) -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="Invalid argument"):
            disk.submit(writing)
            disk.wait()
        assert not disk.completed()
    finally:
        os.close(reading)
        os.close(writing)


def test_a_failed_sync_raises_when_asked_without_waiting() -> None:
    disk = ThreadDisk()
    reading, writing = os.pipe()
    disk.submit(writing)
    with pytest.raises(OSError, match="Invalid argument"):
        until_completed(disk)
    disk.close()
    os.close(reading)
    os.close(writing)


def test_there_is_no_end_of_syncs(disk: Disk, file: int) -> None:
    """Results lie in a ring of some hundred places."""
    for number in range(3000):
        disk.submit(file)
        if number % 7:
            until_completed(disk)
        else:
            disk.wait()
        assert not disk.completed()


def test_closing_twice_does_no_harm(disk: Disk) -> None:
    disk.close()
    disk.close()


def test_the_kernel_is_preferred_where_it_can_sync_the_file(file: int) -> None:
    disk = open_disk(file)
    disk.submit(file)
    disk.wait()
    disk.close()


def test_a_thread_takes_over_where_the_kernel_cannot_sync_the_file() -> None:
    reading, writing = os.pipe()
    disk = open_disk(writing)
    assert isinstance(disk, ThreadDisk)
    disk.close()
    os.close(reading)
    os.close(writing)


def test_an_unknown_machine_has_no_asynchronous_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with pytest.raises(OSError, match="vax"):
        AioDisk()


def test_an_alarm_rings_once_after_its_delay() -> None:
    alarm = Alarm()
    assert not alarm.has_rung()
    alarm.set(5_000)
    assert not alarm.has_rung()
    assert becomes_readable(alarm.fileno())
    assert alarm.has_rung()
    assert not alarm.is_set
    assert not alarm.has_rung()
    assert not becomes_readable(alarm.fileno(), 0.02)
    alarm.close()
    alarm.close()


def test_an_alarm_that_is_cancelled_does_not_ring() -> None:
    alarm = Alarm()
    alarm.cancel()
    alarm.set(5_000)
    alarm.cancel()
    assert not becomes_readable(alarm.fileno(), 0.02)
    assert not alarm.has_rung()
    alarm.set(1)
    assert becomes_readable(alarm.fileno())
    assert alarm.has_rung()
    alarm.close()


def test_one_descriptor_stands_for_two() -> None:
    alarms = [Alarm(), Alarm()]
    either = EitherReadable(*(alarm.fileno() for alarm in alarms))
    for alarm in alarms:
        assert not becomes_readable(either.fileno(), 0)
        alarm.set(1)
        assert becomes_readable(either.fileno())
        assert alarm.has_rung()
    either.close()
    for alarm in alarms:
        alarm.close()
