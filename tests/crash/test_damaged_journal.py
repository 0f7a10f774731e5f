"""A broker refuses a damaged journal, says what is lost, and serves the rest when told to."""

import json
from pathlib import Path

import brokers
import pytest
import wire
from ports import free_port

from lockkeeper.journal.scan import scan_file
from lockkeeper.message.destination import queue

pytestmark = [pytest.mark.crash, pytest.mark.patient]

QUEUE = queue("DAMAGED")
RESOURCE = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{name: damaged, annotations: {annotations}}}
spec:
  listeners: [{{name: openwire, port: {port}}}]
  admin: {{port: 0}}
  journal: {{recorder: {{enabled: false}}}}
"""
ACCEPTED = '{"lockkeeper.dev/accept-loss": "true"}'


def start(
    tmp_path: Path, *options: str, annotations: str = "{}", command: str = "broker"
) -> brokers.RunningBroker:
    """Start a broker on the one directory."""
    port = free_port()
    resource = tmp_path / "broker.yaml"
    resource.write_text(RESOURCE.format(annotations=annotations, port=port))
    line = [*brokers.LOCKKEEPER, command, "-f", str(resource), "--data", str(tmp_path / "data")]
    return brokers.RunningBroker("lockkeeper", port, tmp_path / "home", [*line, *options])


def start_again(tmp_path: Path, how: str) -> brokers.RunningBroker:
    """Start on what is damaged, the loss accepted in one of the ways that there are."""
    if how == "annotation":
        return start(tmp_path, annotations=ACCEPTED)
    return start(tmp_path, "--accept-loss", command=how)


def damage(path: Path) -> tuple[int, int]:
    """Zero the first sector of the batch with the third message; returns where and how long."""
    data = path.read_bytes()
    batch = next(
        one for one in scan_file(data, path.name).batches if b"three" in data[slice(*one[1:3])]
    )
    with path.open("r+b") as file:
        file.seek(batch.offset)
        file.write(bytes(512))
    return batch.offset, batch.end - batch.offset


@pytest.mark.parametrize("how", ["broker", "up", "annotation"])
def test_a_damaged_journal_is_refused_until_the_loss_is_accepted(how: str, tmp_path: Path) -> None:
    broker = start(tmp_path)
    with wire.Wire(broker.port) as connection:
        producer = connection.producer()
        for number, content in enumerate((b"one", b"two", b"three", b"four"), start=1):
            body = content + b"." * 600
            connection.request(wire.bytes_message(producer, number, QUEUE, body))
    broker.kill()
    path = tmp_path / "data" / "db-1.log"
    offset, length = damage(path)
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="did not start") as refused:
        start(tmp_path)
    assert f"db-1.log: {length} bytes at offset {offset} are damaged" in str(refused.value)
    assert f"{producer}:3 of {QUEUE} may have been there" in str(refused.value)
    assert path.read_bytes() == before
    broker = start_again(tmp_path, how)
    try:
        with wire.Wire(broker.port) as connection:
            found = [bytes(one.content or b"")[:4].rstrip(b".") for one in connection.browse(QUEUE)]
        assert found == [b"one", b"two", b"four"]
        assert "loss accepted: db-1.log" in broker.log.read_text()
    finally:
        broker.stop()
    aside = tmp_path / "data" / "damaged" / f"db-1.log.{offset}-{length}"
    assert aside.read_bytes() == before[offset : offset + length]
    (report,) = (tmp_path / "data" / "damaged").glob("report-*.json")
    assert json.loads(report.read_text())[0]["offset"] == offset
    broker = start(tmp_path)
    broker.kill()
