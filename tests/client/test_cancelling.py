"""Calls of the face for asyncio that are cancelled, or run out of time."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import brokers
import pytest
from scripted_peer import ScriptedPeer

from lockkeeper.client import RequestTimedOutError, aio
from lockkeeper.message import openwire


@asynccontextmanager
async def connected(broker: brokers.RunningBroker) -> AsyncIterator[aio.Connection]:
    async with await aio.connect(broker.url) as connection:
        yield connection


def in_thread(work: Callable[[], object]) -> "asyncio.Future[object]":
    return asyncio.ensure_future(asyncio.to_thread(work))


async def cancelled(call: Coroutine[Any, Any, Any], seconds: float) -> bool:
    """Cancel a call after some seconds; tell whether it was cancelled before it ended."""
    task = asyncio.ensure_future(call)
    await asyncio.sleep(seconds)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


async def seconds_of_nothing(consumer: aio.Consumer, timeout: float) -> float:
    """Receive nothing; return how long that took."""
    began = time.monotonic()
    assert await consumer.receive(timeout) is None
    return time.monotonic() - began


def test_a_receive_that_is_cancelled_takes_nothing(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    async def work() -> list[object]:
        async with connected(broker) as connection:
            session = connection.session()
            consumer = await session.consumer(queue_name)
            producer = await session.producer(queue_name)
            came: list[object] = []

            async def receive() -> None:
                message = await consumer.receive()
                assert message is not None
                came.append(message.body)

            for number in range(100):
                # The message arrives, or not yet, while the call is cancelled.
                task = asyncio.ensure_future(receive())
                await producer.send(str(number), persistent=False)
                await asyncio.sleep(number % 10 / 2000)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            while (message := await consumer.receive(0.3)) is not None:
                came.append(message.body)
            return came

    assert asyncio.run(work()) == [str(number) for number in range(100)]


def test_a_send_that_is_cancelled_is_sent_or_not(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    async def work() -> tuple[list[str], list[str]]:
        async with connected(broker) as connection:
            session = connection.session()
            producer = await session.producer(queue_name)
            sent = []
            for number in range(60):
                body = f"{number}" + " " * 100_000
                if not await cancelled(producer.send(body), number % 6 / 3000):
                    sent.append(str(number))
            found = [str(each.body).strip() async for each in session.browse(queue_name)]
            return sent, found

    sent, found = asyncio.run(work())
    assert set(sent) <= set(found), "what was confirmed is there"
    assert found == sorted(set(found), key=int), "each once, in order"


def test_a_consumer_whose_making_is_cancelled_takes_no_messages(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    async def work() -> list[object]:
        async with connected(broker) as connection:
            session = connection.session()
            await (await session.producer(queue_name)).send("a")
            for number in range(10):
                await cancelled(session.consumer(queue_name), number / 5000)
            await session.close()
            consumer = await connection.session().consumer(queue_name)
            message = await consumer.receive(5)
            return [message and message.body]

    assert asyncio.run(work()) == ["a"]


def test_a_pull_that_is_cancelled_does_not_end_the_next_one(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    async def work() -> list[object]:
        async with connected(broker) as connection:
            session = connection.session()
            consumer = await session.consumer(queue_name, prefetch=0)
            assert await cancelled(consumer.receive(0.3), 0.1)
            # The broker says after 0.3 s that it had no message.
            assert await cancelled(consumer.receive(), 0.6)
            assert 0.2 <= await seconds_of_nothing(consumer, 0.2) < 5
            await (await session.producer(queue_name)).send("a")
            message = await consumer.receive(5)
            assert await cancelled(consumer.receive(60), 0.1)
            assert 0.2 <= await seconds_of_nothing(consumer, 0.2) < 5
            return [message and message.body]

    assert asyncio.run(work()) == ["a"]


@pytest.mark.parametrize("call", ["producer", "commit", "send"])
def test_a_call_ends_when_its_time_is_over(call: str) -> None:
    """The peer answers nothing but what it is to be asked before."""
    with ScriptedPeer() as peer:

        async def work() -> float:
            served: asyncio.Future[object] = in_thread(lambda: (peer.shake_hands(), peer.serve(1)))
            connection = await aio.connect(f"{peer.address}?jms.closeTimeout=100")
            await served
            session = connection.session(transacted=call == "commit")
            if call != "producer":
                served = in_thread(lambda: peer.serve(2))
                producer = await session.producer("Q")
                await served
            began = time.monotonic()
            with pytest.raises(RequestTimedOutError, match=r"not done within 0\.2 s"):
                if call == "producer":
                    await session.producer("Q", timeout=0.2)
                elif call == "send":
                    await producer.send("a", timeout=0.2)
                else:
                    await producer.send("a")
                    await session.commit(timeout=0.2)
            took = time.monotonic() - began
            await connection.close()
            return took

        assert 0.15 < asyncio.run(work()) < 3


def test_many_tasks_share_a_connection(broker: brokers.RunningBroker, queue_name: str) -> None:
    async def work() -> int:
        async with connected(broker) as connection:
            session = connection.session()

            async def send(number: int) -> None:
                producer = await session.producer(queue_name)
                for _ in range(10):
                    await producer.send(str(number))

            await asyncio.gather(*(send(number) for number in range(20)))
            consumer = await connection.session().consumer(queue_name)
            came = 0
            async for _ in consumer:
                came += 1
                if came == 200:
                    break
            return came

    assert asyncio.run(work()) == 200


def test_no_frame_is_cut_when_the_broker_reads_slowly() -> None:
    with ScriptedPeer() as peer:

        async def work() -> list[openwire.Structure]:
            serving = asyncio.ensure_future(
                asyncio.to_thread(lambda: (peer.shake_hands(), peer.serve(3)))
            )
            connection = await aio.connect(f"{peer.address}?jms.closeTimeout=100")
            producer = await connection.session().producer("Q", persistent=False)
            await serving
            for _ in range(30):
                await cancelled(producer.send(b"x" * 400_000), 0.005)
            reading = asyncio.ensure_future(
                asyncio.to_thread(lambda: peer.serve_until(openwire.ActiveMQTextMessage))
            )
            await producer.send("the last")
            found = await reading
            await connection.close()
            return found

        *large, _ = asyncio.run(work())
    contents = [each.content for each in large if isinstance(each, openwire.Message)]
    assert contents and set(contents) == {b"x" * 400_000}


@pytest.mark.parametrize("prefetch", [0, 10])
@pytest.mark.parametrize("ages", [1e30, math.inf])
def test_a_consumer_may_wait_for_ages(
    broker: brokers.RunningBroker, queue_name: str, prefetch: int, ages: float
) -> None:
    async def work() -> object:
        async with connected(broker) as connection:
            session = connection.session()
            consumer = await session.consumer(queue_name, prefetch=prefetch)
            waiting = asyncio.create_task(consumer.receive(ages))
            await asyncio.sleep(0.2)
            await (await session.producer(queue_name)).send("a")
            async with asyncio.timeout(5):
                message = await waiting
            return message and message.body

    assert asyncio.run(work()) == "a"
