"""A broker that dies: what goes on as if nothing had happened, and what the caller learns."""

import signal
import threading
import time
from pathlib import Path

import brokers
import pytest
from client_support import Connect, bodies, left, start_broker, take
from relay import Relay

from lockkeeper.client import (
    Acknowledge,
    ConnectionFailedError,
    MessagingError,
    RequestTimedOutError,
    TransactionRolledBackError,
)

OPTIONS = "?initialReconnectDelay=10&maxReconnectDelay=100"
Mortal = brokers.RunningBroker


def failover(*running: Mortal) -> str:
    return f"failover:({','.join(broker.url for broker in running)}){OPTIONS}"


def restart(broker: Mortal) -> None:
    broker.kill()
    broker.start()


def test_a_send_in_progress_just_returns_later(
    mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    producer = open_connection(failover(mortal_broker)).session().producer(queue_name)
    sent: list[str] = []

    def send() -> None:
        for number in range(300):
            producer.send(str(number))
            sent.append(str(number))

    sender = threading.Thread(target=send)
    sender.start()
    while len(sent) < 100:
        time.sleep(0.001)
    restart(mortal_broker)
    sender.join(60)
    assert len(sent) == 300
    assert left(open_connection(mortal_broker.url), queue_name) == [str(n) for n in range(300)]


def test_an_open_transaction_of_sends_is_told_to_the_next_broker(
    mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(mortal_broker))
    session = connection.session(transacted=True)
    producer = session.producer(queue_name)
    producer.send("before")
    restart(mortal_broker)
    producer.send("after")
    assert left(connection, queue_name) == []
    session.commit()
    assert left(connection, queue_name) == ["before", "after"]
    producer.send("again")
    session.commit()
    assert left(connection, queue_name) == ["before", "after", "again"]


def test_a_transaction_of_sends_goes_on_when_only_the_socket_was_cut(
    broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    """The broker has the messages of the first try, and must not take the second for them."""
    with Relay(broker.port) as relay:
        connection = open_connection(f"failover:({relay.url}){OPTIONS}")
        session = connection.session(transacted=True)
        producer = session.producer(queue_name)
        for number in range(3):
            producer.send(f"before {number}" + "x" * 70_000)
        interrupted = threading.Event()
        connection.on_interrupted = interrupted.set
        relay.cut()
        assert interrupted.wait(10)
        producer.send("after")
        session.commit()
        found = [str(body)[:8] for body in left(connection, queue_name)]
        assert found == ["before 0", "before 1", "before 2", "after"]
        connection.close()


def test_what_an_open_transaction_consumed_comes_again(
    mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(mortal_broker))
    connection.session().producer(queue_name).send_many("abc")
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name)
    assert bodies(consumer, 2) == ["a", "b"]
    restart(mortal_broker)
    again = take(consumer, 1)
    assert [(message.body, message.redelivered) for message in again] == [("a", True)]
    with pytest.raises(TransactionRolledBackError):
        session.commit()
    assert bodies(consumer, 3) == ["a", "b", "c"]
    session.commit()
    consumer.close()
    assert left(connection, queue_name) == []


def test_a_rollback_after_the_cut_is_simply_done(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(our_mortal_broker))
    connection.session().producer(queue_name).send_many("ab")
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name)
    session.producer(queue_name).send("c")
    assert bodies(consumer, 1) == ["a"]
    restart(our_mortal_broker)
    session.rollback()
    assert bodies(consumer, 2) == ["a", "b"]
    session.commit()


def test_an_interrupted_consumer_goes_on(
    mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(mortal_broker))
    session = connection.session()
    session.producer(queue_name).send_many([str(n) for n in range(100)])
    consumer = session.consumer(queue_name)
    assert bodies(consumer, 10) == [str(n) for n in range(10)]
    restart(mortal_broker)
    second: list[object] = []
    while "99" not in second:
        second += bodies(consumer, 1)
    # The broker may have lost some of the last acknowledgements, but nothing else comes twice.
    assert second == [str(n) for n in range(100 - len(second), 100)]
    assert len(second) >= 90


def test_acknowledging_what_the_cut_took_away_does_nothing(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(our_mortal_broker))
    errors: list[MessagingError] = []
    connection.on_error = errors.append
    session = connection.session(acknowledge=Acknowledge.CLIENT)
    session.producer(queue_name).send_many("ab")
    consumer = session.consumer(queue_name)
    (before,) = take(consumer, 1)
    restart(our_mortal_broker)
    before.acknowledge()
    again = take(consumer, 2)
    assert [(message.body, message.redelivered) for message in again] == [
        ("a", True),
        ("b", False),
    ]
    again[-1].acknowledge()
    session.close()
    assert left(connection, queue_name) == []
    assert errors == []


