"""Functions that do not do what they seem to, and messages that are not what they say."""

import asyncio
import functools
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import brokers
import pytest
from client_support import dead_letters
from containers import container, run, serve, wait_until

from lockkeeper.client import ReceivedMessage, connect
from lockkeeper.client.listener import retry
from lockkeeper.message.primitives import Long

URL = "tcp://127.0.0.1:61616"


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function that returns what a coroutine function is called with."""

    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


def test_a_coroutine_function_in_a_plain_one_is_awaited(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    """Else its message were acknowledged, and nothing done."""
    done: list[object] = []

    @wrapped
    async def function(message: ReceivedMessage) -> None:
        await asyncio.sleep(0)
        if message.body == "poison":
            raise ValueError("of no use")
        done.append(message.body)

    with connect(broker.url) as connection:
        connection.session().producer(queue_name).send_many(["poison", "good"])
    made = container(function, broker.url, queue_name)
    serve(made, lambda: made.counters.processed + made.counters.failed == 4)
    assert done == ["good"]
    with connect(broker.url) as connection:
        assert [letter.body for letter in dead_letters(connection, queue_name)] == ["poison"]


def test_a_function_that_yields_is_refused() -> None:
    """A call of it does nothing, and its messages would be lost."""

    def plain(message: ReceivedMessage) -> Any:
        yield message

    async def awaited(message: ReceivedMessage) -> Any:
        yield message

    class Called:
        def __call__(self, message: ReceivedMessage) -> Any:
            yield message

    for function in (plain, awaited, Called()):
        with pytest.raises(TypeError, match="does not yield"):
            container(function, URL, "ORDERS")


@pytest.mark.parametrize("is_coroutine", [False, True])
def test_a_function_that_exits_ends_nobody_else(
    broker: brokers.RunningBroker, queue_name: str, is_coroutine: bool
) -> None:
    def plain(message: ReceivedMessage) -> None:
        if message.body == "poison":
            sys.exit(3)

    async def awaited(message: ReceivedMessage) -> None:
        plain(message)

    with connect(broker.url) as connection:
        connection.session().producer(queue_name).send_many(["poison", "good"])
    made = container(awaited if is_coroutine else plain, broker.url, queue_name)
    serve(made, lambda: made.counters.processed == 1 and made.counters.failed == 3)
    assert made.counters.recoveries == 0
    with connect(broker.url) as connection:
        (letter,) = dead_letters(connection, queue_name)
        assert "sys.exit(3)" in str(letter.properties["dlqDeliveryFailureCause"])


@pytest.mark.parametrize("delay", [0, -1, math.nan, math.inf, 1e300])
def test_a_delay_that_no_broker_could_keep_is_refused(delay: float) -> None:
    with pytest.raises(ValueError, match="up to 100 years"):
        retry(delay)


def test_a_clock_that_was_set_back_holds_nobody_up(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    """A message that was put off for 50 ms is not waited with for the hour that the clock lost."""
    done: list[object] = []
    due = Long(int(time.time() * 1000) + 3_600_000)
    properties = {"AMQ_SCHEDULED_DELAY": 50, "lockkeeper_due": due}
    with connect(broker.url) as connection:
        connection.session().producer(queue_name).send("late", properties)

    async def main() -> None:
        async with container(lambda message: done.append(message.body), broker.url, queue_name):
            await wait_until(lambda: bool(done))

    run(main())
    assert done == ["late"]
