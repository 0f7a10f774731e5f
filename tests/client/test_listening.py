"""Listeners: one message after the other, acknowledged when they return, again when they raise."""

import asyncio
import threading
import time
from typing import Any

import brokers
import pytest
from client_support import Connect, dead_letters, left

from lockkeeper.client import (
    Acknowledge,
    Connection,
    IllegalStateError,
    ReceivedMessage,
    RedeliveryPolicy,
)

AT_ONCE = RedeliveryPolicy(2, initial_redelivery_delay=0, redelivery_delay=0)


class Handler:
    """Notes what comes; fails with some bodies, and takes its time."""

    def __init__(self, fails: tuple[str, ...] = (), seconds: float = 0) -> None:
        self.came: list[tuple[object, int]] = []
        self.threads: set[int] = set()
        self.at_once = self.most_at_once = 0
        self._fails, self._seconds = fails, seconds
        self._changed = threading.Condition()

    def __call__(self, message: ReceivedMessage) -> None:
        with self._changed:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(self._seconds)
        with self._changed:
            self.at_once -= 1
            self.threads.add(threading.get_ident())
            self.came.append((message.body, message.delivery_count))
            self._changed.notify_all()
        if message.body in self._fails:
            raise ValueError(f"{message.body} is of no use")

    async def coroutine(self, message: ReceivedMessage) -> None:
        self(message)

    def wait(self, count: int) -> list[Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.came) >= count, 20)
            return [body for body, _ in self.came]


def drained(connection: Connection, queue_name: str) -> bool:
    """Wait until a queue is empty: acknowledgements have arrived."""
    deadline = time.monotonic() + 10
    while left(connection, queue_name):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("kind", ["function", "coroutine"])
@pytest.mark.parametrize("mode", [Acknowledge.AUTO, Acknowledge.DUPS_OK])
def test_a_listener_gets_every_message_in_order(
    connection: Connection, queue_name: str, kind: str, mode: Acknowledge
) -> None:
    session = connection.session(acknowledge=mode)
    handler = Handler()
    listener = handler if kind == "function" else handler.coroutine
    consumer = session.consumer(queue_name, listener=listener)
    connection.session().producer(queue_name).send_many([str(n) for n in range(50)])
    assert handler.wait(50) == [str(n) for n in range(50)]
    consumer.close()
    assert drained(connection, queue_name)


def test_a_message_is_acknowledged_after_the_listener_returns(
    connection: Connection, queue_name: str
) -> None:
    begun, ending = threading.Event(), threading.Event()

    def hold(message: ReceivedMessage) -> None:
        begun.set()
        ending.wait(20)

    connection.session().producer(queue_name).send("held")
    consumer = connection.session().consumer(queue_name, listener=hold)
    assert begun.wait(10)
    assert left(connection, queue_name) == ["held"]
    ending.set()
    assert drained(connection, queue_name)
    consumer.close()


@pytest.mark.parametrize("mode", [Acknowledge.AUTO, Acknowledge.INDIVIDUAL])
def test_what_a_listener_fails_with_comes_again_and_is_a_dead_letter_in_the_end(
    connection: Connection, queue_name: str, mode: Acknowledge
) -> None:
    handler = Handler(fails=("bad",))
    session = connection.session(acknowledge=mode)
    connection.session().producer(queue_name).send_many(["bad", "good"])
    session.consumer(queue_name, listener=handler, redelivery=AT_ONCE)
    handler.wait(4)
    assert handler.came == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
    (dead,) = dead_letters(connection, queue_name)
    assert (dead.body, "bad is of no use" in str(dead.properties)) == ("bad", True)


@pytest.mark.parametrize("kind", ["function", "coroutine"])
@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit])
def test_what_would_end_a_task_or_a_thread_is_a_failure_of_the_listener(
    open_connection: Connect,
    broker: brokers.RunningBroker,
    queue_name: str,
    kind: str,
    error: type[BaseException],
) -> None:
    """Something that it awaited was cancelled, or it ends its thread: others come all the same."""
    connection = open_connection(broker.url)
    handler = Handler()

    def function(message: ReceivedMessage) -> None:
        handler(message)
        if not message.redelivered and message.body == "0":
            raise error

    async def coroutine(message: ReceivedMessage) -> None:
        function(message)

    listener = function if kind == "function" else coroutine
    connection.session().consumer(queue_name, listener=listener)
    connection.session().producer(queue_name).send_many(["0", "1"])
    assert handler.wait(3) == ["0", "0", "1"]
    assert drained(connection, queue_name)


def test_the_listeners_of_a_session_take_turns_in_one_thread(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session()
    handler = Handler(seconds=0.01)
    names = [f"{queue_name}.{number}" for number in range(3)]
    for name in names:
        session.consumer(name, listener=handler)
    producer = connection.session().producer()
    for number in range(15):
        producer.send(str(number), destination=names[number % 3])
    handler.wait(15)
    assert (handler.most_at_once, len(handler.threads)) == (1, 1)


def test_a_session_has_a_listener_or_receives(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    session.consumer(queue_name, listener=Handler())
    other = session.consumer(queue_name + ".OTHER")
    with pytest.raises(IllegalStateError, match="has a listener"):
        other.receive(0)


def test_nobody_begins_to_listen_while_another_receives(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session()
    consumer, other = session.consumer(queue_name), session.consumer(queue_name + ".OTHER")
    receiving = threading.Thread(target=lambda: consumer.receive(1))
    receiving.start()
    time.sleep(0.3)
    with pytest.raises(IllegalStateError, match="somebody receives"):
        other.listen(Handler())
    receiving.join()


def test_closing_waits_for_the_message_in_hand_and_gives_back_the_rest(
    connection: Connection, queue_name: str
) -> None:
    handler = Handler(seconds=0.3)
    connection.session().producer(queue_name).send_many("abc")
    session = connection.session()
    session.consumer(queue_name, listener=handler)
    while not handler.at_once:
        time.sleep(0.01)
    session.close()
    assert [body for body, _ in handler.came] == ["a"]
    assert left(connection, queue_name) == ["b", "c"]
    again = connection.session().consumer(queue_name)
    message = again.receive(5)
    assert message is not None
    assert (message.body, message.delivery_count) == ("b", 1)


def test_a_listener_stops_and_receiving_goes_on(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    producer = connection.session().producer(queue_name)
    handler = Handler()
    consumer = session.consumer(queue_name, listener=handler)
    producer.send("heard")
    handler.wait(1)
    consumer.stop_listening()
    producer.send("received")
    message = consumer.receive(5)
    assert message is not None
    assert message.body == "received"


def test_a_listener_pulls_with_prefetch_0(connection: Connection, queue_name: str) -> None:
    handler = Handler()
    connection.session().consumer(queue_name, prefetch=0, listener=handler)
    connection.session().producer(queue_name).send_many("abc")
    assert handler.wait(3) == ["a", "b", "c"]


def test_a_listener_that_takes_long_loses_nothing(
    broker: Any, open_connection: Connect, queue_name: str
) -> None:
    """Signs of life are given by the connection, whatever its listeners do."""
    connection = open_connection(f"{broker.url}?wireFormat.maxInactivityDuration=1000")
    lost = threading.Event()
    connection.on_interrupted = lost.set
    handler = Handler(seconds=3)
    connection.session().producer(queue_name).send("a")
    consumer = connection.session().consumer(queue_name, listener=handler)
    assert handler.wait(1) == ["a"]
    consumer.close()
    assert not lost.is_set()
    assert drained(connection, queue_name)
