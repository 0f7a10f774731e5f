"""Transacted sessions: all or nothing, and what comes again after a rollback."""

import pytest
from client_support import dead_letters, left, take

from lockkeeper.client import (
    Connection,
    IllegalStateError,
    MessagingError,
    RedeliveryPolicy,
    TransactionRolledBackError,
)


def test_what_is_sent_appears_at_commit(connection: Connection, queue_name: str) -> None:
    session = connection.session(transacted=True)
    producer = session.producer(queue_name)
    producer.send("a")
    producer.send("b")
    assert left(connection, queue_name) == []
    session.commit()
    assert left(connection, queue_name) == ["a", "b"]


def test_what_is_rolled_back_was_never_sent(connection: Connection, queue_name: str) -> None:
    session = connection.session(transacted=True)
    producer = session.producer(queue_name)
    producer.send("a")
    session.rollback()
    producer.send("b")
    session.commit()
    assert left(connection, queue_name) == ["b"]


def test_closing_a_session_rolls_it_back(connection: Connection, queue_name: str) -> None:
    connection.session().producer(queue_name).send("taken")
    with connection.session(transacted=True) as session:
        session.producer(queue_name).send("sent")
        assert len(take(session.consumer(queue_name), 1)) == 1
    assert left(connection, queue_name) == ["taken"]


def test_what_is_consumed_is_gone_at_commit(connection: Connection, queue_name: str) -> None:
    connection.session().producer(queue_name).send_many("abcd")
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name)
    take(consumer, 2)
    session.commit()
    take(consumer, 1)
    session.close()
    assert left(connection, queue_name) == ["c", "d"]


def test_a_rollback_hands_out_again_in_order_and_counts(
    connection: Connection, queue_name: str
) -> None:
    connection.session().producer(queue_name).send_many("abcd")
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name)
    take(consumer, 2)
    session.rollback()
    take(consumer, 1)
    session.rollback()
    again = take(consumer, 4)
    assert [(message.body, message.delivery_count) for message in again] == [
        ("a", 3), ("b", 2), ("c", 1), ("d", 1),
    ]  # fmt: skip
    session.commit()
    consumer.close()
    assert left(connection, queue_name) == []


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_many_rollbacks_keep_a_small_window_moving(
    connection: Connection, queue_name: str, prefetch: int
) -> None:
    connection.session().producer(queue_name).send_many([str(n) for n in range(20)])
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name, prefetch=prefetch)
    seen: list[object] = []
    for _ in range(5):
        take(consumer, 4)
        session.rollback()
        seen += [message.body for message in take(consumer, 4)]
        session.commit()
    assert seen == [str(n) for n in range(20)]
    assert left(connection, queue_name) == []


def test_a_message_rolled_back_too_often_is_a_dead_letter_with_its_cause(
    connection: Connection, queue_name: str
) -> None:
    connection.session().producer(queue_name).send_many(["bad", "good"])
    session = connection.session(transacted=True)
    policy = RedeliveryPolicy(2, initial_redelivery_delay=0, redelivery_delay=0)
    consumer = session.consumer(queue_name, redelivery=policy)
    for delivery in (1, 2, 3):
        (message,) = take(consumer, 1)
        assert (message.body, message.delivery_count) == ("bad", delivery)
        session.rollback(ValueError("no such flight"))
    assert [message.body for message in take(consumer, 1)] == ["good"]
    session.commit()
    (dead,) = dead_letters(connection, queue_name)
    assert dead.body == "bad"
    cause = str(dead.properties["dlqDeliveryFailureCause"])
    assert "exceeds redelivery policy limit" in cause
    assert "no such flight" in cause


def test_a_rejection_stands_whatever_the_transaction_does(
    connection: Connection, queue_name: str
) -> None:
    connection.session().producer(queue_name).send_many("abc")
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name)
    session.reject(take(consumer, 2)[1], "cancelled flight")
    session.rollback()
    assert [message.body for message in take(consumer, 2)] == ["a", "c"]
    session.commit()
    consumer.close()
    assert left(connection, queue_name) == []
    (dead,) = dead_letters(connection, queue_name)
    assert (dead.body, "cancelled flight" in str(dead.properties)) == ("b", True)


def test_redelivery_waits_as_the_policy_says(connection: Connection, queue_name: str) -> None:
    connection.session().producer(queue_name).send("a")
    session = connection.session(transacted=True)
    policy = RedeliveryPolicy(initial_redelivery_delay=0.3)
    consumer = session.consumer(queue_name, redelivery=policy)
    take(consumer, 1)
    session.rollback()
    assert consumer.receive(0.1) is None
    assert [message.delivery_count for message in take(consumer, 1)] == [2]
    session.commit()


def test_a_consumer_closed_within_a_transaction_still_takes_part(
    connection: Connection, queue_name: str
) -> None:
    connection.session().producer(queue_name).send_many("ab")
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name)
    take(consumer, 1)
    consumer.close()
    session.commit()
    assert left(connection, queue_name) == ["b"]


def test_a_consumer_closed_before_a_rollback_gives_back(
    connection: Connection, queue_name: str
) -> None:
    connection.session().producer(queue_name).send_many("ab")
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name)
    take(consumer, 1)
    consumer.close()
    session.rollback()
    assert left(connection, queue_name) == ["a", "b"]


def test_consuming_and_sending_commit_together(connection: Connection, queue_name: str) -> None:
    target = queue_name + ".TARGET"
    connection.session().producer(queue_name).send_many("ab")
    session = connection.session(transacted=True)
    consumer, producer = session.consumer(queue_name), session.producer(target)
    for message in take(consumer, 2):
        producer.send(message.body)
    session.rollback()
    assert (left(connection, target), len(take(consumer, 2))) == ([], 2)
    producer.send("once")
    session.commit()
    assert left(connection, target) == ["once"]


def test_a_send_that_fails_fails_the_commit(connection: Connection, queue_name: str) -> None:
    connection.on_error = lambda error: None
    session = connection.session(transacted=True)
    gone = connection.temporary_queue()
    unknown = type(gone)(gone.kind, gone.name + "9")
    session.producer().send("to nowhere", destination=unknown)
    session.producer(queue_name).send("and somewhere")
    with pytest.raises(TransactionRolledBackError):
        session.commit()


def test_only_transacted_sessions_commit(connection: Connection) -> None:
    with pytest.raises(IllegalStateError):
        connection.session().commit()
    with pytest.raises(MessagingError):
        connection.session(transacted=True).acknowledge()


def test_an_empty_commit_is_nothing(connection: Connection) -> None:
    session = connection.session(transacted=True)
    session.commit()
    session.rollback()
    session.commit()
