"""Filters of a query that spare reading: on destination, stream, kind, time and file.

Spark applies every filter again, so a filter here may keep more rows than it says, never fewer.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper_analytics.reading.asked import Pattern, ReadOptions
from lockkeeper_analytics.tables import TABLES

_OF_STREAMS = ("stream_messages", "stream_offsets", "declared_streams")
PARTED = ("records", "events", "statistics", *_OF_STREAMS)
"""Tables that are read part by part: of these, rows do not depend on what stands before them."""

_TIMES = {
    **dict.fromkeys(("records", "stream_messages"), ("written_after", "written_before")),
    **dict.fromkeys(("events", "statistics"), ("at",)),
    **dict.fromkeys(("stream_offsets", "declared_streams"), ("written_at",)),
}


def narrowed(options: ReadOptions, filters: Iterable[Filter]) -> ReadOptions:
    """Return *options* that leave out what all *filters* together leave out, or less."""
    for each in filters:
        name = each.attribute[0] if len(getattr(each, "attribute", ())) == 1 else ""
        values = _values(each)
        if name == "destination" and values:
            options = _destinations(options, values)
        elif options.table not in PARTED:
            continue
        elif name == "stream" and values and options.table in _OF_STREAMS:
            options = _streams(options, values)
        elif name == "partition" and values and options.table in _OF_STREAMS:
            numbers = frozenset(values)
            both = numbers & options.partitions if options.partitions else numbers
            options = replace(options, partitions=both or options.partitions)
        elif name == "kind" and values and options.table == "records":
            kinds = frozenset(values)
            options = replace(options, kinds=kinds & options.kinds if options.kinds else kinds)
        elif name == "file_id":
            options = _files(options, each, values)
        elif name in _TIMES[options.table]:
            options = _times(options, each)
    return options


def _values(each: Filter) -> list[Any]:
    """Return what the filter's column may be; nothing: it does not list that."""
    if isinstance(each, EqualTo | EqualNullSafe):
        return [] if each.value is None else [each.value]
    return [value for value in each.value if value is not None] if isinstance(each, In) else []


def _destinations(options: ReadOptions, names: list[Any]) -> ReadOptions:
    # An event names its destinations by URL, and may name several.
    if options.destinations or options.table == "events":
        return options
    if not TABLES[options.table].has_destinations:
        return options
    patterns = tuple(Pattern(None, tuple(str(name).split("."))) for name in names)
    return replace(options, destinations=patterns)


def _streams(options: ReadOptions, names: list[Any]) -> ReadOptions:
    if options.destinations:
        return options
    patterns = tuple(Pattern(None, tuple(str(name).split(".")), is_stream=True) for name in names)
    return replace(options, destinations=patterns)


def _files(options: ReadOptions, each: Filter, values: list[Any]) -> ReadOptions:
    first, last = options.files
    if values:
        first, last = max(first, min(values)), min(last, max(values))
    elif isinstance(each, GreaterThan | GreaterThanOrEqual):
        first = max(first, each.value)
    elif isinstance(each, LessThan | LessThanOrEqual):
        last = min(last, each.value)
    return replace(options, files=(max(first, 0), min(last, FILE_ID_MAX)))


def _times(options: ReadOptions, each: Filter) -> ReadOptions:
    """A record lies between its two times: what bounds one of them from afar bounds both."""
    if isinstance(each, GreaterThan | GreaterThanOrEqual):
        return replace(options, since=max(options.since, _milliseconds(each.value)))
    if isinstance(each, LessThan | LessThanOrEqual):
        latest = _milliseconds(each.value) + 1
        return replace(options, at_most=min(options.at_most or latest, latest))
    return options


def _milliseconds(moment: Any) -> int:
    if not isinstance(moment, datetime):
        return 0
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0, int(known.timestamp() * 1000))
