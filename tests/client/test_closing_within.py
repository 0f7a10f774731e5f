"""Listeners that close what calls them: nobody waits for himself, and the message is settled."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import brokers
import pytest
from client_support import Connect, left
from containers import container, run

from lockkeeper.client import Connection, ConnectionState, ReceivedMessage, connect
from lockkeeper.client.listener import ContainerState

CLOSED = ["consumer", "session", "connection"]
SECONDS_MAX = 5.0
"""Less than closing gives itself."""


class Closer:
    """A listener that closes something, and notes how long that took."""

    def __init__(self, close: Callable[[], Any]) -> None:
        self.seconds: list[float] = []
        self.came: list[object] = []
        self.done = threading.Event()
        self._close = close

    def function(self, message: ReceivedMessage) -> None:
        self.came.append(message.body)
        began = time.monotonic()
        self._close()
        self.seconds.append(time.monotonic() - began)
        self.done.set()

    async def coroutine(self, message: ReceivedMessage) -> None:
        self.came.append(message.body)
        began = time.monotonic()
        closing = self._close()
        if closing is not None:
            await closing
        self.seconds.append(time.monotonic() - began)
        self.done.set()


def closing_of(thing: Any, kind: str) -> Callable[[], Any]:
    """Return what closes something of either face, as a listener of that kind does it."""
    if kind == "coroutine" and hasattr(thing, "_real"):
        return lambda: thing._real.close()
    return lambda: thing.close()


def rest(broker: brokers.RunningBroker, queue_name: str, count: int) -> list[object]:
    """Return what a queue holds, once that is *count* messages."""
    with connect(broker.url) as connection:
        deadline = time.monotonic() + 10
        while len(found := left(connection, queue_name)) != count:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found


@pytest.mark.parametrize("kind", ["function", "coroutine"])
@pytest.mark.parametrize("closed", CLOSED)
def test_a_listener_may_close_what_calls_it(
    open_connection: Connect,
    broker: brokers.RunningBroker,
    queue_name: str,
    closed: str,
    kind: str,
) -> None:
    connection = open_connection(broker.url)
    session = connection.session()
    consumer = session.consumer(queue_name)
    connection.session().producer(queue_name).send_many("abc")
    things = {"consumer": consumer, "session": session, "connection": connection}
    closer = Closer(closing_of(things[closed], kind))
    consumer.listen(closer.function if kind == "function" else closer.coroutine)
    assert closer.done.wait(SECONDS_MAX)
    assert closer.seconds[0] < SECONDS_MAX
    assert rest(broker, queue_name, 2) == ["b", "c"], "the one in hand is acknowledged"
    assert closer.came == ["a"]
    things[closed].close()
    with connect(broker.url) as other:
        again = other.session().consumer(queue_name).receive(10)
    assert again is not None
    assert (again.body, again.delivery_count) == ("b", 1)
    assert (connection.state is ConnectionState.CLOSED) is (closed == "connection")


@pytest.mark.parametrize("closed", ["consumer", "session"])
def test_a_listener_may_close_another_one_of_its_session(
    open_connection: Connect, broker: brokers.RunningBroker, queue_name: str, closed: str
) -> None:
    """The other one waits for its turn, with a message before it."""
    connection = open_connection(broker.url)
    session = connection.session()
    names = [queue_name, queue_name + ".OTHER"]
    consumers = [session.consumer(name) for name in names]
    producer = connection.session().producer()
    closer = Closer((consumers[1] if closed == "consumer" else session).close)

    def first(message: ReceivedMessage) -> None:
        producer.send("to the other", destination=names[1])
        time.sleep(0.3)
        closer.function(message)

    consumers[1].listen(closer.function)
    consumers[0].listen(first)
    producer.send("to the first", destination=names[0])
    assert closer.done.wait(SECONDS_MAX)
    assert rest(broker, names[1], 1) == ["to the other"]
    assert closer.came == ["to the first"]


def test_listeners_of_two_sessions_may_both_close_their_connection(
    open_connection: Connect, broker: brokers.RunningBroker, queue_name: str
) -> None:
    connection = open_connection(broker.url)
    sender = open_connection(broker.url)
    names = [queue_name, queue_name + ".OTHER"]
    both = threading.Barrier(2, timeout=10)

    def close() -> None:
        both.wait()
        connection.close()

    closers = [Closer(close) for _ in names]
    for name, closer in zip(names, closers, strict=True):
        connection.session().consumer(name, listener=closer.function)
        # A connection that its listeners close cannot wait for the answer to what it sent.
        sender.session().producer(name).send("x")
    for closer in closers:
        assert closer.done.wait(SECONDS_MAX)
    for name in names:
        assert rest(broker, name, 0) == []
    connection.close()
    assert connection.state is ConnectionState.CLOSED


def test_whoever_else_closes_waits_for_the_listener(
    open_connection: Connect, broker: brokers.RunningBroker, queue_name: str
) -> None:
    connection = open_connection(broker.url)
    closing, ending = threading.Event(), threading.Event()
    ended: list[float] = []

    def handle(message: ReceivedMessage) -> None:
        connection.close()
        closing.set()
        ending.wait(10)
        ended.append(time.monotonic())

    connection.session().consumer(queue_name, listener=handle)
    open_connection(broker.url).session().producer(queue_name).send("x")
    assert closing.wait(SECONDS_MAX)
    threading.Timer(0.3, ending.set).start()
    connection.close()
    assert ended and connection.state is ConnectionState.CLOSED
    assert rest(broker, queue_name, 0) == []


def test_a_listener_may_close_in_tasks_of_its_own(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    from lockkeeper.client.aio import connect as connect_awaiting

    async def main() -> None:
        connection = await connect_awaiting(broker.url)
        sending = await connection.session().producer(queue_name)
        await sending.send_many(["a", "b"])
        done = asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            await asyncio.gather(consumer.close(), session.close(), connection.close())
            done.set()

        session = connection.session()
        consumer = await session.consumer(queue_name, listener=handle)
        async with asyncio.timeout(SECONDS_MAX):
            await done.wait()
        await connection.close()
        assert connection.state is ConnectionState.CLOSED

    run(main())
    assert rest(broker, queue_name, 1) == ["b"]


def test_a_task_that_outlives_its_listener_waits_for_the_end(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    from lockkeeper.client.aio import connect as connect_awaiting

    async def main() -> None:
        connection = await connect_awaiting(broker.url)
        await (await connection.session().producer(queue_name)).send("a")
        tasks: list[asyncio.Task[None]] = []

        async def close_later() -> None:
            await asyncio.sleep(0.2)
            await connection.close()
            assert connection.state is ConnectionState.CLOSED

        async def handle(message: ReceivedMessage) -> None:
            tasks.append(asyncio.create_task(close_later()))

        await connection.session().consumer(queue_name, listener=handle)
        while not tasks:
            await asyncio.sleep(0.01)
        await tasks[0]

    run(main())


def test_a_connection_may_be_closed_when_it_tells_of_something(our_mortal_broker: Any) -> None:
    connection = connect(f"failover:({our_mortal_broker.url})")
    closed = threading.Event()

    def close() -> None:
        connection.close()
        closed.set()

    connection.on_interrupted = close
    our_mortal_broker.kill()
    assert closed.wait(SECONDS_MAX)
    connection.close()
    assert connection.state is ConnectionState.CLOSED


# Containers

Stop = Callable[[], Coroutine[Any, Any, bool]]


def stop_in_task(stop: Stop) -> Callable[[ReceivedMessage], Any]:
    async def stop_here(message: ReceivedMessage) -> None:
        assert not await stop()

    return stop_here


def stop_in_task_of_its_own(stop: Stop) -> Callable[[ReceivedMessage], Any]:
    async def stop_elsewhere(message: ReceivedMessage) -> None:
        (is_finished,) = await asyncio.gather(stop())
        assert not is_finished

    return stop_elsewhere


def stop_from_thread(stop: Stop) -> Callable[[ReceivedMessage], Any]:
    loop = asyncio.get_running_loop()

    def stop_over_there(message: ReceivedMessage) -> None:
        assert not asyncio.run_coroutine_threadsafe(stop(), loop).result(SECONDS_MAX)

    return stop_over_there


@pytest.mark.parametrize("stopper", [stop_in_task, stop_in_task_of_its_own, stop_from_thread])
@pytest.mark.parametrize("place", ["function", "error handler"])
def test_a_container_is_stopped_by_what_it_calls(
    broker: brokers.RunningBroker,
    queue_name: str,
    stopper: Callable[[Stop], Callable[[ReceivedMessage], Any]],
    place: str,
) -> None:
    with connect(broker.url) as connection:
        connection.session().producer(queue_name).send_many("abc")

    def fail(message: ReceivedMessage) -> None:
        raise LookupError("on purpose")

    async def main() -> None:
        stop = stopper(lambda: made.stop())
        if place == "function":
            made = container(stop, broker.url, queue_name)
        else:
            made = container(
                fail, broker.url, queue_name, error_handler=lambda _, message: stop(message)
            )
        await made.start()
        async with asyncio.timeout(SECONDS_MAX):
            await made.wait_until_ended()
        assert made.state is ContainerState.STOPPED
        counters = made.counters
        assert (counters.received, counters.processed) == (1, int(place == "function"))

    run(main())
    expected: list[object] = ["b", "c"] if place == "function" else ["a", "b", "c"]
    assert rest(broker, queue_name, len(expected)) == expected


def test_a_connection_is_closed_by_a_listener_only_after_its_message_is_settled(
    open_connection: Connect, broker: brokers.RunningBroker, queue_name: str
) -> None:
    """What it sends after that still goes out, too."""
    connection: Connection = open_connection(broker.url)
    session = connection.session()
    producer = session.producer(queue_name + ".OUT")

    def handle(message: ReceivedMessage) -> None:
        connection.close()
        producer.send("sent after closing")

    session.consumer(queue_name, listener=handle)
    open_connection(broker.url).session().producer(queue_name).send("x")
    assert rest(broker, queue_name + ".OUT", 1) == ["sent after closing"]
    connection.close()
    assert rest(broker, queue_name, 0) == []
