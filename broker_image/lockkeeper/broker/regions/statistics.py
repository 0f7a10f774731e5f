"""Counters of one destination since the broker became the master."""

from collections.abc import Sequence
from typing import Final

from lockkeeper.journal.counters import COUNTERS
from lockkeeper.message.layout import BLOB_MESSAGE, BROKER_IN_TIME_AT, BROKER_OUT_TIME_AT
from lockkeeper.message.stamps import arrival
from lockkeeper.store.base import Reference

# Upper bounds of the latency buckets, in ms: 0, 1, 3, 7, 15, … about 12 days.
LATENCY_BUCKETS: Final = 31
LATENCY_BOUNDS = [(1 << bits) - 1 for bits in range(LATENCY_BUCKETS)]
_LAST_BUCKET: Final = LATENCY_BUCKETS - 1
# Destinations share it until something is acknowledged there.
_UNUSED = [0] * LATENCY_BUCKETS


class Statistics:
    """Counters of one destination, in messages; ActiveMQ's names.

    `latency` counts acknowledged messages by the time from their arrival at the broker to their
    acknowledgement: those of at most `LATENCY_BOUNDS[i]` ms, and more than the bound before.
    """

    __slots__ = (
        "dead_lettered",
        "dequeued",
        "discarded",
        "dispatched",
        "enqueued",
        "expired",
        "latency",
        "never_written",
        "redelivered",
    )

    def __init__(self) -> None:
        self.enqueued = 0
        self.dequeued = 0
        self.dispatched = 0
        self.expired = 0
        self.discarded = 0
        self.dead_lettered = 0
        self.redelivered = 0
        self.never_written = 0
        self.latency = _UNUSED

    def acknowledged(self, references: Sequence[Reference], now: int) -> None:
        """Count messages that were acknowledged at *now* (ms since the epoch)."""
        self.dequeued += len(references)
        latency = self.latency
        if latency is _UNUSED:
            latency = self.latency = [0] * LATENCY_BUCKETS
        for reference in references:
            message = reference.message
            assert message is not None
            body = message.body
            if body[0] == BLOB_MESSAGE:
                passed = now - arrival(body)
            else:  # Nearly all: without a call.
                in_time = body[BROKER_IN_TIME_AT:BROKER_OUT_TIME_AT]
                passed = now - int.from_bytes(in_time, "big")
            bucket = passed.bit_length()
            latency[bucket if bucket < LATENCY_BUCKETS else _LAST_BUCKET] += 1

    def copied(self) -> "Statistics":
        """Return the same counts, to go on counting by themselves."""
        copy = Statistics()
        for counter in COUNTERS:
            setattr(copy, counter.name, getattr(self, counter.name))
        copy.latency = [*self.latency]
        return copy

    def counters(self) -> dict[str, int]:
        """Return the counters by their names in JSON."""
        return {counter.json_name: getattr(self, counter.name) for counter in COUNTERS}
