"""What the tests of streams share: declaring streams, and waiting for what must happen."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lockkeeper.client.streams.aio import Connection, Reader
from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.messages import Message, ReceivedMessage
from lockkeeper.protocols.rocketmq.codes import Request, Response

T = TypeVar("T")
SECONDS = 240.0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Carry a test out; it must be done in time, and leave no task behind."""

    async def bounded() -> T:
        async with asyncio.timeout(SECONDS):
            result = await coroutine
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, others
        return result

    return asyncio.run(bounded(), debug=False)


async def declare(connection: Connection, stream: str, partitions: int) -> None:
    """Make a stream, or give it more partitions."""
    request = commands.request(
        Request.UPDATE_AND_CREATE_TOPIC,
        topic=stream,
        defaultTopic="TBW102",
        readQueueNums=partitions,
        writeQueueNums=partitions,
        perm=6,
        topicFilterType="SINGLE_TAG",
        topicSysFlag=0,
        order=False,
    )
    route = await connection.network.route("TBW102")
    (broker,) = route.addresses
    answer = await connection.network.ask(route, broker, request)
    assert answer.code == Response.SUCCESS
    connection.network.forget_route(stream)


async def take(reader: Reader, count: int) -> list[ReceivedMessage]:
    """Return the next messages, so many of them."""
    found: list[ReceivedMessage] = []
    for _ in range(count):
        message = await reader.receive(20)
        assert message is not None, f"{len(found)} of {count} messages came"
        found.append(message)
    return found


async def until(happened: Callable[[], object], seconds: float = 100) -> None:
    """Wait until something has happened."""
    async with asyncio.timeout(seconds):
        while not happened():
            await asyncio.sleep(0.01)


async def fill(
    connection: Connection, stream: str, count: int, first: int = 0, partitions: int = 0
) -> None:
    """Send numbered messages; each to the partition that is left over by their number, if told."""
    numbers = range(first, first + count)
    async with await connection.producer() as producer:
        if not partitions:
            await asyncio.gather(*(producer.send(stream, str(number)) for number in numbers))
        for place in range(partitions):
            its = [Message(str(number)) for number in numbers if number % partitions == place]
            await producer.send_batch(stream, its, partition=place)
