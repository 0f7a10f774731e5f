"""The taskiq broker, with taskiq's own receiver; taskiq is installed apart from `dev`."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("taskiq")

from taskiq.exceptions import SendTaskError
from taskiq.receiver import Receiver

from lockkeeper.client import connect
from lockkeeper.integrations.taskiq import LockkeeperBroker
from lockkeeper.testing.in_process import InProcessBroker

pytestmark = pytest.mark.thorough
SOON = 20.0


async def work_until(broker: LockkeeperBroker, is_done: Callable[[], bool]) -> None:
    """Be taskiq's worker until something is done."""
    finish = asyncio.Event()
    receiver = Receiver(broker, run_startup=False)
    working = asyncio.create_task(receiver.listen(finish))
    async with asyncio.timeout(SOON):
        while not is_done():
            await asyncio.sleep(0.01)
    finish.set()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


def payments(url: str) -> tuple[LockkeeperBroker, Any, list[int]]:
    """Return a broker, its task that pays an order, and the orders that were paid."""
    done: list[int] = []
    broker = LockkeeperBroker(url)

    @broker.task(task_name="pay")  # type: ignore[untyped-decorator]
    async def pay(order: int) -> None:
        done.append(order)

    return broker, pay, done


def test_a_task_is_carried_out_and_acknowledged(lockkeeper_broker: InProcessBroker) -> None:
    broker, pay, done = payments(lockkeeper_broker.url)

    async def course() -> None:
        await broker.startup()
        await pay.kiq(7)
        await pay.kicker().with_labels(priority=9).kiq(order=8)
        await work_until(broker, lambda: len(done) == 2)
        await broker.shutdown()

    asyncio.run(course())
    assert sorted(done) == [7, 8]
    with connect(lockkeeper_broker.url) as connection:
        assert list(connection.session().browse("taskiq")) == []


def test_a_delay_is_held_by_the_broker(lockkeeper_broker: InProcessBroker) -> None:
    done: list[int] = []

    async def course() -> None:
        broker = LockkeeperBroker(lockkeeper_broker.url)

        @broker.task(task_name="remind")  # type: ignore[untyped-decorator]
        async def remind(number: int) -> None:
            done.append(number)

        await broker.startup()
        await remind.kicker().with_labels(delay=3600).kiq(1)
        await remind.kiq(2)
        await work_until(broker, lambda: bool(done))
        assert done == [2]
        lockkeeper_broker.advance("1h")
        await work_until(broker, lambda: len(done) == 2)
        await broker.shutdown()

    asyncio.run(course())
    assert done == [2, 1]


def test_what_is_no_task_is_a_dead_letter(lockkeeper_broker: InProcessBroker) -> None:
    broker, pay, done = payments(lockkeeper_broker.url)

    async def course() -> None:
        await broker.startup()
        await pay.kiq(7)
        await work_until(broker, lambda: bool(done))
        await broker.shutdown()

    with connect(lockkeeper_broker.url) as connection:
        connection.session().producer("taskiq").send("a text of somebody else's")
        asyncio.run(course())
        letters = connection.session().browse("ActiveMQ.DLQ")
        assert [letter.body for letter in letters] == ["a text of somebody else's"]


def test_without_a_start_it_says_what_is_missing() -> None:
    broker = LockkeeperBroker()

    @broker.task(task_name="pay")  # type: ignore[untyped-decorator]
    async def pay() -> None: ...

    with pytest.raises(SendTaskError) as raised:
        asyncio.run(pay.kiq())
    assert "await its startup() first" in str(raised.value.__cause__)
