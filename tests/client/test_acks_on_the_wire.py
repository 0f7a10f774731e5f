"""Acknowledgements as they are on the wire, in each mode (openwire.md section 7.5)."""

import time
from collections.abc import Iterator
from typing import TypeAlias

import brokers
import pytest
from client_support import Connect, bodies, dead_letters, left, take
from relay import Relay

from lockkeeper.client import Acknowledge, Connection, RedeliveryPolicy
from lockkeeper.message.openwire import AckType, MessageAck, TransactionInfo

Told: TypeAlias = list[tuple[AckType, int]]
STANDARD, DELIVERED, INDIVIDUAL = AckType.STANDARD, AckType.DELIVERED, AckType.INDIVIDUAL


@pytest.fixture
def relay(broker: brokers.RunningBroker) -> Iterator[Relay]:
    with Relay(broker.port) as running:
        yield running


def acks(relay: Relay, connection: Connection) -> list[MessageAck]:
    """Return the acknowledgements so far; everything before has reached the broker."""
    connection.temporary_queue()
    return [each for each in relay.commands() if isinstance(each, MessageAck)]


def kinds(relay: Relay, connection: Connection) -> Told:
    return [(AckType(each.ack_type), each.message_count) for each in acks(relay, connection)]


def fill(connection: Connection, name: str, count: int) -> None:
    connection.session().producer(name).send_many([str(n) for n in range(count)])


def test_auto_acknowledges_each(relay: Relay, open_connection: Connect, queue_name: str) -> None:
    connection = open_connection(relay.url)
    fill(connection, queue_name, 4)
    take(connection.session().consumer(queue_name, prefetch=10), 3)
    assert kinds(relay, connection) == [(STANDARD, 1)] * 3


