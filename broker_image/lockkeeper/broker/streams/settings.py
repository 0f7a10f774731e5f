"""Settings of streams: retention and partitions of one, limits of all."""

from dataclasses import dataclass, field

DELAY_LEVELS_MS = tuple(
    1000 * seconds
    for seconds in (
        *(1, 5, 10, 30),
        *(60 * minutes for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)),
        *(3600, 7200),
    )
)
"""RocketMQ's messageDelayLevel: 1 s to 2 h, in ms; level 1 is the first."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits that end the messages of a stream: their age in ms, bytes or number of a partition.

    0 is no limit. What goes are whole segments, so that more may be there: up to a segment (32 MiB)
    or a `segment_ms` of messages in each partition, and always the last message.
    """

    time: int = 72 * 3_600_000
    bytes: int = 0
    messages: int = 0

    @property
    def segment_ms(self) -> int:
        """Time in which a segment is added to, at most."""
        return max(1_000, self.time // 8) if self.time else 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """One stream: the number of its partitions, and what ends its messages.

    An `ordered` one is meant for orderly consumption, which clients are told with its route.
    What is sent to `from_topics` goes into it, and its messages go to `to_queues`, too.
    """

    partitions: int = 4
    retention: Retention = field(default_factory=Retention)
    ordered: bool = False
    from_topics: tuple[str, ...] = ()
    to_queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Largest numbers; whoever passes one gets an error that names it."""

    streams: int = 10_000
    partitions: int = 1_024
    partitions_total: int = 100_000
    groups: int = 10_000
    members: int = 1_000
    waiting_reads: int = 100_000
    message_bytes: int = 4 << 20
    read_messages: int = 1_024
    read_bytes: int = 4 << 20
    pending_bytes: int = 64 << 20
    pending_transactions: int = 100_000
    query_messages: int = 1_024


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    """Settings of all streams of a broker.

    With `create_on_first_use` a producer's first message makes a stream as `defaults` says. A
    member that is silent for `member_timeout` is out of its group; a lock that is not renewed
    for `lock_timeout` is free. Offsets are written every `offsets_interval` at the latest. A
    transaction without an outcome is asked about after `transaction_timeout`, then every
    `check_interval`, `checks_max` times. `delay_levels` are those of delayed messages.
    """

    create_on_first_use: bool = True
    defaults: StreamSettings = field(default_factory=StreamSettings)
    limits: StreamLimits = field(default_factory=StreamLimits)
    delay_levels: tuple[int, ...] = DELAY_LEVELS_MS
    member_timeout: int = 120_000
    lock_timeout: int = 60_000
    offsets_interval: int = 5_000
    transaction_timeout: int = 6_000
    check_interval: int = 30_000
    checks_max: int = 15
