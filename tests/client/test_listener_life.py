"""Listener containers that are stopped at awkward moments, and what they tell of themselves."""

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path

import brokers
import pytest
from client_support import dead_letters, left
from containers import container, run, wait_until
from ports import free_port

from lockkeeper.client import IllegalStateError, ReceivedMessage, connect
from lockkeeper.client.listener import (
    CacheLevel,
    ContainerState,
    Health,
    ListenerContainer,
)

NOBODY = f"failover:(tcp://127.0.0.1:{free_port()})"

SILENT = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{name: silent}}
spec:
  listeners:
    - {{name: openwire, host: 127.0.0.1, port: {port}, maxInactivityDuration: {duration}ms}}
"""


def fill(broker: brokers.RunningBroker, queue_name: str, count: int) -> None:
    with connect(broker.url) as connection:
        connection.session().producer(queue_name).send_many(map(str, range(count)))


def test_a_start_that_is_stopped_meanwhile_ends() -> None:
    async def main() -> None:
        made = container(lambda message: None, NOBODY, "ORDERS")
        starting = asyncio.create_task(made.start())
        await asyncio.sleep(0.1)
        assert await made.stop()
        with pytest.raises(IllegalStateError, match="stopped before its first consumer"):
            await starting
        assert made.state is ContainerState.STOPPED

    run(main())


def test_whoever_stops_it_once_more_may_have_less_patience(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    fill(broker, queue_name, 1)
    entered = asyncio.Event()

    async def function(message: ReceivedMessage) -> None:
        entered.set()
        await asyncio.sleep(3600)

    async def main() -> None:
        made = container(function, broker.url, queue_name)
        await made.start()
        await entered.wait()
        patient = asyncio.create_task(made.stop())
        await asyncio.sleep(0.05)
        assert not await made.stop(0)
        assert not await patient, "it was not finished"
        assert (made.counters.received, made.counters.rolled_back) == (1, 1)

    run(main())


@pytest.mark.parametrize("level", list(CacheLevel))
def test_a_container_at_work_is_healthy_at_every_cache_level(
    broker: brokers.RunningBroker, queue_name: str, level: CacheLevel
) -> None:
    async def main() -> None:
        async with container(
            lambda message: None, broker.url, queue_name, cache_level=level, receive_timeout=0.05
        ) as made:
            for _ in range(100):
                health = made.health()
                assert health.is_healthy and health.address == broker.url
                await asyncio.sleep(0.003)

    run(main())


@pytest.mark.parametrize(("duration", "limit"), [(0, None), (3_000, 30.0), (90_000, 90.0)])
def test_a_broker_may_be_silent_as_long_as_was_agreed(
    tmp_path: Path, queue_name: str, duration: int, limit: float | None
) -> None:
    """Signs of life come more rarely where more silence is allowed, and not at all without."""
    port = free_port()
    configuration = tmp_path / "broker.yaml"
    configuration.write_text(SILENT.format(duration=duration, port=port))
    data = str(tmp_path / "data")
    command = [*brokers.LOCKKEEPER, "broker", "-f", str(configuration), "--data", data]
    command += ["--admin", "127.0.0.1:0"]
    running = brokers.RunningBroker("lockkeeper", port, tmp_path, command)
    url = f"{running.url}?wireFormat.maxInactivityDuration={duration}"

    async def main() -> Health:
        async with container(lambda message: None, url, queue_name) as made:
            return made.health()

    try:
        health = run(main())
    finally:
        running.stop()
    assert health.is_healthy
    assert health.silence_seconds_max == limit
    for silence in (29.0, 31.0, 89.0, 91.0):
        late = replace(health, received_seconds=silence)
        assert late.is_healthy is (limit is None or silence < limit)


@pytest.mark.parametrize("is_coroutine", [True, False], ids=["coroutine", "function"])
def test_an_error_handler_is_called_as_functions_are(
    broker: brokers.RunningBroker, queue_name: str, is_coroutine: bool
) -> None:
    """One that takes its time does not keep the event loop from its signs of life."""
    fill(broker, queue_name, 1)
    threads: list[str] = []

    def function(message: ReceivedMessage) -> None:
        if not message.redelivered:
            raise LookupError("once")

    def handler(error: Exception, message: ReceivedMessage) -> None:
        threads.append(threading.current_thread().name)
        time.sleep(0 if is_coroutine else 1)

    async def coroutine(error: Exception, message: ReceivedMessage) -> None:
        handler(error, message)

    async def main() -> float:
        chosen = coroutine if is_coroutine else handler
        made = container(function, broker.url, queue_name, error_handler=chosen)
        longest, before = 0.0, time.monotonic()
        async with made:
            while made.counters.processed < 1:
                await asyncio.sleep(0.01)
                now = time.monotonic()
                longest, before = max(longest, now - before), now
        return longest

    longest = run(main())
    assert [name == "MainThread" for name in threads] == [is_coroutine]
    assert longest < 0.9


@pytest.mark.parametrize("is_coroutine", [True, False], ids=["coroutine", "function"])
def test_what_is_cancelled_within_a_function_is_a_failure_of_it(
    broker: brokers.RunningBroker, queue_name: str, is_coroutine: bool
) -> None:
    """The container goes on with as many consumers as before."""
    fill(broker, queue_name, 3)
    told: list[Exception] = []

    def function(message: ReceivedMessage) -> None:
        if message.body == "1":
            raise asyncio.CancelledError

    async def coroutine(message: ReceivedMessage) -> None:
        function(message)

    async def main() -> None:
        made = container(
            coroutine if is_coroutine else function, broker.url, queue_name,
            error_handler=lambda error, _: told.append(error),
        )  # fmt: skip
        async with made:
            await wait_until(lambda: made.counters.processed == 2)
            await wait_until(lambda: made.counters.failed == 3)
            assert made.consumers == 1

    run(main())
    with connect(broker.url) as connection:
        (letter,) = dead_letters(connection, queue_name)
        assert letter.body == "1"
        assert left(connection, queue_name) == []
    assert [str(error) for error in told] == ["what it awaited was cancelled"] * 3


def test_a_container_that_failed_may_be_started_again(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    async def main() -> None:
        made = container(lambda message: None, broker.url, queue_name, selector="no selector")
        for _ in range(2):
            with pytest.raises(Exception, match=r"selector|Lexical|line 1"):
                await made.start()
            assert made.state is ContainerState.FAILED
        assert isinstance(made, ListenerContainer)

    run(main())
