"""A disk that fails: the broker stops at once, says so, and has everything it answered for."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import wire

from lockkeeper.message.destination import queue

if TYPE_CHECKING:
    from brokers import RunningBroker

pytestmark = [pytest.mark.crash, pytest.mark.patient]

StartBroker = Callable[..., "RunningBroker"]
QUEUE = queue("FAILING")
DISK_BYTES, ROOM_BYTES, LEFT_BYTES = 64 << 20, 32 << 20, 64 << 10
STOP_SECONDS_MAX = 10


def run(*command: str) -> None:
    """Run a command that only root may run; skip the test where it may not."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(command)}: {done.stderr.strip()}")


class ThinDisk:
    """A file system on a disk that promises more than there is: it fails once that is gone."""

    def __init__(self, home: Path) -> None:
        self.below, self.path, self.kept = home / "below", home / "disk", home / "kept.image"
        self.image = self.below / "image"
        for directory in (self.below, self.path):
            directory.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={ROOM_BYTES}", "tmpfs", str(self.below))
        with self.image.open("wb") as file:
            file.truncate(DISK_BYTES)
        run("mkfs.ext4", "-q", "-O", "^has_journal", str(self.image))
        run("mount", "-o", "loop", str(self.image), str(self.path))

    def keep(self) -> None:
        """Keep a copy of what is on the disk, as of a disk that is repaired."""
        shutil.copy(self.image, self.kept)

    def fail(self) -> None:
        """Fail every write from now on, but where the file system itself begins."""
        os.truncate(self.image, LEFT_BYTES)
        with (self.below / "filler").open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                return

    def repair(self) -> None:
        """Mount the copy that was kept."""
        self.unmount(self.path)
        run("mount", "-o", "loop", str(self.kept), str(self.path))

    def unmount(self, *paths: Path) -> None:
        """Take file systems away, whoever uses them."""
        for path in paths:
            subprocess.run(["umount", "--lazy", str(path)], check=False, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[ThinDisk]:
    """A file system that can be made to fail."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("only root can mount a disk that fails")
    disk = ThinDisk(tmp_path)
    yield disk
    disk.unmount(disk.path, disk.below)


def test_a_broker_whose_disk_fails_stops_at_once_and_loses_nothing(
    start_broker: StartBroker, disk: ThinDisk
) -> None:
    data = disk.path / "data"
    broker = start_broker(directory=data, file_bytes="1Mi")
    with wire.Wire(broker.port) as connection:
        producer = connection.producer()
        for number in range(1, 21):
            connection.request(wire.bytes_message(producer, number, QUEUE, b"%d" % number))
        disk.keep()
        disk.fail()
        with pytest.raises(OSError):
            connection.request(wire.bytes_message(producer, 21, QUEUE, b"too late" * 100))
    assert broker.process.wait(STOP_SECONDS_MAX) == 1
    log = broker.log.read_text()
    assert "the store failed, so the broker stops" in log
    assert "what was written last may be lost" in log.splitlines()[-1]
    disk.repair()
    broker = start_broker(directory=data)
    with wire.Wire(broker.port) as connection:
        found = [int(bytes(one.content or b"")) for one in connection.browse(QUEUE)]
    assert found == list(range(1, 21))
    broker.kill()
