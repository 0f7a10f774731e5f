"""Pools of producers: lent and taken back, limits, idle ones, connections that fail."""

import asyncio
import threading
import time

import brokers
import pytest
from client_support import left
from containers import run
from ports import free_port

from lockkeeper.client import (
    ConnectionFailedError,
    IllegalStateError,
    ProducerPool,
    RequestTimedOutError,
    aio,
    connect,
)


def pool(broker: brokers.RunningBroker, **options: float) -> aio.ProducerPool:
    return aio.ProducerPool(lambda: aio.connect(broker.url), **options)  # type: ignore[arg-type]


def test_tasks_share_a_few_producers(broker: brokers.RunningBroker, queue_name: str) -> None:
    used: set[str] = set()

    async def send(producers: aio.ProducerPool, number: int) -> None:
        async with producers.producer(queue_name) as producer:
            used.add(str(producer.identifier))
            await producer.send(str(number))

    async def main() -> None:
        async with pool(broker, connections=2, size=4) as producers:
            await asyncio.gather(*(send(producers, number) for number in range(100)))
            assert (producers.connections, producers.idle) == (2, 4)

    run(main())
    assert len(used) == 4
    with connect(broker.url) as connection:
        assert sorted(map(int, map(str, left(connection, queue_name)))) == list(range(100))


def test_a_producer_comes_with_the_settings_of_a_new_one(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    async def main() -> None:
        async with pool(broker) as producers:
            async with producers.producer(queue_name) as producer:
                producer.priority, producer.persistent, producer.time_to_live = 9, False, 5.0
                first = producer.identifier
            async with producers.producer() as producer:
                assert producer.identifier == first
                found = (producer.priority, producer.persistent, producer.time_to_live)
                assert found == (4, True, None)
                with pytest.raises(IllegalStateError, match="each message needs one"):
                    await producer.send("nowhere")

    run(main())


def test_who_waits_too_long_is_told(broker: brokers.RunningBroker, queue_name: str) -> None:
    async def main() -> None:
        async with pool(broker, size=1) as producers:
            async with producers.producer(queue_name):
                with pytest.raises(RequestTimedOutError, match="no producer is free"):
                    async with producers.producer(queue_name, timeout=0.1):
                        pass
            async with producers.producer(queue_name, timeout=5) as producer:
                await producer.send("one")

    run(main())


def test_what_nobody_uses_is_closed(broker: brokers.RunningBroker, queue_name: str) -> None:
    async def main() -> None:
        async with pool(broker, size=3, idle_seconds=0.2) as producers:
            async with producers.producer(), producers.producer():
                pass
            assert producers.idle == 2
            await asyncio.sleep(0.3)
            async with producers.producer(queue_name) as producer:
                assert producers.idle == 0
                await producer.send("one")

    run(main())


def test_a_connection_that_failed_is_replaced(
    our_mortal_broker: brokers.RunningBroker, queue_name: str
) -> None:
    broker = our_mortal_broker

    async def main() -> None:
        async with pool(broker, size=2) as producers:
            async with producers.producer(queue_name) as producer:
                await producer.send("one")
                await asyncio.to_thread(broker.kill)
                with pytest.raises(ConnectionFailedError):
                    await producer.send("lost", timeout=20)
            with pytest.raises(ConnectionFailedError):
                async with producers.producer(queue_name):
                    pass
            await asyncio.to_thread(broker.start)
            for body in ("two", "three", "four"):
                async with producers.producer(queue_name, timeout=20) as producer:
                    await producer.send(body)

    run(main())
    with connect(broker.url) as connection:
        assert left(connection, queue_name) == ["one", "two", "three", "four"]


def test_threads_share_a_pool(broker: brokers.RunningBroker, queue_name: str) -> None:
    used: set[str] = set()
    with ProducerPool(broker.url, connections=2, size=3) as producers:

        def send(number: int) -> None:
            with producers.producer(queue_name) as producer:
                used.add(str(producer.identifier))
                producer.send(str(number))
                time.sleep(0.01)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert len(used) == 3
    with connect(broker.url) as connection:
        assert len(left(connection, queue_name)) == 20
    with pytest.raises(IllegalStateError, match="the pool is closed"), producers.producer():
        pass
    producers.close()


def test_a_producer_that_somebody_closed_leaves_nothing_behind(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    async def main() -> None:
        async with pool(broker) as producers:
            for number in range(5):
                pooled = await producers.lend(queue_name)
                await pooled.producer.send(str(number))
                await pooled.producer.close()
                producers.take_back(pooled)
                assert pooled.owner.connection.core.sessions == []
            assert producers.idle == 0

    run(main())


NOBODY = f"failover:(tcp://127.0.0.1:{free_port()})"


@pytest.mark.parametrize("is_connecting", [True, False], ids=["connecting", "waiting for room"])
def test_closing_ends_what_waits_for_a_producer(
    broker: brokers.RunningBroker, queue_name: str, is_connecting: bool
) -> None:
    """Nobody waits for ever: neither who closes the pool, nor who waits for a producer of it."""

    async def wait(producers: aio.ProducerPool) -> None:
        async with producers.producer(queue_name):
            raise AssertionError("there is none")

    async def main() -> None:
        url = NOBODY if is_connecting else broker.url
        producers = aio.ProducerPool(lambda: aio.connect(url), size=1)
        lent = None if is_connecting else await producers.lend()
        waiting = asyncio.create_task(wait(producers))
        await asyncio.sleep(0.1)
        await producers.close()
        with pytest.raises(IllegalStateError, match="the pool is closed"):
            await waiting
        if lent is not None:
            producers.take_back(lent)

    run(main())


@pytest.mark.parametrize("is_connecting", [True, False], ids=["connecting", "waiting for room"])
def test_closing_ends_threads_that_wait_for_a_producer(
    broker: brokers.RunningBroker, queue_name: str, is_connecting: bool
) -> None:
    producers = ProducerPool(NOBODY if is_connecting else broker.url, size=1)
    has_one, may_go = threading.Event(), threading.Event()
    outcomes: list[object] = []

    def use() -> None:
        try:
            with producers.producer(queue_name):
                has_one.set()
                may_go.wait(30)
            outcomes.append("used")
        except IllegalStateError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=use, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert is_connecting or has_one.wait(30)
    time.sleep(0.1)
    closing = threading.Thread(target=producers.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
    may_go.set()
    for thread in threads:
        thread.join(30)
    closed = "the pool is closed"
    assert sorted(map(str, outcomes)) == [closed, closed if is_connecting else "used"]


def test_a_pool_needs_a_producer_for_each_connection() -> None:
    with pytest.raises(ValueError, match="a producer for each"):
        ProducerPool(connections=3, size=2)
