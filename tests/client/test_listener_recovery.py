"""Listener containers whose broker dies: exactly once in transactions, back-off, health."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import brokers
import pytest
from client_support import left
from containers import container, run, wait_until

from lockkeeper.client import ConnectionFailedError, ReceivedMessage, Session, aio, connect
from lockkeeper.client.listener import BackOff, CacheLevel, ContainerState, ListenerContainer

Mortal = brokers.RunningBroker
OPTIONS = "?initialReconnectDelay=10&maxReconnectDelay=100"
COUNT = 2000
SOON = BackOff(initial=0.05, maximum=0.3)


def fill(broker: Mortal, queue_name: str, count: int) -> list[str]:
    bodies = [str(number) for number in range(count)]
    with connect(broker.url) as connection:
        connection.session().producer(queue_name).send_many(bodies)
    return bodies


def processed(made: ListenerContainer, count: float) -> bool:
    return made.counters.processed >= count


@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.parametrize(
    ("is_coroutine", "is_failover"),
    [(True, False), (False, True)],
    ids=["coroutine-tcp", "function-failover"],
)
def test_a_broker_killed_in_mid_traffic_costs_and_doubles_nothing(
    our_mortal_broker: Mortal, queue_name: str, is_coroutine: bool, is_failover: bool
) -> None:
    broker = our_mortal_broker
    url = f"failover:({broker.url}){OPTIONS}" if is_failover else broker.url
    bodies = fill(broker, queue_name, COUNT)
    results = f"{queue_name}.OUT"
    called: Counter[object] = Counter()

    async def coroutine(message: ReceivedMessage, session: aio.Session) -> None:
        called[message.body] += 1
        producer = await session.producer(results)
        await producer.send(message.body)
        await producer.close()

    def function(message: ReceivedMessage, session: Session) -> None:
        called[message.body] += 1
        with session.producer(results) as producer:
            producer.send(message.body)

    async def served() -> None:
        made = container(
            coroutine if is_coroutine else function, url, queue_name,
            concurrency="2-6", back_off=SOON,
        )  # fmt: skip
        await made.start()
        for part in (0.2, 0.4, 0.6):
            await wait_until(partial(processed, made, part * COUNT))
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
        await wait_until(lambda: sum(called.values()) >= COUNT)
        with connect(broker.url) as connection:
            while await asyncio.to_thread(left, connection, queue_name):
                await asyncio.sleep(0.1)
        assert await made.stop()
        assert (made.counters.recoveries > 0) is not is_failover
        assert made.counters.failed == 0

    run(served())
    assert set(called) == set(bodies)
    with connect(broker.url) as connection:
        assert Counter(left(connection, results)) == Counter(bodies)
        assert left(connection, queue_name) == []


@pytest.mark.parametrize("level", [CacheLevel.NONE, CacheLevel.CONNECTION, CacheLevel.AUTO])
def test_a_broker_that_is_started_later_is_found(
    our_mortal_broker: Mortal, queue_name: str, level: CacheLevel
) -> None:
    bodies = fill(our_mortal_broker, queue_name, 5)
    our_mortal_broker.stop()
    came: list[object] = []

    async def served() -> None:
        made = container(
            lambda message: came.append(message.body), our_mortal_broker.url, queue_name,
            cache_level=level, back_off=SOON,
        )  # fmt: skip
        starting = asyncio.create_task(made.start())
        await wait_until(lambda: made.counters.recoveries >= 2)
        assert not made.health().is_healthy and not starting.done()
        await asyncio.to_thread(our_mortal_broker.start)
        await starting
        await wait_until(lambda: len(came) == 5)
        await made.stop()
        assert made.state is ContainerState.STOPPED

    run(served())
    assert came == bodies


def test_after_the_last_attempt_the_container_has_failed(
    our_mortal_broker: Mortal, queue_name: str
) -> None:
    async def served() -> None:
        made = container(
            lambda message: None, our_mortal_broker.url, queue_name, concurrency=3,
            back_off=BackOff(initial=0.01, maximum=0.02, attempts=3),
        )  # fmt: skip
        async with made:
            assert made.health().is_healthy
            await asyncio.to_thread(our_mortal_broker.kill)
            with pytest.raises(ConnectionFailedError):
                await made.wait_until_ended()
            health = made.health()
            assert (health.state, health.consumers) == (ContainerState.FAILED, 0)
            assert not health.is_healthy and health.error
        assert made.state is ContainerState.FAILED

    run(served())


def test_a_stop_does_not_wait_for_a_broker_that_hangs(
    our_mortal_broker: Mortal, queue_name: str
) -> None:
    async def served() -> float:
        url = f"{our_mortal_broker.url}?jms.closeTimeout=500"
        made = container(lambda message: None, url, queue_name)
        await made.start()
        our_mortal_broker.process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert await made.stop(1)
            return time.monotonic() - began
        finally:
            our_mortal_broker.process.send_signal(signal.SIGCONT)

    assert run(served()) < 5


PROGRAM = """
import os, sys, time
from lockkeeper.client.listener import listener, run

def write(line):
    os.write(1, line.encode())

@listener("queue://{queue}", concurrency="1-4", prefetch=1)
def handle(text: str) -> None:
    write(f"begun {{text}}\\n")
    time.sleep(1.5)
    write(f"done {{text}}\\n")

sys.exit(0 if run(handle, url="{url}") else 3)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_run_after_what_is_in_hand(
    our_mortal_broker: Mortal, queue_name: str, number: signal.Signals, tmp_path: Path
) -> None:
    fill(our_mortal_broker, queue_name, 12)
    code = PROGRAM.format(queue=queue_name, url=our_mortal_broker.url)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    begun = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            if sum(each.startswith("begun") for each in lines) == 4:
                begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert begun.wait(30)
        process.send_signal(number)
        assert process.wait(30) == 0
    finally:
        process.kill()
        reader.join(10)
    first = {line.removeprefix("begun ") for line in lines if line.startswith("begun")}
    done = {line.removeprefix("done ") for line in lines if line.startswith("done")}
    assert first == done
    with connect(our_mortal_broker.url) as connection:
        consumer = connection.session(transacted=True).consumer(queue_name)
        rest = [consumer.receive(5) for _ in range(12 - len(done))]
        assert {(each.body, each.delivery_count) for each in rest if each} == {
            (str(n), 1) for n in range(12) if str(n) not in done
        }
        assert consumer.receive(0.2) is None
