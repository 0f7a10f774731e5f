"""Streams: what one is like, and what a broker allows for all of them."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, Size, durations, sizes

_SECOND = timedelta(seconds=1)
_MINUTE = 60 * _SECOND
_DELAYS = (
    *(_SECOND * seconds for seconds in (1, 5, 10, 30)),
    *(_MINUTE * minutes for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120)),
)
PARTITIONS_MAX = 1024
_LEVEL = r"[%|a-zA-Z0-9_-]+"

BridgedName = Annotated[
    str, Field(min_length=1, max_length=200, pattern=rf"^{_LEVEL}(\.{_LEVEL})*$")
]
"""The name of a queue or topic beside streams: of characters that names of groups may have."""
_ANY_LEVEL = rf"({_LEVEL}|\*)"
FedName = Annotated[
    str,
    Field(min_length=1, max_length=200, pattern=rf"^{_LEVEL}(\.{_ANY_LEVEL})*(\.>)?$"),
]
"""The name of a queue that a stream feeds, or a wildcard whose first level says which queues."""
LIMIT_MAX = 1_000_000


class Retention(ApiModel):
    """Limits after which messages of a stream end, whoever has read them.

    Segments end as a whole: of each partition the last one, up to 32Mi or an eighth of the time,
    stays.
    """

    time: Annotated[Duration, durations("0s", "87600h")] = timedelta(hours=72)
    """Age of messages (RocketMQ's fileReservedTime); 0s for any."""
    bytes: Annotated[Size, sizes("1Mi", "64Ti")] | None = None
    """Bytes of each partition; absent: any number."""
    messages: int | None = Field(default=None, ge=1, le=2**53)
    """Messages of each partition; absent: any number."""


class Stream(ApiModel):
    """Settings of a stream."""

    partitions: int = Field(default=4, ge=1, le=PARTITIONS_MAX)
    """Number of partitions (RocketMQ's message queues); they are added to, never taken away."""
    retention: Retention = Retention()
    """Limits after which messages end."""
    ordered: bool = False
    """Tell clients that the stream is meant for orderly consumption (RocketMQ's order)."""
    from_topics: list[BridgedName] = Field(
        default=[], max_length=16, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Topics whose messages go into the stream, too."""
    to_queues: list[FedName] = Field(
        default=[], max_length=16, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Queues that get each message of the stream, from the first one that is kept. A wildcard such
    as Consumer.*.orders stands for all queues that somebody opens."""


class StreamLimits(ApiModel):
    """Largest numbers of streams' things; a request beyond one is refused with its name."""

    streams: int = Field(default=10_000, ge=1, le=LIMIT_MAX)
    """Streams of the broker."""
    partitions: int = Field(default=PARTITIONS_MAX, ge=1, le=PARTITIONS_MAX)
    """Partitions of a stream."""
    partitions_total: int = Field(default=100_000, ge=1, le=LIMIT_MAX)
    """Partitions of all streams together, those of retries and delays, too."""
    groups: int = Field(default=10_000, ge=1, le=LIMIT_MAX)
    """Consumer groups of the broker."""
    members: int = Field(default=1_000, ge=1, le=LIMIT_MAX)
    """Members of a group."""
    waiting_reads: int = Field(default=100_000, ge=1, le=LIMIT_MAX)
    """Reads that wait for messages; one connection may have an eighth of them."""
    message_bytes: Annotated[Size, sizes("1Ki", "64Mi")] = 4 << 20
    """Bytes of a message's body (RocketMQ's maxMessageSize)."""
    read_messages: int = Field(default=1_024, ge=1, le=65_536)
    """Messages that one read answers."""
    read_bytes: Annotated[Size, sizes("4Ki", "64Mi")] = 4 << 20
    """Bytes that one read answers, beyond its first message."""
    pending_bytes: Annotated[Size, sizes("1Mi", "4Gi")] = 64 << 20
    """Bytes of messages that wait for the disk; producers are told to try again beyond."""
    pending_transactions: int = Field(default=100_000, ge=1, le=LIMIT_MAX)
    """Transactional messages without an outcome."""
    query_messages: int = Field(default=1_024, ge=1, le=65_536)
    """Messages that a search by key answers."""


class Streams(ApiModel):
    """Streams and consumer groups: RocketMQ's model."""

    create_on_first_use: bool = True
    """Make a stream for the first message to it (RocketMQ's autoCreateTopicEnable)."""
    defaults: Stream = Stream()
    """Settings of streams that are made so."""
    limits: StreamLimits = StreamLimits()
    """Largest numbers."""
    delay_levels: list[Annotated[Duration, durations("100ms", "168h")]] = Field(
        default=list(_DELAYS), min_length=1, max_length=64
    )
    """Delays of the levels of delayed messages and retries, the first is level 1 (RocketMQ's
    messageDelayLevel)."""
    member_timeout: Annotated[Duration, durations("1s", "24h")] = 2 * _MINUTE
    """Silence after which a member is out of its group."""
    lock_timeout: Annotated[Duration, durations("1s", "24h")] = _MINUTE
    """Time after which a lock on a partition is free unless it is renewed."""
    offsets_interval: Annotated[Duration, durations("10ms", "1h")] = 5 * _SECOND
    """Interval at which groups' offsets are written: what a crash may repeat."""
    transaction_timeout: Annotated[Duration, durations("100ms", "24h")] = 6 * _SECOND
    """Time after which a producer is asked about its transaction."""
    check_interval: Annotated[Duration, durations("100ms", "24h")] = 30 * _SECOND
    """Interval at which it is asked again."""
    checks_max: int = Field(default=15, ge=1, le=10_000)
    """Number of questions before its message is set aside in TRANS_CHECK_MAX_TIME_TOPIC."""
