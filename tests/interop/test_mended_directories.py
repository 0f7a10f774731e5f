"""Directories that a new master had to put in order open in ActiveMQ, with everything in them."""

from collections.abc import Iterator
from pathlib import Path

import brokers
import pytest
from ports import free_port

from lockkeeper.client import connect
from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.scan import scan_file

pytestmark = [pytest.mark.interop, pytest.mark.slow]

RESOURCE = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{name: mended}}
spec:
  listeners: [{{name: openwire, port: {port}}}]
  admin: {{port: 0}}
  journal: {{fileBytes: 64Ki, cleanupInterval: 1h}}
"""


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[brokers.RunningBroker]:
    """Our broker, running, on the directory `kahadb`."""
    reason = brokers.missing("activemq")
    if reason:
        pytest.skip(reason)
    port = free_port()
    resource = tmp_path / "broker.yaml"
    resource.write_text(RESOURCE.format(port=port))
    data = str(tmp_path / "kahadb")
    command = [*brokers.LOCKKEEPER, "broker", "-f", str(resource), "--data", data]
    broker = brokers.RunningBroker("lockkeeper", port, tmp_path / "ours", command)
    yield broker
    broker.kill()


def send(broker: brokers.RunningBroker, first: int, count: int = 10) -> None:
    """Send messages, each in a batch of its own."""
    with connect(broker.url) as connection:
        producer = connection.session().producer("MENDED")
        for number in range(first, first + count):
            producer.send(f"{number}-{'x' * 9000}")


def browsed(broker: brokers.RunningBroker) -> list[int]:
    """Return the numbers of what waits in the queue."""
    with connect(broker.url) as connection:
        found = [str(each.body) for each in connection.session().browse("MENDED")]
    return [int(body.partition("-")[0]) for body in found]


def served_by_activemq(tmp_path: Path) -> list[int]:
    """Return what ActiveMQ finds in the directory, without a complaint, and have it send one."""
    port = free_port()
    command = brokers.activemq_command(tmp_path / "theirs", port, tmp_path, 65536)
    theirs = brokers.RunningBroker("activemq", port, tmp_path / "theirs", command)
    try:
        found = browsed(theirs)
        send(theirs, 9000, 1)
        theirs.stop()
    finally:
        theirs.kill()
    assert brokers.complaints(theirs) == []
    return found


def tear(path: Path) -> None:
    """Cut the last batch of a file off in its middle, as a power cut does."""
    data = bytearray(path.read_bytes())
    batch = scan_file(data, path.name).batches[-1]
    data[batch.end - 1000 :] = bytes(len(data) - batch.end + 1000)
    path.write_bytes(data)


@pytest.mark.parametrize("prepared", [EOF_RECORD + bytes(65531), bytes(65536)])
def test_files_that_were_only_prepared_and_torn_tails_stay_behind(
    prepared: bytes, ours: brokers.RunningBroker, tmp_path: Path
) -> None:
    send(ours, 0)
    ours.kill()
    last = list_data_files(tmp_path / "kahadb")[-1]
    tear(last.path)
    for number in (1, 2):
        (tmp_path / "kahadb" / f"db-{last.file_id + number}.log").write_bytes(prepared)
    ours.start()
    expected = [*range(9), *range(10, 20)]
    send(ours, 10)
    assert browsed(ours) == expected
    assert list_data_files(tmp_path / "kahadb")[-1].file_id > last.file_id + 2
    ours.stop()
    assert served_by_activemq(tmp_path) == expected
    ours.start()
    assert browsed(ours) == [*expected, 9000]


def zero(path: Path, index: int) -> None:
    """Zero the first sector of a batch."""
    batch = scan_file(path.read_bytes(), path.name).batches[index]
    with path.open("r+b") as file:
        file.seek(batch.offset)
        file.write(bytes(512))


def test_a_journal_whose_damage_was_accepted_opens_in_activemq(
    ours: brokers.RunningBroker, tmp_path: Path
) -> None:
    send(ours, 0, 20)
    ours.kill()
    files = list_data_files(tmp_path / "kahadb")
    assert len(files) > 2
    for file in files[:2]:
        zero(file.path, 2)
    ours.command.append("--accept-loss")
    ours.start()
    expected = browsed(ours)
    assert len(expected) == 18
    ours.stop()
    assert served_by_activemq(tmp_path) == expected
    ours.start()
    assert browsed(ours) == [*expected, 9000]
