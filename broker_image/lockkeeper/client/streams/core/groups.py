"""Members of consumer groups: how they consume, and what brokers and members tell each other."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from lockkeeper.client.streams.core.positions import FIRST, LAST, Edge
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.core.subscriptions import Subscription
from lockkeeper.client.streams.core.window import Bounds
from lockkeeper.protocols.rocketmq.bodies import read_object
from lockkeeper.protocols.rocketmq.errors import ProtocolError

RECONSUMES_MAX: Final = 16
EACH: Final = Bounds(messages=1_000, bytes=64 << 20, span=2_000)
ALL_TOGETHER: Final = Bounds(messages=10_000, bytes=256 << 20)
_BEGINS: Final = {FIRST: "CONSUME_FROM_FIRST_OFFSET", LAST: "CONSUME_FROM_LAST_OFFSET"}
# A map whose keys are objects, as fastjson writes it: that is no JSON.
_RESET: Final = re.compile(rb"(\{[^{}]*\})\s*:\s*(-?\d+)")


class ConsumeLater(Exception):
    """Raised by a listener that wants its message again, later.

    `delay_level` is one of the broker's levels; 0 leaves it to the broker, which waits longer each
    time. A group in order waits for `GroupSettings.suspend` instead.
    """

    def __init__(self, delay_level: int = 0) -> None:
        super().__init__(f"again, after the delay level {delay_level}")
        self.delay_level = delay_level


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of a member of a group; times are in seconds.

    `orderly`: one message of a partition at a time, the next only when it is consumed. Else up to
    `concurrency` listeners are at work, in no order. `broadcasting`: each member gets everything,
    and keeps its offsets itself, in `offsets_file` if there is one.

    `begin` is for partitions that the group never consumed. A message that is not consumed comes
    again up to `reconsumes_max` times, then it is a dead letter. None means RocketMQ's 16, and for
    ever where it is `orderly`: then it comes again after `suspend`. `each` bounds what one
    partition has in hand, `all` all of them.
    """

    orderly: bool = False
    broadcasting: bool = False
    offsets_file: Path | None = None
    begin: Edge | datetime = LAST
    concurrency: int = 20
    reconsumes_max: int | None = None
    suspend: float = 1.0
    each: Bounds = EACH
    all: Bounds = ALL_TOGETHER
    commit_interval: float = 5.0
    rebalance_interval: float = 20.0
    lock_interval: float = 20.0
    lock_believed: float = 30.0

    def __post_init__(self) -> None:
        """Raise ValueError for what does not fit."""
        if self.concurrency < 1:
            raise ValueError(f"concurrency is {self.concurrency}; a group needs one listener")
        if self.offsets_file is not None and not self.broadcasting:
            raise ValueError(
                "offsets_file is for broadcasting: other groups have theirs in brokers"
            )
        if isinstance(self.begin, datetime) and self.begin.tzinfo is None:
            raise ValueError(f"begin {self.begin} has no time zone")

    @property
    def has_locks(self) -> bool:
        """Tell whether members hold partitions by locks."""
        return self.orderly and not self.broadcasting

    @property
    def retries_max(self) -> int | None:
        """Number of times that a message comes again; None for ever."""
        if self.reconsumes_max is None and not self.orderly:
            return RECONSUMES_MAX
        return self.reconsumes_max


def membership(
    group: str, settings: GroupSettings, subscriptions: Iterable[Subscription]
) -> dict[str, Any]:
    """Return what a heartbeat tells of a member."""
    begin = settings.begin
    begins = "CONSUME_FROM_TIMESTAMP" if isinstance(begin, datetime) else _BEGINS[begin]
    return {
        "consumeFromWhere": begins,
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "BROADCASTING" if settings.broadcasting else "CLUSTERING",
        "subscriptionDataSet": [each.told() for each in subscriptions],
        "unitMode": False,
    }


def read_members(body: bytes) -> list[str]:
    """Return the client ids of a group's members. Raises ProtocolError."""
    members = read_object(body).get("consumerIdList", [])
    if not isinstance(members, list) or not all(isinstance(each, str) for each in members):
        raise ProtocolError("a consumerIdList that is no list of texts")
    return members


def read_locked(body: bytes) -> set[Partition]:
    """Return the partitions whose locks a member holds. Raises ProtocolError."""
    queues = read_object(body).get("lockOKMQSet", [])
    if not isinstance(queues, list):
        raise ProtocolError("a lockOKMQSet that is no list")
    return {_partition(each) for each in queues}


def read_reset(body: bytes) -> dict[Partition, int]:
    """Return the offsets that a group is told to go on at. Raises ProtocolError."""
    try:
        return {
            _partition(json.loads(queue)): int(offset) for queue, offset in _RESET.findall(body)
        }
    except ValueError as wrong:
        raise ProtocolError(f"an offsetTable that is none: {wrong}") from wrong


def _partition(told: object) -> Partition:
    if isinstance(told, dict):
        stream, broker, number = told.get("topic"), told.get("brokerName"), told.get("queueId")
        if isinstance(stream, str) and isinstance(broker, str) and isinstance(number, int):
            return Partition(stream, broker, number)
    raise ProtocolError("a partition without topic, brokerName or queueId")
