"""What a running broker of ours writes, the tables tell: of messages, and of who was there."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from journal_maker import rows_of

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

import brokers
from ports import free_port

from lockkeeper.client import Acknowledge, connect

WITHOUT_STOP = "the master before did not stop cleanly"


@pytest.fixture
def broker(tmp_path):
    port = free_port()
    running = brokers.RunningBroker(
        "lockkeeper", port, tmp_path, brokers.lockkeeper_command(tmp_path, port)
    )
    yield running
    if running.process.poll() is None:
        running.stop()


def use(broker):
    """Send six messages, consume three, reject one, roll one back; return the journal's place."""
    with connect(broker.url, client_id="clerk", user="ann", password="x") as connection:
        session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
        producer = session.producer("ORDERS")
        for number in range(6):
            producer.send(f"order {number}")
        consumer = session.consumer("ORDERS", "JMSPriority > 3", prefetch=10)
        for _ in range(3):
            consumer.receive(5).acknowledge()
        session.reject(consumer.receive(5), "no such customer")
        transacted = connection.session(transacted=True)
        other = transacted.producer("OTHER")
        other.send("undone")
        transacted.rollback()
        other.send("done")
        transacted.commit()
    return broker.directory / "data"


def found(directory):
    rows = rows_of(directory, table="messages", columns="destination,outcome")
    return Counter((row["destination"], row["outcome"]) for row in rows)


def test_messages_have_the_outcome_that_clients_brought_about(broker):
    data = use(broker)
    directory = next(path.parent for path in data.rglob("db-1.log"))
    expected = {
        ("ORDERS", "acknowledged"): 3,
        ("ORDERS", "dead_lettered"): 1,
        ("ORDERS", "pending"): 2,
        ("ActiveMQ.DLQ", "pending"): 1,
        ("OTHER", "pending"): 2,
    }
    broker.stop()
    broker.start()
    with connect(broker.url) as connection:
        connection.session().producer("OTHER").send("before the crash")
    broker.kill()
    broker.start()
    broker.stop()
    assert found(directory) == expected
    (died,) = [
        row for row in rows_of(directory, table="messages") if row["outcome"] == "dead_lettered"
    ]
    assert "no such customer" in died["end_cause"]
    assert died["dead_letter_destination"] == "queue://ActiveMQ.DLQ"
    acks = rows_of(directory, table="acks")
    assert len(acks) == 4
    assert all(ack["latency_at_most_ms"] is not None for ack in acks)
    events = rows_of(directory, table="events")
    names = [row["event"] for row in events]
    assert names[:2] == ["start", "configuration"]
    starts = [row["cause"] for row in events if row["event"] == "start"]
    assert starts == [None, "lockkeeper-0 stopped cleanly", WITHOUT_STOP]
    assert names[-1] == "stop"
    of_first = events[: names.index("stop")]
    counted = Counter(row["event"] for row in of_first)
    assert counted["connectionOpened"] == counted["connectionClosed"] == 1
    by_name = {row["event"]: row for row in of_first}
    opened = by_name["consumerOpened"]
    assert (opened["client_id"], opened["user_name"], opened["prefetch"]) == ("clerk", "ann", 10)
    assert (opened["selector"], opened["destination"]) == ("JMSPriority > 3", "queue://ORDERS")
    assert by_name["connectionOpened"]["address"].startswith("tcp://127.0.0.1:")
    (producer,) = {
        row["producer_id"] for row in rows_of(directory, table="messages", destination="ORDERS")
    }
    assert producer in {row["producer_id"] for row in events if row["event"] == "producerOpened"}
    (orders, *_) = rows_of(directory, table="statistics", destination="ORDERS")
    assert (orders["enqueued"], orders["dead_lettered"]) == (6, 1)
