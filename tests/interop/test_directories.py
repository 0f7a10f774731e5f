"""A KahaDB directory is the same to Lockkeeper and to ActiveMQ, whoever wrote it."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import brokers
import pytest
import wire
from contents import (
    Subscriber,
    everything_queued,
    ids,
    in_doubt,
    queue_contents,
    subscription_contents,
)

from lockkeeper.journal.records import AddMessage
from lockkeeper.journal.verify import StoredRecord, read_records
from lockkeeper.message.bodies import decode_body
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import ActiveMQTextMessage, Message, TransactionOperation, decode

pytestmark = [pytest.mark.interop, pytest.mark.slow]

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb"
DIRECTORIES = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")
SIZE_PREFIX = 4
TEXT_MESSAGE = 28
OF_THE_BROKER = {
    "message_id",
    "command_id",
    "response_required",
    "broker_in_time",
    "broker_out_time",
    "redelivery_counter",
}
"""Fields that a broker sets anew; the message id has the broker's sequence number in it."""


@pytest.fixture(scope="module", params=DIRECTORIES)
def golden(request: pytest.FixtureRequest) -> str:
    """The name of a directory that ActiveMQ wrote."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def manifest(golden: str) -> dict[str, Any]:
    """What ActiveMQ itself served from the golden directory."""
    found: dict[str, Any] = json.loads((GOLDEN / f"{golden}.manifest.json").read_text())
    return found


@pytest.fixture
def ours(golden: str, tmp_path: Path) -> Iterator[brokers.RunningBroker]:
    """Our broker on a copy of the golden directory."""
    shutil.copytree(GOLDEN / golden, tmp_path / "data")
    broker = brokers.start_broker("lockkeeper", tmp_path)
    yield broker
    broker.kill()


def _queues(manifest: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what is to be in each queue."""
    recovered = manifest["recovered_after_index_deletion"]
    return {name: found for name, found in recovered.items() if name.startswith("GOLD.")}


def _subscribers(manifest: dict[str, Any]) -> Iterator[tuple[Subscriber, list[str]]]:
    """Yield the durable subscriptions and the ids they are to hold."""
    for key, found in manifest["recovered_after_index_deletion"].items():
        if key.startswith("sub:"):
            client_id, name, of, *selector = key.removeprefix("sub:").split(":")
            chosen = selector[0] if selector else None
            # The one with the selector was created with noLocal.
            subscriber = Subscriber(client_id, name, of, chosen, no_local=chosen is not None)
            yield subscriber, [entry["id"] for entry in found]


def _branch(entry: dict[str, Any]) -> XATransactionId:
    """Return the transaction that the manifest describes."""
    return XATransactionId(
        entry["format"], bytes.fromhex(entry["gtrid"]), bytes.fromhex(entry["bqual"])
    )


def _described(message: Message) -> dict[str, Any]:
    """Return a message as the manifest describes it: a body only of texts, else the type."""
    body: object = type(message).__name__
    if isinstance(message, ActiveMQTextMessage):
        body = decode_body(TEXT_MESSAGE, message.content, message.compressed)
    return {"id": str(message.message_id), "body": body, "redelivered": False}


def test_queues_are_served_as_activemq_served_them(
    ours: brokers.RunningBroker, manifest: dict[str, Any]
) -> None:
    for name, expected in _queues(manifest).items():
        assert [_described(message) for message in queue_contents(ours.port, name)] == expected
    expected_ids = {
        (name, entry["id"]) for name, found in _queues(manifest).items() for entry in found
    }
    assert everything_queued(ours.port) == expected_ids


def test_messages_are_served_as_they_were_stored(
    ours: brokers.RunningBroker, golden: str, manifest: dict[str, Any]
) -> None:
    stored = _stored(GOLDEN / golden)
    for name in _queues(manifest):
        for message in queue_contents(ours.port, name):
            assert _fields(message) == _fields(stored[str(message.message_id)])


def _stored(directory: Path) -> dict[str, Message]:
    """Return every message in a journal by its id."""
    found = {}
    for entry in read_records(directory):
        if isinstance(entry, StoredRecord) and isinstance(entry.record, AddMessage):
            message, _ = decode(entry.record.message, SIZE_PREFIX, 11)
            assert isinstance(message, Message)
            found[entry.record.message_id] = message
    return found


def _fields(message: Message) -> dict[str, Any]:
    names = {field.name for field in fields(message)} - OF_THE_BROKER
    return {name: getattr(message, name) for name in names}


def test_durable_subscriptions_go_on(ours: brokers.RunningBroker, manifest: dict[str, Any]) -> None:
    for subscriber, expected in _subscribers(manifest):
        assert ids(subscription_contents(ours.port, subscriber)) == expected


def test_prepared_transactions_wait_for_their_outcome(
    ours: brokers.RunningBroker, manifest: dict[str, Any]
) -> None:
    recovered = manifest["recovered_after_index_deletion"]["xa_recover"]
    assert in_doubt(ours.port) == [_branch(entry) for entry in recovered]
    before = ids(queue_contents(ours.port, "GOLD.XA"))
    added, acknowledged = manifest["xa_prepared_add"], manifest["xa_prepared_ack"]
    with wire.Wire(ours.port) as connection:
        commit, rollback = TransactionOperation.COMMIT_TWO_PHASE, TransactionOperation.ROLLBACK
        connection.request(connection.transaction(_branch(added), commit))
        connection.request(connection.transaction(_branch(acknowledged), rollback))
    expected = {*before, added["message"], acknowledged["message"]}
    assert in_doubt(ours.port) == []
    assert set(ids(queue_contents(ours.port, "GOLD.XA"))) == expected
    ours.kill()
    ours.start()
    assert in_doubt(ours.port) == []
    after = ids(queue_contents(ours.port, "GOLD.XA"))
    # The one acknowledged comes back to where it was, the one added comes last.
    assert after == [acknowledged["message"], *before, added["message"]]
