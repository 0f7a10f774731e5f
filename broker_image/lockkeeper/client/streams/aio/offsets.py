"""Offsets of a consumer: those of a group are kept by brokers, those of a broadcast by itself."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from lockkeeper.client.errors import MessagingError
from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.names import RETRY_PREFIX
from lockkeeper.client.streams.core.positions import FIRST, Position, position_request
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.errors import UnreadableAnswerError
from lockkeeper.client.streams.links.network import Network
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request, Response


async def find_offset(
    network: Network, partition: Partition, position: Position, timeout: float
) -> int:
    """Return the offset of a position.

    Raises ValueError for what is no position, else as `Network.ask_about`.
    """
    if isinstance(position, int):
        if position < 0:
            raise ValueError(f"the offset {position} is less than 0")
        return position
    request = position_request(partition, position)
    return _offset(await network.ask_about(partition, lambda: request, timeout))


def _offset(answer: Command) -> int:
    try:
        return int(answer.fields["offset"])
    except (KeyError, ValueError) as wrong:
        raise UnreadableAnswerError("an answer without an offset") from wrong


class Offsets(Protocol):
    """A place where the offsets of a consumer are kept."""

    async def load(self, partition: Partition) -> int | None:
        """Return the offset to go on with, None if there is none. Raises MessagingError."""

    async def save(self, offsets: Mapping[Partition, int]) -> set[Partition]:
        """Keep offsets; returns those that are kept now. Raises nothing that may pass."""


class GroupOffsets:
    """Offsets of a group, kept by the brokers of its partitions."""

    def __init__(self, network: Network, group: str) -> None:
        self._network = network
        self._group = group

    async def load(self, partition: Partition) -> int | None:
        """Return the offset to go on with, None for a partition that is new to the group."""
        request = commands.offset_request(
            Request.QUERY_CONSUMER_OFFSET,
            partition,
            consumerGroup=self._group,
            setZeroIfNotFound=False,
        )
        route = await self._network.route(partition.stream)
        expected = (Response.SUCCESS, Response.QUERY_NOT_FOUND)
        answer = await self._network.ask(route, partition.broker, request, expected=expected)
        return _offset(answer) if answer.code == Response.SUCCESS else None

    async def save(self, offsets: Mapping[Partition, int]) -> set[Partition]:
        """Tell brokers; one that fails is asked no more this time."""
        kept: set[Partition] = set()
        failed: set[str] = set()
        for partition, offset in offsets.items():
            if partition.broker in failed:
                continue
            request = commands.offset_request(
                Request.UPDATE_CONSUMER_OFFSET,
                partition,
                consumerGroup=self._group,
                commitOffset=offset,
            )
            try:
                route = await self._network.route(partition.stream)
                await self._network.ask(route, partition.broker, request)
            except MessagingError:
                failed.add(partition.broker)
            else:
                kept.add(partition)
        return kept


class OwnOffsets:
    """Offsets of a member that gets everything: in a file, or in memory alone."""

    def __init__(self, file: Path | None) -> None:
        """Read the file, if it is there. Raises ValueError for one that is damaged, OSError."""
        self._file = file
        self._offsets: dict[Partition, int] = {}
        if file is not None and file.exists():
            try:
                told = json.loads(file.read_text("utf-8"))
                for each in told["offsets"]:
                    place = Partition(each["stream"], each["broker"], int(each["partition"]))
                    self._offsets[place] = int(each["offset"])
            except (ValueError, KeyError, TypeError) as wrong:
                raise ValueError(
                    f"{file} holds no offsets: delete it to begin anew ({wrong!r})"
                ) from wrong

    async def load(self, partition: Partition) -> int | None:
        """Return the offset to go on with."""
        return self._offsets.get(partition)

    async def save(self, offsets: Mapping[Partition, int]) -> set[Partition]:
        """Write the file anew. Raises OSError."""
        self._offsets |= offsets
        if self._file is not None:
            told = [
                {"stream": place.stream, "broker": place.broker, "partition": place.number,
                 "offset": offset}
                for place, offset in sorted(self._offsets.items())
            ]  # fmt: skip
            text = json.dumps({"offsets": told}, indent=1)
            await asyncio.to_thread(_replace, self._file, text)
        return set(offsets)


def _replace(file: Path, text: str) -> None:
    """Write a file so that a crash leaves the old one or the new one."""
    new = file.with_name(f"{file.name}.new")
    with new.open("w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    new.replace(file)


async def begin_at(
    network: Network, offsets: Offsets, partition: Partition, begin: Position
) -> int:
    """Return the offset that a consumer begins with in a partition.

    It is kept at once where there was none: LAST is another offset later, and whoever gets the
    partition next must begin with this one. Raises MessagingError.
    """
    known = await offsets.load(partition)
    if known is not None:
        return known
    position = FIRST if partition.stream.startswith(RETRY_PREFIX) else begin
    offset = await find_offset(network, partition, position, 0)
    if partition not in await offsets.save({partition: offset}):
        raise UnreadableAnswerError(f"the first offset of {partition} is not kept")
    return offset
