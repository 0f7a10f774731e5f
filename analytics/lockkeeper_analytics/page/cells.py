"""The cells of tables: a value and its unit to HTML, every text escaped."""

from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from math import log10
from typing import Any

from lockkeeper_analytics.page import text
from lockkeeper_analytics.page.labels import Labels
from lockkeeper_analytics.reports.report import TONES, Column, Row, Unit

Cell = Callable[[Row], str]

CAUSE_CHARACTERS = 240
LIST_MAX = 4
LISTED_MAX = 40
"""So many of a list are in its hint."""
_JAVA_CLASS = ("java.lang.Throwable: ", "java.lang.Exception: ")
_FIGURES: dict[Unit, Callable[[Any], str]] = {
    Unit.COUNT: text.count,
    Unit.DECIMAL: text.decimal,
    Unit.SHARE: lambda value: text.UNKNOWN if value is None else text.share(value, 1),
    Unit.BYTES: text.size,
    Unit.MILLISECONDS: text.milliseconds,
}
STYLES = {
    Unit.CODE: "id",
    Unit.CAUSE: "cause",
    Unit.LIST: "cause",
    Unit.DESTINATION: "name",
    Unit.RANGE: "wide",
    Unit.TIME: "number",
    **dict.fromkeys(_FIGURES, "number"),
}
"""The class of a cell of each unit."""


def cell_of(column: Column, rows: Sequence[Row], labels: Labels) -> Cell:
    """Return what writes *column* of a row; *rows* are all, for the scale of bars and ranges."""
    if column.unit is Unit.DESTINATION:
        return lambda row: _destination(row, column.name, labels)
    if column.unit is Unit.RANGE:
        return _range(column, rows)
    if column.bar is not None:
        return _bar(column, rows)
    if column.unit in _FIGURES:
        return lambda row: _bounded(column, row)
    write = _WORDS[column.unit]
    return lambda row: text.UNKNOWN if row[column.name] is None else write(row[column.name])


def _destination(row: Row, name: str, labels: Labels) -> str:
    if row[name] is None:
        return text.UNKNOWN
    shown = escape(row[name] + labels.get(row.get("directory", ""), ""))
    subscription = row.get("subscription")
    if subscription:
        shown += f' <span class="of">to {escape(subscription)}</span>'
    kind = escape(row.get(f"{name}_kind") or "")
    badge = f'<span class="kind {kind}">{kind}</span>' if kind else ""
    return f'<span title="{escape(row[name])}">{badge}{shown}</span>'


def _figure(column: Column, row: Row) -> str:
    value = row[column.name]
    shown = _FIGURES[column.unit](value)
    return shown if value else f"<i>{shown}</i>"


def _bounded(column: Column, row: Row) -> str:
    shown = _figure(column, row)
    low, high = (row[name] for name in column.bounds) if column.bounds else (None, None)
    if low is None or high is None:
        return shown
    write = _FIGURES[column.unit]
    return f'<span title="between {write(low)} and {write(high)}">{shown}</span>'


def _bar(column: Column, rows: Sequence[Row]) -> Cell:
    highest = max((row[column.name] or 0 for row in rows), default=0) or 1

    def cell(row: Row) -> str:
        width = max(0.0, 100 * (row[column.name] or 0) / highest)
        return (
            f'<span class="measure"><span class="bar tone-{column.bar}">'
            f'<b style="width:{width:.1f}%"></b></span><span>{_figure(column, row)}</span></span>'
        )

    return cell


def _range(column: Column, rows: Sequence[Row]) -> Cell:
    names = (column.name, *(column.ends or ()))
    highest = max([10.0, *(row[name] or 0.0 for row in rows for name in names)])

    def place(value: float) -> float:
        return 100 * log10(1 + max(0.0, value)) / log10(1 + highest)

    def cell(row: Row) -> str:
        if any(row[name] is None for name in names):
            return text.UNKNOWN
        middle, high, top = (place(row[name]) for name in names)
        return (
            '<span class="range">'
            f'<b class="far" style="left:{high:.1f}%;width:{top - high:.1f}%"></b>'
            f'<b style="left:{middle:.1f}%;width:{high - middle:.1f}%"></b>'
            f'<i style="left:{middle:.1f}%"></i></span>'
        )

    return cell


def _cause(value: str) -> str:
    for prefix in _JAVA_CLASS:
        value = value.removeprefix(prefix)
    if len(value) <= CAUSE_CHARACTERS:
        return escape(value)
    return f'<span title="{escape(value)}">{escape(value[:CAUSE_CHARACTERS])}…</span>'


def _code(value: Any) -> str:
    shown = escape(str(value))
    return f'<code title="{shown}">{shown}</code>'


def _badge(value: str) -> str:
    return f'<span class="badge tone-{TONES.get(value, "gone")}">{escape(value)}</span>'


def _flag(value: bool) -> str:
    return "yes" if value else ""


def _list(values: Any) -> str:
    is_map = isinstance(values, dict)
    shown = [f"{name} {number:,}" for name, number in values.items()] if is_map else values
    words = ", ".join(map(str, shown[:LIST_MAX]))
    more = len(shown) - LIST_MAX
    if more <= 0:
        return escape(words)
    whole = ", ".join(map(str, shown[:LISTED_MAX]))
    return f'<span title="{escape(whole)}">{escape(words)} and {more:,} more</span>'


def _time(value: datetime) -> str:
    return f'<span title="{text.moment(value)} UTC">{text.short(value)}</span>'


_WORDS: dict[Unit, Callable[[Any], str]] = {
    Unit.TEXT: lambda value: escape(str(value).replace("_", " ")),
    Unit.CODE: _code,
    Unit.CAUSE: _cause,
    Unit.BADGE: _badge,
    Unit.FLAG: _flag,
    Unit.LIST: _list,
    Unit.TIME: _time,
}
