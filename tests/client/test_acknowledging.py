"""Acknowledgement modes: what a consumer that goes away leaves for the next one."""

import pytest
from client_support import dead_letters, left, take

from lockkeeper.client import Acknowledge, Connection, IllegalStateError


def test_auto_acknowledges_what_was_received(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    session.producer(queue_name).send_many("abc")
    consumer = session.consumer(queue_name)
    take(consumer, 2)
    consumer.close()
    assert left(connection, queue_name) == ["c"]


def test_client_mode_acknowledges_everything_consumed_in_the_session(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session(acknowledge=Acknowledge.CLIENT)
    session.producer(queue_name).send_many("abcd")
    consumer = session.consumer(queue_name)
    messages = take(consumer, 3)
    messages[0].acknowledge()
    session.close()
    assert left(connection, queue_name) == ["d"]


def test_what_client_mode_did_not_acknowledge_comes_again(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session(acknowledge=Acknowledge.CLIENT)
    session.producer(queue_name).send_many("ab")
    take(session.consumer(queue_name), 1)
    session.close()
    again = take(connection.session().consumer(queue_name), 2)
    assert [(message.body, message.redelivered) for message in again] == [
        ("a", True),
        ("b", False),
    ]


@pytest.mark.parametrize("prefetch", [1, 2, 10])
def test_the_window_opens_while_nothing_is_acknowledged(
    connection: Connection, queue_name: str, prefetch: int
) -> None:
    session = connection.session(acknowledge=Acknowledge.CLIENT)
    session.producer(queue_name).send_many([str(n) for n in range(30)])
    consumer = session.consumer(queue_name, prefetch=prefetch)
    messages = take(consumer, 30)
    assert [message.body for message in messages] == [str(n) for n in range(30)]
    messages[-1].acknowledge()
    consumer.close()
    assert left(connection, queue_name) == []


def test_individual_mode_acknowledges_one_message(connection: Connection, queue_name: str) -> None:
    session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
    session.producer(queue_name).send_many("abcd")
    messages = take(session.consumer(queue_name), 4)
    messages[1].acknowledge()
    messages[1].acknowledge()
    messages[3].acknowledge()
    session.close()
    assert left(connection, queue_name) == ["a", "c"]


def test_recover_hands_out_again_what_is_not_acknowledged(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
    session.producer(queue_name).send_many("abc")
    consumer = session.consumer(queue_name)
    take(consumer, 2)[0].acknowledge()
    session.recover()
    again = take(consumer, 2)
    assert [(message.body, message.delivery_count) for message in again] == [("b", 2), ("c", 1)]


@pytest.mark.parametrize("mode", [Acknowledge.CLIENT, Acknowledge.INDIVIDUAL])
def test_a_rejected_message_goes_to_the_dead_letters_with_its_cause(
    connection: Connection, queue_name: str, mode: Acknowledge
) -> None:
    session = connection.session(acknowledge=mode)
    session.producer(queue_name).send_many("abc")
    messages = take(session.consumer(queue_name), 3)
    session.reject(messages[1], "cancelled flight")
    for message in (messages[0], messages[2]):
        message.acknowledge()
    (dead,) = dead_letters(connection, queue_name)
    assert dead.body == "b"
    assert "cancelled flight" in str(dead.properties["dlqDeliveryFailureCause"])
    session.close()
    assert left(connection, queue_name) == []


def test_what_auto_mode_acknowledged_cannot_be_rejected(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session()
    session.producer(queue_name).send("a")
    (message,) = take(session.consumer(queue_name), 1)
    with pytest.raises(IllegalStateError, match="AUTO"):
        message.reject("too late")


def test_a_closed_consumer_does_not_receive(connection: Connection, queue_name: str) -> None:
    consumer = connection.session().consumer(queue_name)
    consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.receive(0)
