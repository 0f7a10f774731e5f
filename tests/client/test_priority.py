"""Brokers with priority: a client moves to one as soon as it is there, after what is in hand."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import brokers
import pytest
from client_support import Connect, bodies, left, start_broker, take

from lockkeeper.client import Xid, connect

OPTIONS = "initialReconnectDelay=10&maxReconnectDelay=50"


class Pair:
    """Two brokers that know nothing of each other; the first one is not there yet."""

    def __init__(self, directory: Path) -> None:
        self.first = start_broker("lockkeeper", directory / "first")
        self.second = start_broker("lockkeeper", directory / "second")
        self.first.stop()

    def url(self, options: str = "priorityBackup=true") -> str:
        return f"failover:({self.first.url},{self.second.url})?{OPTIONS}&{options}"

    def stop(self) -> None:
        for each in (self.first, self.second):
            if each.process.poll() is None:
                each.stop()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.stop()


def becomes(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def holds(broker: brokers.RunningBroker, queue_name: str) -> list[object]:
    with connect(broker.url) as connection:
        return left(connection, queue_name)


def test_a_client_moves_to_the_broker_with_priority(
    pair: Pair, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(pair.url())
    resumed = threading.Event()
    connection.on_resumed = resumed.set
    assert connection.address == pair.second.url
    session = connection.session()
    producer, consumer = session.producer(queue_name), session.consumer(queue_name)
    producer.send_many("abc")
    assert bodies(consumer, 1) == ["a"]
    pair.first.start()
    assert resumed.wait(10)
    assert connection.address == pair.first.url
    producer.send("d")
    assert bodies(consumer, 1) == ["d"]
    with connect(pair.second.url) as other:
        again = take(other.session().consumer(queue_name), 2)
    assert [(each.body, each.delivery_count) for each in again] == [("b", 1), ("c", 1)]


def test_without_priority_a_client_stays_where_it_is(pair: Pair, open_connection: Connect) -> None:
    connection = open_connection(pair.url("priorityBackup=false"))
    preferring = open_connection(pair.url())
    pair.first.start()
    assert becomes(lambda: preferring.address == pair.first.url)
    assert connection.address == pair.second.url


def test_others_than_the_first_may_have_priority(pair: Pair, open_connection: Connect) -> None:
    pair.first.start()
    pair.second.stop()
    connection = open_connection(
        pair.url(f"priorityBackup=true&priorityURIs={pair.second.url},tcp://a..b:1")
    )
    assert connection.address == pair.first.url
    pair.second.start()
    assert becomes(lambda: connection.address == pair.second.url)


def test_a_transaction_in_hand_is_finished_first(
    pair: Pair, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(pair.url())
    connection.session().producer(queue_name).send_many("abc")
    session = connection.session(transacted=True)
    consumer = session.consumer(queue_name)
    assert bodies(consumer, 1) == ["a"]
    preferring = open_connection(pair.url())
    pair.first.start()
    assert becomes(lambda: preferring.address == pair.first.url)
    assert bodies(consumer, 1) == ["b"]
    assert connection.address == pair.second.url
    session.commit()
    assert becomes(lambda: connection.address == pair.first.url)
    assert consumer.receive(0.2) is None
    assert holds(pair.second, queue_name) == ["c"]


def test_no_transaction_begins_while_another_is_finished(
    pair: Pair, open_connection: Connect, queue_name: str
) -> None:
    """With many consumers there would always be one in hand."""
    connection = open_connection(pair.url())
    connection.session().producer(queue_name).send_many("abc")
    sessions = [connection.session(transacted=True) for _ in range(2)]
    consumers = [session.consumer(queue_name, prefetch=1) for session in sessions]
    assert bodies(consumers[0], 1) == ["a"]
    assert bodies(consumers[1], 1) == ["b"]
    preferring = open_connection(pair.url())
    pair.first.start()
    assert becomes(lambda: preferring.address == pair.first.url)
    time.sleep(0.2)
    sessions[1].commit()
    assert consumers[1].receive(0.3) is None, "c waits for it"
    assert connection.address == pair.second.url
    sessions[0].rollback()
    assert becomes(lambda: connection.address == pair.first.url)
    connection.session().producer(queue_name).send("d")
    assert bodies(consumers[1], 1, 2) + bodies(consumers[0], 1, 2) == ["d"]
    assert sorted(map(str, holds(pair.second, queue_name))) == ["a", "c"]


def test_a_branch_in_hand_is_finished_first(
    pair: Pair, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(pair.url())
    session = connection.session(transacted=True)
    session.tpc_begin(Xid(1, b"1", b"1"))
    session.producer(queue_name).send("in the branch")
    preferring = open_connection(pair.url())
    pair.first.start()
    assert becomes(lambda: preferring.address == pair.first.url)
    assert session.tpc_prepare()
    session.tpc_commit()
    assert becomes(lambda: connection.address == pair.first.url)
    assert holds(pair.second, queue_name) == ["in the branch"]


def test_a_transaction_that_has_only_sent_goes_along(
    pair: Pair, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(pair.url())
    session = connection.session(transacted=True)
    producer = session.producer(queue_name)
    producer.send("before")
    pair.first.start()
    assert becomes(lambda: connection.address == pair.first.url)
    producer.send("after")
    session.commit()
    assert holds(pair.first, queue_name) == ["before", "after"]
    assert holds(pair.second, queue_name) == []


def test_what_is_sent_all_the_time_arrives_at_one_of_them(
    pair: Pair, open_connection: Connect, queue_name: str
) -> None:
    connection = open_connection(pair.url())
    producer = connection.session().producer(queue_name)
    sent: list[object] = []
    has_moved = threading.Event()

    def send() -> None:
        last = -1
        while last < 0 or len(sent) < last + 20:
            producer.send(str(len(sent)))
            sent.append(str(len(sent)))
            if last < 0 and has_moved.is_set():
                last = len(sent)

    connection.on_resumed = has_moved.set
    sender = threading.Thread(target=send)
    sender.start()
    pair.first.start()
    sender.join(60)
    assert connection.address == pair.first.url
    assert holds(pair.second, queue_name) + holds(pair.first, queue_name) == sent


def test_a_broker_with_priority_that_does_not_answer_is_left_alone(
    pair: Pair, open_connection: Connect, queue_name: str
) -> None:
    """Something listens at its port, and says nothing."""
    import socket

    with socket.create_server(("127.0.0.1", pair.first.port)) as silent:
        silent.settimeout(10)
        options = "priorityBackup=true&nested.connectionTimeout=200"
        connection = open_connection(pair.url(options))
        for _ in range(3):
            silent.accept()[0].close()
        assert connection.address == pair.second.url
        connection.session().producer(queue_name).send("still here")
    assert holds(pair.second, queue_name) == ["still here"]
