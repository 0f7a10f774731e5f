"""Messages that come to a listener again: when, with which count, and as what they are counted."""

import asyncio
import time
from dataclasses import astuple
from itertools import pairwise
from typing import Any

import brokers
import pytest
from client_support import dead_letters, left
from containers import container, run, wait_until
from relay import Relay

from lockkeeper.client import ReceivedMessage, RedeliveryPolicy, connect
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.producer import Draft
from lockkeeper.client.listener import BackOff, CacheLevel, dead_letter, reject, retry
from lockkeeper.client.listener.counters import Counters
from lockkeeper.message.destination import queue

MODES = [Acknowledge.TRANSACTED, Acknowledge.INDIVIDUAL]
OPTIONS = "?initialReconnectDelay=10&maxReconnectDelay=100"


def fill(broker: brokers.RunningBroker, queue_name: str, *bodies: str) -> None:
    with connect(broker.url) as connection:
        connection.session().producer(queue_name).send_many(bodies)


def counts(broker: brokers.RunningBroker, queue_name: str) -> list[tuple[object, int]]:
    """Return body and delivery count of all that a queue holds."""
    with connect(broker.url) as connection:
        consumer = connection.session(transacted=True).consumer(queue_name)
        found: list[tuple[object, int]] = []
        while (message := consumer.receive(0.5)) is not None:
            found.append((message.body, message.delivery_count))
        return found


def is_balanced(counters: Counters) -> bool:
    """Tell whether everything received has come to something, once."""
    fates = ("processed", "failed", "retried", "dead_lettered", "invalid", "rolled_back")
    counted: int = sum(getattr(counters, fate) for fate in fates)
    return counters.received == counted


@pytest.mark.parametrize("acknowledge", MODES)
@pytest.mark.parametrize("level", list(CacheLevel))
def test_what_failed_comes_again_when_the_policy_says(
    broker: brokers.RunningBroker, queue_name: str, level: CacheLevel, acknowledge: Acknowledge
) -> None:
    """Also where a consumer is not kept: the broker would send it again at once."""
    fill(broker, queue_name, "0")
    came: list[float] = []

    def function(message: ReceivedMessage) -> None:
        came.append(time.monotonic())
        raise LookupError

    policy = RedeliveryPolicy(2, initial_redelivery_delay=0.5, redelivery_delay=0.5)

    async def main() -> None:
        async with container(
            function, broker.url, queue_name, cache_level=level, acknowledge=acknowledge,
            redelivery=policy, receive_timeout=0.1, error_handler=lambda *_: None,
        ) as made:  # fmt: skip
            await wait_until(lambda: made.counters.failed == 3)

    run(main())
    assert all(later - sooner >= 0.49 for sooner, later in pairwise(came))
    assert len(came) == 3


def test_a_consumer_with_something_that_failed_is_not_surplus(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    fill(broker, queue_name, "0")
    came: list[tuple[int, float]] = []

    async def function(message: ReceivedMessage) -> None:
        came.append((message.delivery_count, time.monotonic()))
        if len(came) == 1:
            raise LookupError

    async def main() -> None:
        async with container(
            function, broker.url, queue_name, concurrency="1-3", messages_per_task=1,
            redelivery=RedeliveryPolicy(initial_redelivery_delay=1.5), receive_timeout=0.1,
        ) as made:  # fmt: skip
            await wait_until(lambda: made.counters.processed == 1)

    run(main())
    (first, began), (second, again) = came
    assert (first, second) == (1, 2)
    assert again - began >= 1.49


def test_others_go_on_while_a_consumer_waits_with_what_is_put_off(
    broker: brokers.RunningBroker, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker has no scheduler. A stop gives it back as what it is: not delivered."""
    fill(broker, queue_name, "0")
    came: list[object] = []

    async def function(message: ReceivedMessage) -> object:
        came.append(message.body)
        return retry(3600) if message.body == "0" else None

    async def main() -> None:
        async with container(
            function, broker.url, queue_name, concurrency="1-2", prefetch=1
        ) as made:
            await wait_until(lambda: "has no scheduler" in caplog.text)
            await asyncio.to_thread(fill, broker, queue_name, "1", "2", "3")
            await wait_until(lambda: made.counters.processed >= 2)

    run(main())
    assert ("0", 1) in counts(broker, queue_name)
    assert came.count("0") == 1


@pytest.mark.parametrize("acknowledge", MODES)
@pytest.mark.parametrize("fate", ["succeeds", "fails", "dead_letter", "reject", "retry", "answers"])
def test_what_came_by_a_lost_link_is_counted_when_it_comes_again(
    broker: brokers.RunningBroker, queue_name: str, acknowledge: Acknowledge, fate: str
) -> None:
    """Whatever a function says of it the first time, the broker has not heard."""
    fill(broker, queue_name, "0")
    came: list[int] = []
    outcome: dict[str, Any] = {
        "dead_letter": dead_letter("of no use"), "reject": reject(), "retry": retry(3600),
        "answers": "yes",
    }  # fmt: skip

    with Relay(broker.port) as relay:

        async def function(message: ReceivedMessage) -> object:
            came.append(message.delivery_count)
            if len(came) == 1:
                relay.cut()
                await wait_until(lambda: len(relay.sent) == 2 and made.health().is_healthy)
                if fate == "fails":
                    raise LookupError
                return outcome.get(fate)
            return None

        made = container(
            function, f"failover:({relay.url}){OPTIONS}", queue_name, acknowledge=acknowledge,
            send_to=f"{queue_name}.ANSWERS", error_handler=lambda *_: None,
        )  # fmt: skip

        async def main() -> None:
            async with made:
                await wait_until(lambda: made.counters.processed == 1)

        run(main())
    assert came == [1, 2]
    assert (made.counters.received, made.counters.rolled_back) == (2, 1)
    assert is_balanced(made.counters), astuple(made.counters)
    with connect(broker.url) as connection:
        assert left(connection, queue_name) == []
        assert left(connection, f"{queue_name}.ANSWERS") == []


@pytest.mark.parametrize("acknowledge", MODES)
def test_properties_that_nobody_can_read_are_a_dead_letter(
    our_mortal_broker: brokers.RunningBroker, queue_name: str, acknowledge: Acknowledge
) -> None:
    broker = our_mortal_broker
    with connect(broker.url) as connection:
        producer = connection.session().producer(queue_name)
        at = int(time.time() * 1000)
        garbled = Draft(28, queue(queue_name), True, 4, 0, at, b"", b"\0\0\0\5\0")
        producer.core.send_freely(garbled)
        producer.send("fine")
        made = container(
            lambda message: None, broker.url, queue_name, acknowledge=acknowledge,
            back_off=BackOff(0.01, maximum=0.02), error_handler=lambda *_: None,
        )  # fmt: skip

        async def main() -> None:
            async with made:
                await wait_until(lambda: made.counters.processed == 1)
                await wait_until(lambda: made.counters.invalid == 1)

        run(main())
        assert made.counters.recoveries == 0
        assert len(dead_letters(connection, queue_name)) == 1
