"""A message on its way to the dead letters is never in neither queue."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import wire

from lockkeeper.journal.records import AddMessage, RemoveMessage
from lockkeeper.journal.verify import StoredRecord, read_records
from lockkeeper.message.destination import queue
from lockkeeper.message.openwire import AckType

if TYPE_CHECKING:
    from brokers import RunningBroker

pytestmark = [pytest.mark.crash, pytest.mark.patient]


def test_the_dead_letter_is_in_the_journal_before_the_message_leaves_its_queue(
    start_broker: "Callable[..., RunningBroker]", tmp_path: Path
) -> None:
    broker = start_broker()
    with wire.Wire(broker.port) as connection:
        producer = connection.producer()
        connection.request(wire.bytes_message(producer, 1, queue("Q"), b"unwanted"))
        connection.consumer(queue("Q"))
        dispatch = connection.next_dispatch()
        assert dispatch is not None
        connection.request(wire.acknowledgement(dispatch, AckType.POISON))
    broker.stop()
    records = [
        found.record
        for found in read_records(tmp_path / "data")
        if isinstance(found, StoredRecord) and isinstance(found.record, AddMessage | RemoveMessage)
    ]
    assert [(type(record), record.destination.name) for record in records] == [
        (AddMessage, "Q"),
        (AddMessage, "ActiveMQ.DLQ"),
        (RemoveMessage, "Q"),
    ]
