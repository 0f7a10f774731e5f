"""Breaches of rules, from the Parquet files of reports: all their rows, whatever a page shows.

A breach goes on from cell to cell of time until one says otherwise: where nothing is told, as of
times to acknowledgement when nothing is acknowledged, nothing says so. Its last cell that is over
the limit ends it. Only where messages are counted in a time, nothing told is none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb

from lockkeeper_analytics.agreements.rules import TIMES, Rule
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.narrowing import Narrowing
from lockkeeper_analytics.reports.sources import TRUSTED_SHARE
from lockkeeper_analytics.tables.database import MEMORY_LIMIT, database, quoted

BREACHES_MAX = 100
"""So many of a rule are told one by one, the longest first."""

_GLOB_SIGNS = re.compile(r"[\[*?{]")
_KEY = "directory, destination_kind, destination, subscription"
_LATENCY = f"""
SELECT directory, destination_kind, destination, CAST(NULL AS VARCHAR) AS subscription, time,
    seconds, {{column}} AS value
FROM (
    SELECT told.*,
        sum(acknowledged) FILTER (WHERE source = 'records') OVER each AS recorded,
        sum(acknowledged) FILTER (WHERE source = 'statistics') OVER each AS counted
    FROM {{latency_over_time}} told
    WINDOW each AS (PARTITION BY directory, destination_kind, destination)
)
WHERE source = CASE WHEN recorded > 0 AND recorded >= {TRUSTED_SHARE} * coalesce(counted, 0)
    THEN 'records' ELSE 'statistics' END"""
_WAITING = f"""
SELECT {_KEY}, time, seconds, coalesce({{column}}, 0) AS value, is_dead_letter_queue
FROM {{backlog_over_time}}"""
_DEAD = """
SELECT directory, destination_kind, destination, CAST(NULL AS VARCHAR) AS subscription, time,
    seconds, {column} AS value FROM {rates}"""
_CELLS = {
    "p50": (_LATENCY, "p50_ms"),
    "p99": (_LATENCY, "p99_ms"),
    "lag": (_WAITING, "oldest_ms"),
    "backlog": (_WAITING, "waiting"),
}
_SHARE = "dead_lettered / nullif(greatest(dequeued, dead_lettered), 0)"
_RATE = "dead_lettered / seconds"
_BREACHES = """
WITH cells AS ({cells}),
judged AS (
    SELECT cells.*, value {sign} {limit} AS is_over,
        {is_counted} AND time > lag(time) OVER each + seconds * INTERVAL '1' SECOND AS is_after_none
    FROM cells WHERE value IS NOT NULL AND time IS NOT NULL AND ({where})
    WINDOW each AS (PARTITION BY {key} ORDER BY time)
),
marked AS (
    SELECT judged.*, sum(CASE WHEN is_over AND is_after_none IS NOT true THEN 0 ELSE 1 END) OVER (
        PARTITION BY {key} ORDER BY time) AS calm
    FROM judged
),
spans AS (
    SELECT {key}, min(time) AS begins, max(time + seconds * INTERVAL '1' SECOND) AS ends,
        max(value) AS worst
    FROM marked WHERE is_over GROUP BY {key}, calm
)
SELECT {key}, begins, ends, worst, count(*) OVER () AS in_all FROM spans
WHERE epoch(ends) - epoch(begins) >= {seconds}
ORDER BY epoch(ends) - epoch(begins) DESC, worst DESC, {key}, begins LIMIT {most}"""


@dataclass(frozen=True, slots=True)
class Breach:
    """A time, in UTC, for which a destination was over the limit; *worst* in the rule's unit."""

    directory: str
    destination_kind: str
    destination: str
    subscription: str | None
    begins: datetime
    ends: datetime
    worst: float

    @property
    def milliseconds(self) -> float:
        """How long it lasted."""
        return (self.ends - self.begins).total_seconds() * 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rule with its longest breaches, and how many there are in all."""

    rule: Rule
    breaches: tuple[Breach, ...]
    in_all: int

    @property
    def is_kept(self) -> bool:
        """Whether nothing broke the rule."""
        return not self.in_all


def verdicts_of(
    rules: Sequence[Rule], reports: Path, memory_limit: str = MEMORY_LIMIT
) -> tuple[Verdict, ...]:
    """Hold *rules* against the Parquet files in *reports*; raises AnalyticsError."""
    try:
        with database(memory_limit, None) as told:
            return tuple(_verdict(rule, reports, told.connection) for rule in rules)
    except duckdb.Error as error:
        raise AnalyticsError(f"rules: {error}") from error


def _verdict(rule: Rule, reports: Path, connection: duckdb.DuckDBPyConnection) -> Verdict:
    found = connection.sql(_question(rule, reports)).to_arrow_table().to_pylist()
    in_all = found[0]["in_all"] if found else 0
    fields = Breach.__dataclass_fields__
    breaches = (Breach(**{name: row[name] for name in fields}) for row in found)
    return Verdict(rule, tuple(breaches), in_all)


def _question(rule: Rule, reports: Path) -> str:
    names = ("latency_over_time", "backlog_over_time", "rates")
    # DuckDB reads patterns of paths, where a sign in brackets is that sign.
    folder = _GLOB_SIGNS.sub(r"[\g<0>]", str(reports))
    files = {name: f"read_parquet({quoted(f'{folder}/{name}.parquet')})" for name in names}
    text, column = _CELLS.get(rule.measure, (_DEAD, _SHARE if rule.is_share else _RATE))
    where = "true"
    if rule.destinations:
        pattern = quoted(Narrowing(rule.destinations).url_pattern)
        where = f"regexp_like(destination_kind || '://' || destination, {pattern})"
    elif text == _WAITING:
        where = "NOT is_dead_letter_queue"
    return _BREACHES.format(
        cells=text.format(column=column, **files),
        key=_KEY,
        sign=">=" if rule.is_included else ">",
        limit=rule.limit,
        where=where,
        is_counted=str(rule.is_counted).lower(),
        seconds=rule.seconds,
        most=BREACHES_MAX,
    )


def told_value(rule: Rule, value: float) -> str:
    """Return a value of the rule's measure for people."""
    if rule.measure in TIMES:
        return f"{value / 1000:,.3g} s"
    if rule.measure == "backlog":
        return f"{value:,.0f} messages"
    return f"{100 * value:.3g} %" if rule.is_share else f"{60 * value:.3g} a minute"


def told(verdict: Verdict) -> str:
    """Return what broke a rule, in a line."""
    worst = verdict.breaches[0]
    place = worst.destination + (f" to {worst.subscription}" if worst.subscription else "")
    more = f", and {verdict.in_all - 1:,} more" if verdict.in_all > 1 else ""
    lasted = f"{worst.milliseconds / 1000:,.0f} s from {worst.begins:%Y-%m-%dT%H:%M:%SZ} on"
    value = told_value(verdict.rule, worst.worst)
    return f"{verdict.rule.text}: {place} for {lasted}, up to {value}{more}"
