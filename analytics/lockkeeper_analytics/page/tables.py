"""A report's table: its first rows as HTML, and the values of all for the page's script.

The script shows, sorts, searches and saves the values; `tables.js` writes cells as `cells.py` does.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from html import escape
from typing import Any

from lockkeeper_analytics.page.cells import STYLES, cell_of
from lockkeeper_analytics.page.labels import Labels
from lockkeeper_analytics.reports.report import Column, Report, Row, Unit

ROWS_MAX = 60
"""So many rows are there without a script."""
VALUES_MAX = 300_000
"""So many values of a table the page carries."""

_SPANS = (("time", "seconds"), ("period", "seconds"), ("first_at", "last_at"), ("at", "at"))
"""Columns that tell which time a row is of: from when on, and how long or until when."""

_PLACE = re.compile(r"\{~?(\w+)\}")


def table(report: Report, rows: Sequence[Row], labels: Labels) -> str:
    """Return the first of *rows* as a table, with a word on where the others are."""
    head = "".join(
        f'<th scope="col" class="{_style(column)}">{escape(column.heading)}</th>'
        for column in report.columns
    )
    cells = [(_style(column), cell_of(column, rows, labels)) for column in report.columns]
    body = "".join(
        "<tr>" + "".join(f'<td class="{style}">{cell(row)}</td>' for style, cell in cells) + "</tr>"
        for row in rows[:ROWS_MAX]
    )
    more = len(rows) - ROWS_MAX
    note = f"{more:,} more rows are in {report.name}.parquet and {report.name}.json."
    label = escape(f"{report.title}: table")
    return (
        f'<div class="table" data-table="{report.name}">'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        + (f'<p class="note more">{note}</p>' if more > 0 else "")
        + "</div>"
    )


def table_data(report: Report, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the values of *rows* for the page's script, as many as it carries."""
    if not rows:
        return {}
    names = _names(report, rows[0])
    carried = rows[: max(ROWS_MAX, VALUES_MAX // len(names))]
    return {
        "title": report.title,
        "columns": [_column(each) for each in report.columns],
        "values": {name: _packed([_plain(row[name]) for row in carried]) for name in names},
        "rows": len(carried),
        "left": len(rows) - len(carried),
        "span": next((list(each) for each in _SPANS if set(each) <= rows[0].keys()), None),
        "messages": report.messages,
        "retried": report.is_retried,
    }


def _names(report: Report, row: Row) -> list[str]:
    """Return the columns of the table, and what its cells, commands and times are told from."""
    wanted: dict[str, None] = {}
    for column in report.columns:
        for name in (column.name, *(column.bounds or ()), *(column.ends or ())):
            wanted[name] = None
        if column.unit is Unit.DESTINATION:
            wanted |= dict.fromkeys((f"{column.name}_kind", "subscription", "directory"))
    told = {"directory", "dead_letter_queue", *(name for each in _SPANS for name in each)}
    told |= set(_PLACE.findall(report.messages))
    return [name for name in row if name in wanted or name in told]


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "heading": column.heading,
        "unit": column.unit,
        "style": _style(column),
        "bar": column.bar,
        "bounds": column.bounds,
        "ends": column.ends,
    }


def _style(column: Column) -> str:
    style = STYLES.get(column.unit, "")
    return f"{style} barred" if column.bar is not None else style


def _plain(value: Any) -> Any:
    """Return *value* as JSON has it: times in ms since the epoch."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _packed(values: list[Any]) -> Any:
    """Return *values*; of few texts that come again and again, each once with its places."""
    if not all(value is None or isinstance(value, str) for value in values):
        return values
    texts = _distinct(values)
    if 2 * len(texts) > len(values):
        return values
    places = {text: place for place, text in enumerate(texts)}
    return {"of": texts, "at": [places[value] for value in values]}


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
