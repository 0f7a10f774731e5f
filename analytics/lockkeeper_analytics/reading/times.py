"""When was a record written? Bounds from the times that the journal holds around it.

Two kinds of records tell a time: an add was written no earlier than its brokerInTime, and a
flight recorder's clock line says when its batch was. A record between two such times was
written between them. While clock lines come, no batch is written later than the next one is
due; that is over at a trace of any broker's start or
stop, or when a later time is met. All times are in ms since the epoch.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lockkeeper.journal.errors import JournalError
from lockkeeper.journal.walk import ADD, QuickRecord, walk_batch
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper_analytics.reading.batches import Chunk, batch_offsets, read_chunks
from lockkeeper_analytics.reading.frames import stored_time
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.recorder import (
    STARTING_EVENTS,
    STOPPING_EVENT,
    parse_clock,
    parse_line,
)
from lockkeeper_analytics.reading.records import TRACE, complete

LOOK_BYTES = 64 * 1024


class Known(NamedTuple):
    """The latest time known at a place, and when the next clock line is due, if one is."""

    last: int = 0
    due: int = 0


class Bounds(NamedTuple):
    """Per record, when it was written at the earliest and at the latest; 0 for not known."""

    after: list[int]
    before: list[int]


def time_of(data: bytes, record: QuickRecord) -> int:
    """Return the time that *record* itself tells, 0 for none."""
    if record[0] == ADD:
        try:
            return stored_time(data, record[5] + 4, record[5] + record[6])
        except (MalformedMessageError, IndexError):
            return 0
    if record[0] == TRACE:
        clock = parse_clock(_text(data, record))
        return clock[0] if clock else 0
    return 0


def bounds_of(
    data: bytes, batches: Sequence[Sequence[QuickRecord]], known: Known, following: int
) -> tuple[Bounds, Known]:
    """Return the bounds of all records of *batches*, and what is known behind them.

    *known* is what is known before the first, *following* the next time behind the last.
    """
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
                time = time_of(data, record)
                last = max(last, time)
                if last > due:
                    due = 0
            elif record[0] == TRACE and ends_clocks(data, record):
                due = 0
            after.append(last)
            limits.append(due)
            told.append(time > 0)
    return Bounds(after, _before(after, limits, told, following)), Known(last, due)


def _before(after: list[int], limits: list[int], told: list[bool], following: int) -> list[int]:
    before = limits
    for index in range(len(after) - 1, -1, -1):
        limit = limits[index]
        latest = max(following, after[index]) if following else 0
        before[index] = min(latest, limit) if latest and limit else latest or limit
        if told[index]:
            following = after[index]
    return before


def _clock_of(data: bytes, batch: Sequence[QuickRecord]) -> tuple[int, int] | None:
    """Return what the last clock line of a batch says: an earlier one has waited for it."""
    for record in reversed(batch):
        if record[0] == TRACE and (clock := clock_in(data, record)):
            return clock
    return None


def clock_in(data: bytes, trace: QuickRecord) -> tuple[int, int] | None:
    """Return the time of a trace that is a clock line, and when the next is due, in ms."""
    return parse_clock(_text(data, trace))


def ends_clocks(data: bytes, record: QuickRecord) -> bool:
    """Tell whether a trace says that another broker, or none, writes from here on."""
    line = parse_line(_text(data, record))
    return line is None or line.get("event") in (*STARTING_EVENTS, STOPPING_EVENT)


def _text(data: bytes, record: QuickRecord) -> bytes:
    return data[record[5] : record[5] + record[6]]


def following_time(part: Part, position: int) -> int:
    """Return the first time told from *position* of the part's file on, 0 for none near."""
    for number, path in enumerate((part.path, *part.behind)):
        try:
            for chunk in read_chunks(
                path, 0 if number else position, skip_corrupt=True, chunk_bytes=LOOK_BYTES
            ):
                for start, end in chunk.batches:
                    times = _times(chunk, start, end)
                    if times:
                        return times[0]
        except OSError:
            continue
    return 0


def preceding_known(part: Part) -> Known:
    """Return what is known where *part* begins, from the last batches that tell a time."""
    for number, path in enumerate((part.path, *part.before)):
        if number == 0 and part.start == 0:
            continue
        try:
            known = _last_known(path, part.start if number == 0 else None)
        except OSError:
            continue
        if known.last:
            return known
    return Known()


def _last_known(path: str, end: int | None) -> Known:
    offsets = batch_offsets(path, end)
    for index in range(len(offsets) - 1, -1, -1):
        stop = offsets[index] + 1
        for chunk in read_chunks(path, offsets[index], stop, True, LOOK_BYTES):
            start, end_ = chunk.batches[0]
            records = _walk(chunk, start, end_)
            known = bounds_of(chunk.data, [records], Known(), 0)[1]
            if known.last:
                return known
    return Known()


def _times(chunk: Chunk, start: int, end: int) -> list[int]:
    return [time for record in _walk(chunk, start, end) if (time := time_of(chunk.data, record))]


def _walk(chunk: Chunk, start: int, end: int) -> list[QuickRecord]:
    """Return the records of one batch; none when one of them is damaged."""
    try:
        walked = walk_batch(chunk.data, start, end)
        return [record if record[0] == ADD else _located(chunk.data, record) for record in walked]
    except JournalError:
        return []


def _located(data: bytes, record: QuickRecord) -> QuickRecord:
    return complete(data, record, "", 0) if record[0] == TRACE else record
