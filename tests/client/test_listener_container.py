"""Listener containers: how many consumers there are, what each message comes to, the end."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import brokers
import pytest
from client_support import KINDS, Connect, dead_letters, left, take
from containers import container, run, serve, wait_until
from ports import free_port

from lockkeeper.client import (
    Connection,
    InvalidSelectorError,
    ReceivedMessage,
    RedeliveryPolicy,
    Session,
    aio,
    connect,
)
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.listener import CacheLevel, dead_letter, listener, reject, retry

CAUSE = "dlqDeliveryFailureCause"


@pytest.fixture
def opened(broker: brokers.RunningBroker) -> Any:
    with connect(broker.url) as connection:
        yield connection


def fill(connection: Connection, queue_name: str, count: int) -> list[str]:
    bodies = [str(number) for number in range(count)]
    connection.session().producer(queue_name).send_many(bodies)
    return bodies


def counts(connection: Connection, queue_name: str) -> list[tuple[object, int]]:
    """Return body and delivery count of all that a queue holds."""
    consumer = connection.session(transacted=True).consumer(queue_name)
    found: list[tuple[object, int]] = []
    while (message := consumer.receive(0.5)) is not None:
        found.append((message.body, message.delivery_count))
    return found


@pytest.mark.parametrize("is_coroutine", [True, False], ids=["coroutine", "function"])
@pytest.mark.parametrize("acknowledge", [Acknowledge.TRANSACTED, Acknowledge.INDIVIDUAL])
@pytest.mark.parametrize("level", list(CacheLevel))
def test_every_message_is_processed_once(
    broker: brokers.RunningBroker,
    opened: Connection,
    queue_name: str,
    is_coroutine: bool,
    acknowledge: Acknowledge,
    level: CacheLevel,
) -> None:
    count = 60 if level.keeps(CacheLevel.CONNECTION) else 15
    bodies = fill(opened, queue_name, count)
    came: Counter[object] = Counter()
    threads = set()

    def function(message: ReceivedMessage) -> None:
        threads.add(threading.current_thread().name)
        came[message.body] += 1

    async def coroutine(message: ReceivedMessage) -> None:
        function(message)

    made = container(
        coroutine if is_coroutine else function, broker.url, queue_name,
        concurrency="1-3", cache_level=level, acknowledge=acknowledge,
    )  # fmt: skip
    serve(made, lambda: made.counters.processed == count)
    assert came == Counter(bodies)
    assert left(opened, queue_name) == []
    assert threads == {"MainThread"} if is_coroutine else "MainThread" not in threads
    numbers = made.counters
    assert (numbers.received, numbers.failed, numbers.rolled_back) == (count, 0, 0)
    assert (numbers.consumers, numbers.consumers_busy, numbers.recoveries) == (0, 0, 0)


def test_consumers_are_added_under_load_and_end_without(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    bodies = fill(opened, queue_name, 80)
    gate = threading.Event()
    came: list[object] = []

    def function(message: ReceivedMessage) -> None:
        gate.wait(30)
        came.append(message.body)

    async def watched() -> None:
        async with container(
            function, broker.url, queue_name, concurrency="2-5", prefetch=1
        ) as made:
            assert made.consumers >= 2
            await wait_until(lambda: made.counters.consumers_busy == 5)
            assert made.consumers == 5
            gate.set()
            await wait_until(lambda: len(came) == 80 and made.consumers == 2)
            assert made.counters.consumers_peak == 5
            # And again.
            gate.clear()
            fill(opened, queue_name, 20)
            await wait_until(lambda: made.counters.consumers_busy == 5)
            gate.set()
            await wait_until(lambda: len(came) == 100 and made.consumers == 2)

    run(watched())
    assert Counter(came) == Counter(bodies) + Counter(bodies[:20])


def test_consumers_with_a_limit_of_messages_take_turns(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    fill(opened, queue_name, 30)
    most = 0

    async def coroutine(message: ReceivedMessage) -> None:
        nonlocal most
        most = max(most, made.consumers)

    made = container(
        coroutine, broker.url, queue_name, concurrency="3", messages_per_task=2,
        idle_receives_per_task=None,
    )  # fmt: skip
    serve(made, lambda: made.counters.processed == 30)
    assert (most, made.counters.consumers_peak) == (3, 3)


def test_a_graceful_stop_finishes_one_and_gives_back_the_rest_uncounted(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    fill(opened, queue_name, 30)
    came: list[object] = []
    entered, gate = threading.Event(), threading.Event()

    def function(message: ReceivedMessage) -> None:
        came.append(message.body)
        if message.body == "2":
            entered.set()
            gate.wait(30)

    async def stopped() -> bool:
        made = container(function, broker.url, queue_name, prefetch=20)
        await made.start()
        await wait_until(entered.is_set)
        stopping = asyncio.create_task(made.stop())
        await asyncio.sleep(0.2)
        assert not stopping.done()
        gate.set()
        return await stopping

    assert run(stopped())
    assert came == ["0", "1", "2"]
    assert counts(opened, queue_name) == [(str(number), 1) for number in range(3, 30)]


def test_what_is_cut_off_by_the_time_limit_comes_again_and_counts(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    fill(opened, queue_name, 3)
    entered = asyncio.Event()

    async def coroutine(message: ReceivedMessage) -> None:
        entered.set()
        await asyncio.sleep(3600)

    async def stopped() -> bool:
        made = container(coroutine, broker.url, queue_name)
        await made.start()
        await entered.wait()
        return await made.stop(0.1)

    assert not run(stopped())
    assert counts(opened, queue_name) == [("0", 2), ("1", 1), ("2", 1)]


def test_what_failed_and_waits_to_come_again_counts_once_after_a_stop(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    fill(opened, queue_name, 3)

    async def coroutine(message: ReceivedMessage) -> None:
        raise LookupError("no such thing")

    policy = RedeliveryPolicy(6, initial_redelivery_delay=3600)
    made = container(coroutine, broker.url, queue_name, redelivery=policy)
    serve(made, lambda: made.counters.failed == 1)
    assert counts(opened, queue_name) == [("0", 2), ("1", 1), ("2", 1)]


@pytest.mark.parametrize("acknowledge", [Acknowledge.TRANSACTED, Acknowledge.INDIVIDUAL])
@pytest.mark.parametrize("level", [CacheLevel.NONE, CacheLevel.SESSION, CacheLevel.AUTO])
def test_poison_is_a_dead_letter_with_its_cause(
    broker: brokers.RunningBroker,
    opened: Connection,
    queue_name: str,
    acknowledge: Acknowledge,
    level: CacheLevel,
) -> None:
    fill(opened, queue_name, 3)
    came: list[tuple[object, int]] = []
    told: list[str] = []

    def function(message: ReceivedMessage) -> None:
        came.append((message.body, message.delivery_count))
        if message.body == "1":
            raise LookupError("no such thing")

    made = container(
        function, broker.url, queue_name, acknowledge=acknowledge, cache_level=level,
        error_handler=lambda error, message: told.append(f"{message.body}: {error}"),
    )  # fmt: skip
    serve(made, lambda: made.counters.processed == 2 and made.counters.failed == 3)
    if level.keeps(CacheLevel.CONSUMER):
        assert came == [("0", 1), ("1", 1), ("1", 2), ("1", 3), ("2", 1)]
    # What goes back to the broker meets others on its way.
    assert sorted(came) == [("0", 1), ("1", 1), ("1", 2), ("1", 3), ("2", 1)]
    assert told == ["1: no such thing"] * 3
    (letter,) = dead_letters(opened, queue_name)
    assert letter.body == "1"
    assert "LookupError: no such thing" in str(letter.properties[CAUSE])
    assert left(opened, queue_name) == []


def test_outcomes_are_returned_or_raised(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    fill(opened, queue_name, 4)
    came: list[tuple[object, int]] = []
    told: list[Exception] = []

    def function(message: ReceivedMessage) -> object:
        came.append((message.body, message.delivery_count))
        match message.body:
            case "0":
                return dead_letter("of no use")
            case "1":
                raise dead_letter("of no use either")
            case "2" if not message.redelivered:
                return reject()
        return None

    made = container(
        function, broker.url, queue_name, error_handler=lambda error, _: told.append(error)
    )
    serve(made, lambda: made.counters.processed == 2)
    assert came == [("0", 1), ("1", 1), ("2", 1), ("2", 2), ("3", 1)]
    causes = {each.body: str(each.properties[CAUSE]) for each in dead_letters(opened, queue_name)}
    assert causes.keys() == {"0", "1"}
    assert "of no use either" in causes["1"]
    assert told == []
    assert (made.counters.dead_lettered, made.counters.failed) == (2, 1)


@pytest.fixture(params=KINDS)
def scheduling_broker(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[brokers.RunningBroker]:
    """A broker that sends messages later."""
    reason = brokers.missing(request.param)
    if reason:
        pytest.skip(reason)
    port = free_port()
    command = brokers.COMMANDS[request.param](tmp_path, port, configuration="time")
    running = brokers.RunningBroker(request.param, port, tmp_path, command)
    yield running
    running.stop()


class Delayed:
    """Puts message 0 off until the policy forbids it, and notes when each came."""

    def __init__(self, broker: brokers.RunningBroker, name: str, **settings: Any) -> None:
        self.came: list[tuple[object, float]] = []
        self.broker, self.name = broker, name
        self.made = container(self, broker.url, name, **settings)
        with connect(broker.url) as connection:
            fill(connection, name, 3)
            serve(self.made, lambda: self.made.counters.failed == 1)
            self.letters = dead_letters(connection, name)
            self.left = left(connection, name)

    async def __call__(self, message: ReceivedMessage) -> object:
        self.came.append((message.body, time.monotonic()))
        return retry(0.4) if message.body == "0" else None

    def check(self, order: str) -> None:
        assert "".join(str(body) for body, _ in self.came) == order
        moments = [at for body, at in self.came if body == "0"]
        assert len(moments) == 3
        for sooner, later in pairwise(moments):
            assert later - sooner >= 0.39
        counters = self.made.counters
        assert (counters.retried, counters.processed, counters.failed) == (2, 2, 1)
        (letter,) = self.letters
        assert "Delivery[3] exceeds" in str(letter.properties[CAUSE])
        assert self.left == []


@pytest.mark.parametrize("acknowledge", [Acknowledge.TRANSACTED, Acknowledge.INDIVIDUAL])
def test_retry_holds_nobody_up_and_ends_with_the_policy(
    scheduling_broker: brokers.RunningBroker,
    queue_name: str,
    acknowledge: Acknowledge,
    caplog: pytest.LogCaptureFixture,
) -> None:
    Delayed(scheduling_broker, queue_name, acknowledge=acknowledge).check("01200")
    assert "has no scheduler" not in caplog.text


def test_without_a_scheduler_a_consumer_waits_with_what_is_put_off(
    broker: brokers.RunningBroker, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    Delayed(broker, queue_name).check("01200")
    assert "the broker has no scheduler" in caplog.text


@pytest.mark.parametrize("is_coroutine", [True, False], ids=["coroutine", "function"])
def test_what_is_sent_in_the_session_is_part_of_the_transaction(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str, is_coroutine: bool
) -> None:
    fill(opened, queue_name, 4)
    answers = f"{queue_name}.OUT"
    failing = {"1", "2"}

    def outcome(body: object) -> object:
        if body == "1":
            failing.discard("1")
            raise LookupError("once")
        return dead_letter("2 is bad") if body == "2" else None

    def function(message: ReceivedMessage, session: Session) -> object:
        session.producer(answers).send(str(message.body))
        return outcome(message.body) if message.body in failing else None

    async def coroutine(message: ReceivedMessage, session: aio.Session) -> object:
        producer = await session.producer(answers)
        await producer.send(str(message.body))
        return outcome(message.body) if message.body in failing else None

    made = container(coroutine if is_coroutine else function, broker.url, queue_name)
    serve(made, lambda: made.counters.processed == 3)
    assert left(opened, answers) == ["0", "1", "3"]


def test_what_is_returned_answers_the_message(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    session = opened.session()
    mine = opened.temporary_queue()
    replies = session.consumer(mine)
    producer = session.producer(queue_name)
    asked = producer.send("4", reply_to=mine)
    named = producer.send("5", reply_to=mine, correlation_id="mine")
    producer.send("6")
    made = container(
        lambda message: str(int(message.body) ** 2), broker.url, queue_name,
        send_to=f"{queue_name}.SQUARES",
    )  # fmt: skip
    serve(made, lambda: made.counters.processed == 3)
    found = [(each.body, each.correlation_id) for each in take(replies, 2)]
    assert found == [("16", asked), ("25", "mine")]
    assert named != asked
    assert left(opened, f"{queue_name}.SQUARES") == ["36"]


def test_a_result_that_no_message_can_carry_is_a_failure(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    fill(opened, queue_name, 1)
    made = container(lambda message: object(), broker.url, queue_name, send_to="NOWHERE")
    serve(made, lambda: made.counters.failed == 3)
    (letter,) = dead_letters(opened, queue_name)
    assert "a message body is a str" in str(letter.properties[CAUSE])


def test_a_refusal_of_the_first_consumer_is_told_at_once(
    broker: brokers.RunningBroker, queue_name: str
) -> None:
    made = container(lambda message: None, broker.url, queue_name, selector="not a selector")
    with pytest.raises(InvalidSelectorError):
        run(made.start())
    assert made.consumers == 0


def test_an_error_handler_that_fails_harms_nobody(
    broker: brokers.RunningBroker,
    opened: Connection,
    queue_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fill(opened, queue_name, 2)

    async def handler(error: Exception, message: ReceivedMessage) -> None:
        raise OSError("cannot be told")

    def function(message: ReceivedMessage) -> None:
        if not message.redelivered:
            raise LookupError("once")

    made = container(function, broker.url, queue_name, error_handler=handler)
    serve(made, lambda: made.counters.processed == 2)
    assert (made.counters.failed, made.counters.recoveries) == (2, 0)
    assert "cannot be told" in caplog.text


def test_a_durable_subscription_goes_on_where_it_was(
    broker: brokers.RunningBroker, opened: Connection, queue_name: str
) -> None:
    name = f"topic://{queue_name}"
    came: list[object] = []
    made = container(
        lambda message: came.append(message.body), broker.url, name,
        subscription_name="mine", client_id=queue_name,
    )  # fmt: skip
    serve(made, lambda: True)
    opened.session().producer(name).send("one")
    serve(made, lambda: len(came) == 1)
    opened.session().producer(name).send("two")
    serve(made, lambda: len(came) == 2)
    assert came == ["one", "two"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"concurrency": "x"}, "a concurrency is like 4 or 2-10, not 'x'"),
        ({"concurrency": "4-2"}, "the least number first"),
        ({"concurrency": 0}, "from 1 on"),
        ({"destination": "topic://T", "concurrency": "1-2"}, "every consumer of a topic"),
        ({"subscription_name": "s"}, "needs a client_id"),
        ({"receive_timeout": 0}, "more than 0 s"),
        ({"messages_per_task": 0}, "messages_per_task is from 1 on, not 0"),
        ({"cache_level": "all"}, "'all' is not a valid CacheLevel"),
    ],
)
def test_settings_that_make_no_sense_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        listener(options.pop("destination", "ORDERS"), **options)


def test_an_idle_container_gives_signs_of_life_and_ends_at_once(
    broker: brokers.RunningBroker, queue_name: str, open_connection: Connect
) -> None:
    async def idle() -> float:
        # ActiveMQ gives no sign of life before the first delay, of 10 s unless told otherwise.
        limits = "maxInactivityDuration=3000&wireFormat.maxInactivityDurationInitalDelay=500"
        url = f"{broker.url}?wireFormat.{limits}"
        async with container(lambda message: None, url, queue_name, receive_timeout=30.0) as made:
            signs = [0, 0]
            before = [0.0, 0.0]
            async with asyncio.timeout(20):
                # Silence that became shorter means a frame: none but signs of life are sent.
                while min(signs) < 2:
                    await asyncio.sleep(0.05)
                    health = made.health()
                    assert health.is_healthy
                    assert health.received_seconds is not None and health.received_seconds < 3
                    assert health.sent_seconds is not None and health.sent_seconds < 3
                    now = [health.received_seconds, health.sent_seconds]
                    pairs = zip(signs, before, now, strict=True)
                    signs = [count + (after < then) for count, then, after in pairs]
                    before = now
            began = time.monotonic()
        return time.monotonic() - began

    assert run(idle()) < 5
