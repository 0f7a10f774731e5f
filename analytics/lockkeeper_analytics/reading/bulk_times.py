"""Times of records, for all of a chunk at once; see `times`."""

import numpy as np

from lockkeeper_analytics.reading.bulk import Bulk
from lockkeeper_analytics.reading.record_sizes import Numbers
from lockkeeper_analytics.reading.records import TRACE
from lockkeeper_analytics.reading.times import Known, Passed, clock_in, ends_clocks


def bulk_passed_over(bulk: Bulk, known: Known) -> Passed:
    """Return what is learnt of all records; the rules are those of `times.passed_over`."""
    count = len(bulk)
    batch = bulk["batch"]
    clocks, stops = _traces(bulk)
    times = bulk.stored_at()
    is_clocked = np.zeros(count, np.bool_)
    begins: list[int] = []
    for number, (at, _) in clocks.items():
        first, behind = np.searchsorted(batch, [number, number + 1])
        is_clocked[first:behind] = True
        times[first:behind] = at
        begins.append(int(first))
    told = (times > 0) | is_clocked
    last = np.maximum(np.maximum.accumulate(times), known.last) if count else times
    # A stretch begins with each batch that tells a time, and has that one's due.
    stretch = np.zeros(count, np.int64)
    stretch[begins] = 1
    stretch = np.cumsum(stretch)
    dues = np.array([known.due, *(due for _, due in clocks.values())], np.int64)[stretch]
    ended = np.zeros(count, np.int64)
    ended[[index for index in stops if not is_clocked[index]]] = 1
    late = (times > 0) & ~is_clocked & (last > dues)
    total = np.cumsum(ended | late)
    before_stretch = np.concatenate([[0], total])[_starts(stretch)] if count else total
    limits = np.where(is_clocked, last, np.where(total > before_stretch, 0, dues))
    due = int(dues[-1]) if count and (is_clocked[-1] or limits[-1]) else 0
    return Passed(last, limits, told, Known(int(last[-1]), due) if count else known)


def _traces(bulk: Bulk) -> tuple[dict[int, tuple[int, int]], list[int]]:
    """Return the last clock line of each batch that has one, and which traces end the clocks."""
    clocks: dict[int, tuple[int, int]] = {}
    stops: list[int] = []
    for index, record in bulk.others.items():
        if record[0] == TRACE:
            clock = clock_in(bulk.data, record)
            if clock:
                clocks[int(bulk["batch"][index])] = clock
            elif ends_clocks(bulk.data, record):
                stops.append(index)
    return clocks, stops


def _starts(stretch: Numbers) -> Numbers:
    """Return for each record where its stretch begins."""
    return np.searchsorted(stretch, stretch)
