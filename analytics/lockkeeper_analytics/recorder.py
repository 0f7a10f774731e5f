"""The flight recorder's lines: trace records whose text is `lk1 {compact JSON}`.

The format is docs/reference/flight-recorder.md. This module reads single lines, and says which
shape statistics and events have for Spark; it never writes a line.
"""

import json
from bisect import bisect_left
from typing import Any

PREFIX = b"lk1 "
CLOCK, STATISTICS, EVENT = "clock", "stats", "event"
CLOCK_MILLISECONDS_MAX = 50
"""A batch whose write begins this long after the last clock line, or later, begins with one."""

LATENCY_BOUNDS = (
    0,
    1,
    *sorted({2**power for power in range(1, 28)} | {3 * 2**power for power in range(26)}),
)
"""Upper bounds of the latency buckets in ms: 0, 1, 2, 3, 4, 6, 8, 12, … 134217728 (37 hours)."""

STARTING_EVENTS = ("start", "takeover")

COUNTERS = (
    "enqueued",
    "dequeued",
    "dispatched",
    "redelivered",
    "expired",
    "deadLettered",
    "neverWritten",
    "bytes",
    "depth",
    "consumers",
)

LINE_DDL = (
    "t string, at bigint, broker string, epoch bigint, event string, cause string, "
    f"destinations map<string, struct<{', '.join(f'{name}: bigint' for name in COUNTERS)}, "
    "latency: struct<le: array<bigint>, n: array<bigint>>>>"
)
"""The Spark type of every line's JSON; what a line does not have is null."""


def parse_line(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a recorder line, or None for any other trace text."""
    if not text.startswith(PREFIX):
        return None
    try:
        line = json.loads(text[len(PREFIX) :])
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def clock_time(text: bytes) -> int | None:
    """Return the time of a clock line in ms since the epoch, or None for any other text."""
    line = parse_line(text)
    if line is None or line.get("t") != CLOCK:
        return None
    at = line.get("at")
    return at if isinstance(at, int) else None


def bucket_below(bound: int | None) -> int:
    """Return the lower edge of the latency bucket that ends at *bound* (None: the last one)."""
    if bound is None:
        return LATENCY_BOUNDS[-1]
    index = bisect_left(LATENCY_BOUNDS, bound)
    return LATENCY_BOUNDS[index - 1] if index else 0
