"""What the processes of the streams' demo do: producers publish departures, groups read them."""

import asyncio
import time
from array import array
from collections import defaultdict
from multiprocessing.synchronize import Event
from typing import Any, NamedTuple

import flights
from roles import Events

from lockkeeper.client.streams import (
    FIRST,
    Bounds,
    GroupSettings,
    Means,
    Message,
    ReceivedMessage,
)
from lockkeeper.client.streams.aio import Producer, connect
from lockkeeper.client.streams.core.sharing import by_key

STREAM, PARTITIONS = "departures", 6
BATCH = 200
REPORT_SECONDS = 0.5
AHEAD = Bounds(messages=500, bytes=16 << 20, span=2_000)
MEANS = Means(heartbeat_interval=2.0)
SEND_SECONDS = 120.0


class Seen(NamedTuple):
    """Departures that a member has consumed, each as one number in each of the arrays."""

    partitions: bytes
    offsets: bytes
    departures: bytes
    times: bytes


def publish(address: str, part: int, parts: int, total: int, events: Events) -> None:
    """Publish one part of the departures: all those of its aircraft, each aircraft's in order."""
    asyncio.run(_publish(address, part, parts, total, events))


async def _publish(address: str, part: int, parts: int, total: int, events: Events) -> None:
    batches: defaultdict[int, list[Message]] = defaultdict(list)
    sending: dict[int, asyncio.Task[None]] = {}
    async with (
        await connect(address, means=MEANS) as connection,
        await connection.producer() as producer,
    ):

        async def send(place: int) -> None:
            # One batch of a partition at a time, which keeps the order.
            if place in sending:
                await sending[place]
            batch = batches.pop(place)
            sending[place] = asyncio.create_task(_send(producer, place, batch, events))

        for departure in flights.departures(total, 0, 1):
            # Reversed, so that each producer has something for each partition.
            if by_key(range(parts), departure.aircraft[::-1]) != part:
                continue
            place = by_key(range(PARTITIONS), departure.aircraft)
            batches[place].append(Message(departure.body, keys=[departure.aircraft]))
            if len(batches[place]) == BATCH:
                await send(place)
        for place in list(batches):
            await send(place)
        await asyncio.gather(*sending.values())


async def _send(producer: Producer, place: int, batch: list[Message], events: Events) -> None:
    await producer.send_batch(STREAM, batch, partition=place, timeout=SEND_SECONDS)
    events.put(("published", len(batch)))


def read(address: str, group: str, orderly: bool, finished: Event, events: Events) -> None:
    """Be a member of a group until told to finish."""
    asyncio.run(_read(address, group, orderly, finished, events))


async def _read(address: str, group: str, orderly: bool, finished: Event, events: Events) -> None:
    settings = GroupSettings(begin=FIRST, orderly=orderly, each=AHEAD, lock_interval=5.0)
    seen = _Book(group, events)

    async def consume(message: ReceivedMessage) -> None:
        seen.note(message)

    async with (
        await connect(address, means=MEANS) as connection,
        await connection.consumer(group, STREAM, consume, settings),
    ):
        while not finished.is_set():
            await asyncio.sleep(REPORT_SECONDS)
            seen.report()
    seen.report()


class _Book:
    """What a member has consumed since its last report."""

    def __init__(self, group: str, events: Events) -> None:
        self._group = group
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._partitions, self._offsets = array("b"), array("l")
        self._departures, self._times = array("l"), array("d")

    def note(self, message: ReceivedMessage) -> None:
        """Take a departure down, with the time, which is the same for all processes."""
        self._partitions.append(message.partition.number)
        self._offsets.append(message.offset)
        self._departures.append(flights.number_of(message.body))
        self._times.append(time.monotonic())

    def report(self) -> None:
        """Tell the parent."""
        if not self._offsets:
            return
        told: tuple[str, Any] = (
            self._group,
            Seen(
                self._partitions.tobytes(),
                self._offsets.tobytes(),
                self._departures.tobytes(),
                self._times.tobytes(),
            ),
        )
        self._events.put(("consumed", told))
        self._begin()
