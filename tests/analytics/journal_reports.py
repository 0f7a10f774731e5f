"""All reports of a journal, told by DuckDB: what the page is built from, without Spark."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockkeeper_analytics.comparison.changes import Comparison
from lockkeeper_analytics.comparison.runs import Run, run_of
from lockkeeper_analytics.page.build import Made, build_page
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.reports.report import Row
from lockkeeper_analytics.results import Read, json_of, summary_of
from lockkeeper_analytics.sql import query

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def asked(sql: str, *directories: Path, **options: str) -> list[Row]:
    """Return the rows that answer *sql*, maps as such, and sums as Spark has them: no decimals."""
    paths = json.dumps([str(each) for each in directories])
    rows: list[Row] = []
    for batch in query.run(sql, {"paths": paths, **options}):
        maps = [each.name for each in batch.schema if pa.types.is_map(each.type)]
        for row in batch.to_pylist():
            told: dict[str, Any] = {name: dict(row[name] or ()) for name in maps}
            rows.append({name: _plain(value) for name, value in {**row, **told}.items()})
    return rows


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value


def reports_of(*directories: Path, names: Iterable[str] = REPORTS) -> dict[str, list[Row]]:
    """Return the rows of reports by their names."""
    return {name: asked(f"FROM {name}_report", *directories) for name in names}


def page_of(
    tables: dict[str, list[Row]], *directories: Path, comparison: Comparison | None = None
) -> str:
    """Return the page of reports."""
    places = tuple(map(str, directories))
    return build_page(tables, Made(places, NOW, "0.1.0", comparison=comparison))


def run_behind(tables: dict[str, list[Row]], *directories: str, since: int = 0) -> Run:
    """Return the run whose reports are *tables*, as a later one finds it."""
    read = Read(directories, {"destination": ""}, since, 0, "0.1.0", NOW)
    summary = summary_of(tables, {name: len(rows) for name, rows in tables.items()}, (), read, "")
    run = run_of(json.loads(json_of(summary)))
    assert run is not None
    return run
