"""Positions in a partition: the first offset, the last, one by number, or that of a time."""

from datetime import datetime
from enum import Enum
from typing import TypeAlias

from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.messages import milliseconds
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request


class Edge(Enum):
    """An end of a partition."""

    FIRST = "first"
    LAST = "last"


FIRST, LAST = Edge.FIRST, Edge.LAST
"""The oldest message that is kept; behind the newest one that is there."""
Position: TypeAlias = Edge | datetime | int


def position_request(partition: Partition, position: Edge | datetime) -> Command:
    """Return the request for the offset of a position. Raises ValueError."""
    if position is FIRST:
        return commands.offset_request(Request.GET_MIN_OFFSET, partition)
    if position is LAST:
        return commands.offset_request(Request.GET_MAX_OFFSET, partition)
    if isinstance(position, datetime):
        return commands.offset_request(
            Request.SEARCH_OFFSET_BY_TIMESTAMP, partition, timestamp=milliseconds(position)
        )
    raise ValueError(f"{position!r} is no position: FIRST, LAST, a datetime, or an offset")