def test_pulling_survives(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    session = open_connection(failover(our_mortal_broker)).session()
    consumer = session.consumer(queue_name, prefetch=0)
    received: list[object] = []
    puller = threading.Thread(target=lambda: received.extend(bodies(consumer, 1)))
    puller.start()
    time.sleep(0.2)
    restart(our_mortal_broker)
    session.producer(queue_name).send("pulled")
    puller.join(30)
    assert received == ["pulled"]


def test_temporary_queues_and_topic_subscriptions_are_made_again(
    mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(mortal_broker))
    session = connection.session()
    answers = connection.temporary_queue()
    consumer = session.consumer(answers)
    subscriber = session.consumer(f"topic://{queue_name}")
    restart(mortal_broker)
    session.producer(f"topic://{queue_name}").send("news")
    session.producer(answers).send("answer")
    assert bodies(subscriber, 1) == ["news"]
    assert bodies(consumer, 1) == ["answer"]


def test_what_one_subscription_acknowledged_still_comes_to_another(
    mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    """Both are of one connection, which remembers what it has acknowledged."""
    connection = open_connection(failover(mortal_broker), client_id="both")
    topic = f"topic://{queue_name}"
    first = connection.session().consumer(topic, subscription_name="first")
    session = connection.session(acknowledge=Acknowledge.CLIENT)
    second = session.consumer(topic, subscription_name="second")
    connection.session().producer(topic).send_many("abc")
    assert bodies(first, 3) == ["a", "b", "c"]
    restart(mortal_broker)
    assert bodies(second, 3) == ["a", "b", "c"]
    assert first.receive(0.5) is None


def test_the_next_broker_of_the_list_takes_over(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str, tmp_path: Path
) -> None:
    other = start_broker(our_mortal_broker.kind, tmp_path / "other")
    try:
        connection = open_connection(failover(our_mortal_broker, other) + "&randomize=false")
        assert connection.address == our_mortal_broker.url
        session = connection.session()
        consumer = session.consumer(queue_name)
        our_mortal_broker.kill()
        session.producer(queue_name).send("to the other")
        assert connection.address == other.url
        assert bodies(consumer, 1) == ["to the other"]
        connection.close()
    finally:
        other.stop()


def test_connecting_waits_for_a_broker(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    our_mortal_broker.kill()
    starter = threading.Timer(0.3, our_mortal_broker.start)
    starter.start()
    connection = open_connection(failover(our_mortal_broker))
    assert left(connection, queue_name) == []
    starter.join()


def test_without_failover_everyone_learns_that_the_connection_is_lost(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    session = open_connection(our_mortal_broker.url).session()
    consumer, producer = session.consumer(queue_name), session.producer(queue_name)
    threading.Timer(0.2, our_mortal_broker.kill).start()
    with pytest.raises(ConnectionFailedError, match=our_mortal_broker.url):
        consumer.receive(30)
    with pytest.raises(ConnectionFailedError):
        producer.send("too late")


def test_failover_gives_up_when_its_attempts_are_used_up(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(our_mortal_broker) + "&maxReconnectAttempts=3")
    producer = connection.session().producer(queue_name)
    our_mortal_broker.kill()
    with pytest.raises(ConnectionFailedError, match="reached again"):
        producer.send("too late")


def test_a_send_without_broker_ends_after_its_timeout(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(our_mortal_broker) + "&timeout=1000")
    producer = connection.session().producer(queue_name)
    our_mortal_broker.kill()
    while connection.address is not None:
        time.sleep(0.01)
    with pytest.raises(RequestTimedOutError, match=r"no broker for 1 s"):
        producer.send("too late")


def test_a_connection_without_broker_can_be_closed(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(failover(our_mortal_broker))
    session = connection.session(transacted=True)
    session.producer(queue_name).send("never committed")
    session.consumer(queue_name)
    our_mortal_broker.kill()
    began = time.monotonic()
    connection.close()
    assert time.monotonic() - began < 5


def test_a_broker_that_falls_silent_is_given_up_after_the_agreed_time(
    our_mortal_broker: Mortal, open_connection: Connect, queue_name: str
) -> None:
    """The first delay does not come on top: it only keeps the checks from beginning."""
    times = "maxInactivityDuration=3000&wireFormat.maxInactivityDurationInitalDelay=3000"
    connection = open_connection(f"{our_mortal_broker.url}?wireFormat.{times}")
    producer = connection.session().producer(queue_name)
    producer.send("heard")
    our_mortal_broker.process.send_signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(ConnectionFailedError, match="silent for 3 s"):
            producer.send("not heard")
        assert 2.5 < time.monotonic() - began < 5
    finally:
        our_mortal_broker.process.send_signal(signal.SIGCONT)
