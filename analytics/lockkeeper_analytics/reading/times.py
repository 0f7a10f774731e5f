"""Time bounds of records, from the times that the journal holds around them.

Two kinds of records tell a time: an add was written no earlier than its brokerInTime, and a
flight recorder's clock line says when its batch was. A record between two such times was
written between them. While clock lines come, no batch is written later than the next one is
due; that is over at a trace of any broker's start or stop, or when a later time is met.

A journal is passed over once, forwards. What is told of its records does not depend on how it is
cut: what is known before a cut is handed on, and what follows it is waited for (`edges`). All
times are in ms since the epoch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lockkeeper.journal.walk import ADD, QuickRecord
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper_analytics.reading.bulk import Flags
from lockkeeper_analytics.reading.frames import stored_time
from lockkeeper_analytics.reading.record_sizes import Numbers
from lockkeeper_analytics.reading.recorder import (
    STARTING_EVENTS,
    STOPPING_EVENT,
    parse_clock,
    parse_line,
)
from lockkeeper_analytics.reading.records import TRACE


class Known(NamedTuple):
    """The latest time known at a place, and when the next clock line is due, if one is."""

    last: int = 0
    due: int = 0


class Bounds(NamedTuple):
    """Per record, when it was written at the earliest and at the latest; 0 for not known."""

    after: Numbers
    before: Numbers


class Passed(NamedTuple):
    """What was learnt of each record on the way to it, and what is known behind the last.

    `after` is when it was written at the earliest, `limits` when at the latest by the clock that
    is kept (0: by none), and `told` says whether the record, or its batch, tells a time itself.
    """

    after: Numbers
    limits: Numbers
    told: Flags
    known: Known

    @property
    def first_told(self) -> int:
        """The first time that is told here, 0: none is."""
        return int(self.after[np.argmax(self.told)]) if self.told.any() else 0

    @property
    def is_settled(self) -> bool:
        """Tell whether no time behind the last record could say more of these."""
        return not len(self.told) or bool(0 < self.after[-1] == self.limits[-1])

    def bounds(self, following: int) -> Bounds:
        """Return the bounds of the records, *following* being the next time behind them."""
        count = len(self.told)
        # The index of the next record behind each that tells a time; `count` for none.
        places = np.append(np.where(self.told, np.arange(count), count), count)
        nearest = np.minimum.accumulate(places[::-1])[::-1][1:]
        behind = np.maximum(self.after, following) if following else np.zeros(count, np.int64)
        within = np.append(self.after, 0)[nearest]
        latest = np.where(nearest < count, within, behind)
        both = np.minimum(latest, self.limits)
        is_limited = (latest > 0) & (self.limits > 0)
        return Bounds(self.after, np.where(is_limited, both, np.maximum(latest, self.limits)))


def passed_over(data: bytes, batches: Sequence[Sequence[QuickRecord]], known: Known) -> Passed:
    """Return what is learnt of all records of *batches*, one by one; *known* is before them."""
    after: list[int] = []
    limits: list[int] = []
    told: list[bool] = []
    last, due = known
    for batch in batches:
        clock = _clock_of(data, batch)
        if clock:
            last, due = max(last, clock[0]), clock[1]
            size = len(batch)
            after += [last] * size
            limits += [last] * size
            told += [True] * size
            continue
        for record in batch:
            time = 0
            if record[0] == ADD:
                time = _time_of(data, record)
                last = max(last, time)
                if last > due:
                    due = 0
            elif record[0] == TRACE and ends_clocks(data, record):
                due = 0
            after.append(last)
            limits.append(due)
            told.append(time > 0)
    flags = np.array(told, np.bool_)
    return Passed(np.array(after, np.int64), np.array(limits, np.int64), flags, Known(last, due))


def clock_in(data: bytes, trace: QuickRecord) -> tuple[int, int] | None:
    """Return the time of a trace that is a clock line, and when the next is due, in ms."""
    return parse_clock(_text(data, trace))


def ends_clocks(data: bytes, record: QuickRecord) -> bool:
    """Tell whether a trace says that another broker, or none, writes from here on."""
    line = parse_line(_text(data, record))
    return line is None or line.get("event") in (*STARTING_EVENTS, STOPPING_EVENT)


def _time_of(data: bytes, add: QuickRecord) -> int:
    try:
        return stored_time(data, add[5] + 4, add[5] + add[6])
    except (MalformedMessageError, IndexError):
        return 0


def _clock_of(data: bytes, batch: Sequence[QuickRecord]) -> tuple[int, int] | None:
    """Return what the last clock line of a batch says: an earlier one has waited for it."""
    for record in reversed(batch):
        if record[0] == TRACE and (clock := clock_in(data, record)):
            return clock
    return None


def _text(data: bytes, record: QuickRecord) -> bytes:
    return data[record[5] : record[5] + record[6]]
