"""Outputs of streams for a connection: the one answer to each command, and notices.

Each answer carries the `tag` that came with the command; its protocol knows what that means.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.streams.drafts import Draft, StreamRecord


class Appended(NamedTuple):
    """Messages are durable: they have the offsets from `offset` on.

    `locations` are those of their records, one for each. `stored_at` is in ms since the epoch.
    """

    tag: Any  # mypyc takes no `object` here
    stream: str
    partition: int
    offset: int
    locations: tuple[int, ...]
    stored_at: int


class ReadStatus(Enum):
    """Outcome of a read.

    FOUND: `records` holds at least one message. NOT_YET: nothing came until the time was over.
    NO_MATCH: the filter passed everything it could look at; go on at once at `next_offset`.
    TOO_SMALL and TOO_LARGE: the offset is outside of what is kept; `next_offset` is the nearest.
    """

    FOUND = "found"
    NOT_YET = "not yet"
    NO_MATCH = "no match"
    TOO_SMALL = "too small"
    TOO_LARGE = "too large"


class ReadResult(NamedTuple):
    """The answer to a read: go on at `next_offset`.

    `minimum` is the first offset that is kept, `maximum` that behind the last message.
    """

    tag: Any
    status: ReadStatus
    stream: str
    partition: int
    records: Sequence[StreamRecord]
    next_offset: int
    minimum: int
    maximum: int


class Done(NamedTuple):
    """A command is carried out, and what it did is durable."""

    tag: Any


class Locked(NamedTuple):
    """The answer to a request for locks: the (stream, partition) that the member holds now."""

    tag: Any
    partitions: tuple[tuple[str, int], ...]


class HalfStored(NamedTuple):
    """A half message is durable: `end_transaction` and checks name it by `number`.

    `location` is that of its record.
    """

    tag: Any
    number: int
    location: int


class Refused(NamedTuple):
    """A command could not be carried out; the error says why."""

    tag: Any
    error: BrokerError


class MembersChanged(NamedTuple):
    """Somebody joined or left the group, or subscribes to something else: balance it again."""

    group: str


class CheckTransaction(NamedTuple):
    """Question to a member of a producer group: what became of the transaction of this message?

    `checks` counts the questions, this one among them.
    """

    group: str
    number: int
    location: int
    stream: str
    partition: int
    draft: Draft
    checks: int


StreamOutput: TypeAlias = (
    Appended | ReadResult | Done | Locked | HalfStored | Refused | MembersChanged | CheckTransaction
)
