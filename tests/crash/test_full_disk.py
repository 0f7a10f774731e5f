"""A full disk: senders wait or are told, nothing is lost, it goes on when there is room again."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import wire
from load import content_of

from lockkeeper.message.destination import queue
from lockkeeper.message.ids import LocalTransactionId, ProducerId
from lockkeeper.message.openwire import TransactionOperation

if TYPE_CHECKING:
    from brokers import RunningBroker

pytestmark = [pytest.mark.crash, pytest.mark.patient]

StartBroker = Callable[..., "RunningBroker"]
DISK_BYTES, FILLER_BYTES = 4 << 20, 1 << 20
CONTENT_BYTES = 4000
RECOVER_SECONDS_MAX = 15
QUEUE = queue("FULL")
FAILING = "{sendFailIfNoSpace: true}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room, part of it taken by a file `filler`."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    directory = tmp_path / "disk"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(directory)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    (directory / "filler").write_bytes(bytes(FILLER_BYTES))
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


class Sender:
    """Sends one message after the other, and remembers which were answered."""

    def __init__(self, connection: wire.Wire) -> None:
        self.connection = connection
        self.producer: ProducerId = connection.producer()
        self.answered: list[str] = []
        self.sequence = 0

    def send(self) -> None:
        """Send a message. Raises RefusedError."""
        self.sequence += 1
        name = f"{self.producer}:{self.sequence}"
        content = content_of(name, CONTENT_BYTES)
        message = wire.bytes_message(self.producer, self.sequence, QUEUE, content)
        self.connection.request(message)
        self.answered.append(name)

    def send_until_refused(self) -> str:
        """Send until the broker refuses; return what it says."""
        for _ in range(DISK_BYTES // CONTENT_BYTES + 1):
            try:
                self.send()
            except wire.RefusedError as refused:
                return str(refused)
        pytest.fail("the disk never filled up")

    def send_when_there_is_room(self) -> None:
        """Send until a message is accepted again, which must be soon."""
        deadline = time.monotonic() + RECOVER_SECONDS_MAX
        while True:
            try:
                self.send()
                return
            except wire.RefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.05)


def browse(port: int) -> list[str]:
    """Return the ids of what is in the queue; their contents are checked."""
    with wire.Wire(port) as connection:
        found = connection.browse(QUEUE)
    for message in found:
        assert bytes(message.content or b"") == content_of(str(message.message_id), CONTENT_BYTES)
    return [str(message.message_id) for message in found]


def test_a_sender_is_told_and_nothing_answered_is_lost(
    start_broker: StartBroker, small_disk: Path
) -> None:
    data = small_disk / "data"
    broker = start_broker(directory=data, usage=FAILING)
    with wire.Wire(broker.port) as connection:
        sender = Sender(connection)
        text = sender.send_until_refused()
        assert str(data / "db-") in text and "no room on the disk" in text
        with pytest.raises(wire.RefusedError, match="no room on the disk"):
            sender.send()
        assert browse(broker.port) == sender.answered
        (small_disk / "filler").unlink()
        sender.send_when_there_is_room()
        sender.send_until_refused()
    broker.kill()
    broker.start()
    assert browse(broker.port) == sender.answered
    assert len(sender.answered) > DISK_BYTES // CONTENT_BYTES // 2


def test_a_sender_waits_for_room(
    start_broker: StartBroker, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start_broker(directory=small_disk / "data")
    with wire.Wire(broker.port) as connection:
        sender = Sender(connection)
        with monkeypatch.context() as patched, pytest.raises(TimeoutError):
            patched.setattr(wire, "ANSWER_SECONDS_MAX", 2)
            for _ in range(DISK_BYTES // CONTENT_BYTES + 1):
                sender.send()
        assert browse(broker.port) == sender.answered
        (small_disk / "filler").unlink()
        waiting = f"{sender.producer}:{sender.sequence}"
        deadline = time.monotonic() + RECOVER_SECONDS_MAX
        while waiting not in browse(broker.port):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        expected = [*sender.answered, waiting]
        sender.send()
    broker.kill()
    broker.start()
    assert browse(broker.port) == [*expected, sender.answered[-1]]


def test_a_full_disk_can_be_consumed_from(start_broker: StartBroker, small_disk: Path) -> None:
    broker = start_broker(directory=small_disk / "data", usage=FAILING)
    with wire.Wire(broker.port) as connection, wire.Wire(broker.port) as other:
        sender = Sender(connection)
        sender.send_until_refused()
        other.consumer(QUEUE, prefetch=100)
        for name in sender.answered:
            dispatch = other.next_dispatch()
            assert dispatch is not None and dispatch.message is not None
            assert str(dispatch.message.message_id) == name
            other.request(wire.acknowledgement(dispatch))
        sender.answered.clear()
        sender.send_when_there_is_room()
    broker.kill()
    broker.start()
    assert browse(broker.port) == sender.answered


def test_a_transaction_is_committed_wholly_or_refused(
    start_broker: StartBroker, small_disk: Path
) -> None:
    broker = start_broker(directory=small_disk / "data")
    with wire.Wire(broker.port) as connection:
        producer, sequence = connection.producer(), 0
        committed: list[str] = []
        names: list[str] = []
        for number in range(1, 1000):
            identifier = LocalTransactionId(connection.name, number)
            connection.tell(connection.transaction(identifier, TransactionOperation.BEGIN))
            names.clear()
            for _ in range(10):
                sequence += 1
                names.append(f"{producer}:{sequence}")
                content = content_of(names[-1], CONTENT_BYTES)
                message = wire.bytes_message(producer, sequence, QUEUE, content, identifier)
                connection.tell(message)
            commit = TransactionOperation.COMMIT_ONE_PHASE
            try:
                connection.request(connection.transaction(identifier, commit))
            except wire.RefusedError as refused:
                assert "no room on the disk" in str(refused)
                break
            committed += names
        assert committed and names[0] not in committed
        (small_disk / "filler").unlink()
    with wire.Wire(broker.port) as connection:
        sender = Sender(connection)
        sender.send_when_there_is_room()
    expected = [*committed, *sender.answered]
    assert browse(broker.port) == expected
    broker.kill()
    broker.start()
    assert browse(broker.port) == expected
