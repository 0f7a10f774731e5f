"""A master that is no longer sure of its directory stops at once, and writes nothing more."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import wire

from lockkeeper.message.destination import queue

if TYPE_CHECKING:
    from brokers import RunningBroker

pytestmark = pytest.mark.crash

StartBroker = Callable[..., "RunningBroker"]
STOP_SECONDS_MAX = 10


def replace(lock: Path) -> None:
    """Put another file in the place of the lock."""
    other = lock.with_name("lock.new")
    other.write_bytes(bytes(8))
    other.replace(lock)


def touch(lock: Path) -> None:
    """Change the time of the lock, as another master does that writes into it."""
    os.utime(lock)


def remove(lock: Path) -> None:
    """Delete the lock."""
    lock.unlink()


@pytest.mark.parametrize(
    ("steal", "says"),
    [
        (replace, "was replaced by another file"),
        (touch, "was written to by another process"),
        (remove, "is gone"),
    ],
)
def test_a_master_whose_lock_was_taken_stops(
    steal: Callable[[Path], None], says: str, start_broker: StartBroker, tmp_path: Path
) -> None:
    lock = tmp_path / "data" / "lock"
    master = start_broker()
    with wire.Wire(master.port) as connection:
        producer = connection.producer()
        connection.request(wire.bytes_message(producer, 1, queue("Q"), b"kept"))
        steal(lock)
        assert master.process.wait(STOP_SECONDS_MAX) == 1
        with pytest.raises(OSError):
            connection.request(wire.bytes_message(producer, 2, queue("Q"), b"too late"))
    assert f"lockkeeper: {lock} {says}" in master.log.read_text().splitlines()[-1]
    with wire.Wire(start_broker().port) as connection:
        assert [message.content for message in connection.browse(queue("Q"))] == [b"kept"]


def test_a_master_that_slept_through_a_takeover_answers_nobody(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    sleeper = start_broker()
    with wire.Wire(sleeper.port) as connection:
        producer = connection.producer()
        connection.request(wire.bytes_message(producer, 1, queue("Q"), b"kept"))
        sleeper.process.send_signal(signal.SIGSTOP)
        connection.ask(wire.bytes_message(producer, 2, queue("Q"), b"arrived in its sleep"))
        replace(tmp_path / "data" / "lock")
        master = start_broker()
        before = _journal(tmp_path / "data")
        sleeper.process.send_signal(signal.SIGCONT)
        with pytest.raises(OSError):
            while connection.receive(STOP_SECONDS_MAX):
                assert not connection.answers
    try:
        assert sleeper.process.wait(STOP_SECONDS_MAX) == 1
    except subprocess.TimeoutExpired:
        pytest.fail("a master without its lock goes on")
    assert _journal(tmp_path / "data") == before
    with wire.Wire(master.port) as connection:
        assert [message.content for message in connection.browse(queue("Q"))] == [b"kept"]


def _journal(directory: Path) -> dict[str, bytes]:
    """Return the data files of a directory."""
    return {path.name: path.read_bytes() for path in directory.glob("db-*.log")}