def test_client_reports_half_windows_and_acknowledges_the_session(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(relay.url)
    fill(connection, queue_name, 14)
    session = connection.session(acknowledge=Acknowledge.CLIENT)
    messages = take(session.consumer(queue_name, prefetch=10), 12)
    assert kinds(relay, connection) == [(DELIVERED, 5)] * 2
    messages[3].acknowledge()
    found = acks(relay, connection)[2:]
    assert [(each.ack_type, each.message_count) for each in found] == [(STANDARD, 12)]
    assert str(found[0].first_message_id) == messages[0].message_id
    assert str(found[0].last_message_id) == messages[-1].message_id
    session.close()
    assert left(connection, queue_name) == ["12", "13"]


def test_client_acknowledges_all_consumers_of_its_session(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(relay.url)
    names = [queue_name, queue_name + ".OTHER"]
    session = connection.session(acknowledge=Acknowledge.CLIENT)
    for name in names:
        fill(connection, name, 2)
    received = [take(session.consumer(name), 2) for name in names]
    received[1][0].acknowledge()
    assert kinds(relay, connection) == [(STANDARD, 2)] * 2
    assert [left(connection, name) for name in names] == [[], []]


def test_individual_names_one_message_alone(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(relay.url)
    fill(connection, queue_name, 4)
    session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
    messages = take(session.consumer(queue_name, prefetch=10), 4)
    for message in (messages[2], messages[0]):
        message.acknowledge()
    found = acks(relay, connection)
    assert [(each.ack_type, each.message_count) for each in found] == [(INDIVIDUAL, 1)] * 2
    assert [each.first_message_id for each in found] == [None, None]
    assert [str(each.last_message_id) for each in found] == [
        messages[2].message_id, messages[0].message_id,
    ]  # fmt: skip


def test_transacted_acknowledges_within_the_transaction(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(relay.url)
    fill(connection, queue_name, 8)
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name, prefetch=10)
    take(consumer, 7)
    session.commit()
    take(consumer, 1)
    session.rollback()
    found = acks(relay, connection)
    assert [(each.ack_type, each.message_count) for each in found] == [
        (DELIVERED, 5), (STANDARD, 7),
    ]  # fmt: skip
    assert [each.transaction_id is None for each in found] == [True, False]
    ends = [each.type for each in relay.commands() if isinstance(each, TransactionInfo)]
    assert ends == [0, 2], "what has begun nothing has nothing to roll back"


def test_dups_ok_acknowledges_half_windows_of_topics(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(relay.url)
    name = f"topic://{queue_name}"
    session = connection.session(acknowledge=Acknowledge.DUPS_OK)
    consumer = session.consumer(name, prefetch=10)
    fill(connection, name, 12)
    assert bodies(consumer, 12) == [str(n) for n in range(12)]
    assert kinds(relay, connection) == [(STANDARD, 5)] * 2
    consumer.close()
    assert kinds(relay, connection)[2:] == [(STANDARD, 2)]


def test_dups_ok_acknowledges_each_of_a_queue(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(relay.url)
    fill(connection, queue_name, 3)
    session = connection.session(acknowledge=Acknowledge.DUPS_OK)
    take(session.consumer(queue_name, prefetch=10), 3)
    assert kinds(relay, connection) == [(STANDARD, 1)] * 3


def test_optimized_acknowledges_65_percent_or_after_its_time(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(f"{relay.url}?jms.optimizeAcknowledge=true")
    fill(connection, queue_name, 15)
    consumer = connection.session().consumer(queue_name, prefetch=20)
    take(consumer, 15)
    assert kinds(relay, connection) == [(STANDARD, 13)]
    deadline = time.monotonic() + 10
    while len(kinds(relay, connection)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert kinds(relay, connection) == [(STANDARD, 13), (STANDARD, 2)]
    assert left(connection, queue_name) == []


def test_what_comes_too_often_is_poison_with_its_cause(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(relay.url)
    fill(connection, queue_name, 1)
    session = connection.session(transacted=True)
    policy = RedeliveryPolicy(1, initial_redelivery_delay=0, redelivery_delay=0)
    consumer = session.consumer(queue_name, redelivery=policy)
    for _ in range(2):
        take(consumer, 1)
        session.rollback(ValueError("no such flight"))
    (poison,) = acks(relay, connection)
    assert (poison.ack_type, poison.message_count) == (AckType.POISON, 1)
    assert poison.transaction_id is None and poison.poison_cause is not None
    assert "no such flight" in str(poison.poison_cause.message)
    assert len(dead_letters(connection, queue_name)) == 1


def test_what_expired_on_its_way_is_acknowledged_as_such(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(relay.url)
    consumer = connection.session().consumer(queue_name)
    connection.session().producer(queue_name).send("short", time_to_live=0.2)
    time.sleep(0.4)
    assert consumer.receive(0) is None
    assert kinds(relay, connection) == [(AckType.EXPIRED, 1)]


@pytest.mark.parametrize("mode", [Acknowledge.CLIENT, Acknowledge.TRANSACTED])
def test_messages_taken_by_priority_are_acknowledged_in_ranges_that_span_no_other(
    relay: Relay, open_connection: Connect, queue_name: str, mode: Acknowledge
) -> None:
    connection = open_connection(f"{relay.url}?jms.messagePrioritySupported=true")
    producer = connection.session().producer(queue_name)
    for body, priority in (("a4", 4), ("b9", 9), ("c4", 4), ("d9", 9), ("e4", 4)):
        producer.send(body, priority=priority)
    session = connection.session(acknowledge=mode, transacted=mode is Acknowledge.TRANSACTED)
    consumer = session.consumer(queue_name)
    time.sleep(0.3)
    assert bodies(consumer, 3) == ["b9", "d9", "a4"]
    if mode is Acknowledge.CLIENT:
        session.acknowledge()
    else:
        session.commit()
    assert kinds(relay, connection) == [(STANDARD, 2), (STANDARD, 1)]
    session.close()
    assert left(connection, queue_name) == ["c4", "e4"]


def test_redelivery_is_as_the_destination_says(
    relay: Relay, open_connection: Connect, queue_name: str
) -> None:
    from lockkeeper.client import RedeliveryPolicyMap

    at_once = RedeliveryPolicy(0, initial_redelivery_delay=0, redelivery_delay=0)
    policies = RedeliveryPolicyMap(
        RedeliveryPolicy(initial_redelivery_delay=0), {f"{queue_name}.BAD.>": at_once}
    )
    connection = open_connection(relay.url, redelivery=policies)
    session = connection.session(transacted=True)
    for name in (f"{queue_name}.BAD.X", f"{queue_name}.GOOD"):
        fill(connection, name, 1)
        consumer = session.consumer(name)
        take(consumer, 1)
        session.rollback()
        consumer.close()
    assert left(connection, f"{queue_name}.GOOD") == ["0"]
    assert len(dead_letters(connection, f"{queue_name}.BAD.X")) == 1
