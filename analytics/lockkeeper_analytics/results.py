"""Results of a job for machines: each report as Parquet and JSON, and a summary of all."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from lockkeeper_analytics.agreements.breaches import Verdict
from lockkeeper_analytics.comparison.changes import Change, Comparison
from lockkeeper_analytics.comparison.runs import SUMMARY
from lockkeeper_analytics.page.labels import Tables
from lockkeeper_analytics.page.story import NEEDED, Story, span_of, tell
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.reports.report import Report, Row
from lockkeeper_analytics.spark.collected import Collected
from lockkeeper_analytics.values import values_of


@dataclass(frozen=True, slots=True)
class Read:
    """What was read: places, the options that narrow it, records; by which version, and when.

    `since` is that option in ms since the epoch, 0 without it.
    """

    directories: tuple[str, ...]
    options: Mapping[str, str]
    since: int
    records: int
    version: str
    at: datetime


def write_rows(report: Report, found: Collected, out: Path) -> list[Row]:
    """Write NAME.json to *out* with the rows that are here, and return them."""
    names = found.first.schema.names
    values = zip(*map(values_of, found.first.columns), strict=True)
    rows = [_with_maps(dict(zip(names, each, strict=True)), found.first.schema) for each in values]
    about = {**_about(report), "rows_in_all": found.rows}
    with (out / f"{report.name}.json").open("w", encoding="utf-8") as file:
        file.write(json.dumps(about, ensure_ascii=False)[:-1] + ', "rows": [')
        _write_rows(file, rows)
        file.write("]}\n")
    return rows


def summary_of(
    tables: Tables, counts: Mapping[str, int], verdicts: Sequence[Verdict], read: Read, page: str
) -> dict[str, Any]:
    """Return what a program wants to know first; the tiles where the reports behind them are.

    *counts* are the rows of each report in all, *verdicts* those on rules, if there are any.
    """
    first, last = span_of(tables)
    since = datetime.fromtimestamp(read.since / 1000, UTC) if read.since else None
    return {
        "version": read.version,
        "made_at": read.at,
        "directories": list(read.directories),
        "options": dict(read.options),
        "records": read.records,
        "first_at": first,
        "last_at": last,
        "counted_from": max(first, since) if first and since else first,
        "figures": _figures(tell(tables)) if all(name in tables for name in NEEDED) else None,
        "rules": list(map(_judged, verdicts)),
        "page": page,
        "reports": [_counted(REPORTS[name], counts[name]) for name in tables],
    }


def write_summary(summary: Mapping[str, Any], comparison: Comparison | None, out: Path) -> Path:
    """Write a summary, and what changed since a former run, to *out*."""
    path = out / SUMMARY
    told = {**summary, "beside": _compared(comparison) if comparison else None}
    path.write_text(json_of(told) + "\n", "utf-8")
    return path


def json_of(summary: Mapping[str, Any]) -> str:
    """Return a summary as JSON."""
    return json.dumps(summary, default=as_json, ensure_ascii=False, indent=2)


def as_json(value: object) -> str:
    """Return *value*, which JSON has no form for, as text: times in UTC to the ms."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)


def _write_rows(file: TextIO, rows: Iterable[Row]) -> None:
    for text in _separated(json.dumps(row, default=as_json, ensure_ascii=False) for row in rows):
        file.write(text)


def _separated(texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f",\n{text}" if number else f"\n{text}"


def _with_maps(row: Row, schema: pa.Schema) -> Row:
    """Return *row* with its maps as such: Arrow gives lists of pairs."""
    maps = [field.name for field in schema if pa.types.is_map(field.type)]
    return {**row, **{name: dict(row[name]) for name in maps if row[name] is not None}}


def _about(report: Report) -> dict[str, Any]:
    return {"name": report.name, "title": report.title, "question": report.question}


def _counted(report: Report, rows: int) -> dict[str, Any]:
    files = {"parquet": f"{report.name}.parquet", "json": f"{report.name}.json"}
    return {**_about(report), "rows": rows, **files}


def _judged(verdict: Verdict) -> dict[str, Any]:
    """Return a rule with its longest breaches; `worst` is in ms, messages, a share or a second."""
    breaches = [asdict(each) for each in verdict.breaches]
    kept, in_all = verdict.is_kept, verdict.in_all
    return {"rule": verdict.rule.text, "kept": kept, "breaches": in_all, "longest": breaches}


def _compared(comparison: Comparison) -> dict[str, Any]:
    """Return a former run and the figures of both; an hour's, where their times are not alike."""
    former = comparison.former
    return {
        "made_at": former.made_at,
        "directories": list(former.directories),
        "destination": former.destination,
        "counted_from": former.begins,
        "last_at": former.ends,
        "figures": {each.figure.name: _changed(each) for each in comparison.changes},
    }


def _changed(change: Change) -> dict[str, Any]:
    rates = change.rates
    return {
        "former": change.former,
        "now": change.now,
        "an_hour": None if rates is None else {"former": rates[0], "now": rates[1]},
        "difference": change.difference,
        "share": change.share,
        "direction": change.direction,
        "worse": change.is_worse,
    }


def _figures(story: Story) -> dict[str, Any]:
    """Return the tiles' figures by their names; counts are messages."""
    return {
        "sent": story.sent,
        "acknowledged": story.acknowledged,
        "dead_lettered": story.dead_lettered,
        "waiting": story.waiting,
        "waiting_dead_letters": story.waiting_letters,
        "in_doubt": story.in_doubt,
        "redelivered": story.redelivered,
        "takeovers": story.takeovers,
        "longest_silence_ms": story.longest_silence_ms,
        "oldest_waiting_at": story.oldest_waiting,
        "peak_per_second": round(story.peak_per_second, 2),
    }
