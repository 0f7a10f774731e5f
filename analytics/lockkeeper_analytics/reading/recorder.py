"""The flight recorder's lines: trace records whose text is `lk1 {compact JSON}`.

The format is docs/reference/flight-recorder.md. This module reads single lines, and says which
shape statistics and events have for Spark; it never writes a line.
"""

import json
from typing import Any

from lockkeeper.journal.counters import COUNTERS

PREFIX = b"lk1 "
CLOCK, STATISTICS, EVENT = "clock", "stats", "event"
CLOCK_MILLISECONDS = 50
"""A batch with records of its own, written so long after the last clock line or later, carries
one; a clock line that says `every` names another interval."""
CLOCK_MAX = 2**53
"""Numbers beyond, which JSON does not hold exactly, are no times of a clock."""

STARTING_EVENTS = ("start", "takeover")
STOPPING_EVENT = "stop"
LIFE_EVENTS = (*STARTING_EVENTS, STOPPING_EVENT)

FIGURES = (*(counter.json_name for counter in COUNTERS), "depth", "consumers")
"""The numbers of a destination in a statistics line."""

LINE_DDL = (
    "t string, at bigint, broker string, replica string, epoch bigint, event string, "
    "cause string, "
    f"destinations map<string, struct<{', '.join(f'{name}: bigint' for name in FIGURES)}, "
    "latency: struct<le: array<bigint>, n: array<bigint>>>>"
)
"""The Spark type of every line's JSON; what a line does not have is null."""


def parse_line(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a recorder line, or None for any other trace text."""
    if not text.startswith(PREFIX):
        return None
    try:
        line = json.loads(text[len(PREFIX) :])
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def parse_clock(text: bytes) -> tuple[int, int] | None:
    """Return the time of a clock line and when the next is due, in ms; None for other text."""
    line = parse_line(text)
    if line is None or line.get("t") != CLOCK:
        return None
    at, every = line.get("at"), line.get("every", CLOCK_MILLISECONDS)
    if not isinstance(at, int) or not isinstance(every, int):
        return None
    return (at, at + every) if 0 <= at <= CLOCK_MAX and 0 <= every <= CLOCK_MAX else None
