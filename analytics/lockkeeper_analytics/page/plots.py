"""The data of the plots, as compact as the page can carry it: a JSON object for each report."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from lockkeeper_analytics.page.labels import Key, Labels, name_of
from lockkeeper_analytics.reports.report import Bars, Heat, Lines, Plot, Report, Row

VALUES_MAX = 20_000
"""So many values a plot carries; of lines to choose from the first ones, all count in the sum."""
BARS_MAX = 12
DOWN_MAX = 24
"""So many rows of fields there are, those with the most."""

Values = list[float | None]
_TOGETHER: dict[str, Callable[[Sequence[float]], float]] = {"sum": sum, "max": max}


@dataclass(frozen=True, slots=True)
class Extent:
    """The cells of time that all plots of lines have: so what is at one time stands below it."""

    start: int
    """In ms since the epoch, as is the end, where the last cell begins."""
    end: int
    seconds: int

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return (self.end - self.start) // (1000 * self.seconds) + 1


def extent_of(rows: Iterable[Row]) -> Extent | None:
    """Return the cells that span *rows*, those of the plots of lines; None without a time."""
    timed = [row for row in rows if row["time"] is not None]
    if not timed:
        return None
    times = [_ms(row["time"]) for row in timed]
    return Extent(min(times), max(times), timed[0]["seconds"])


def plot_name(report: Report, number: int) -> str:
    """Return the name of a plot of *report* among those of the page."""
    return f"{report.name}-{number}" if number else report.name


def plot_data(
    plot: Plot, rows: Sequence[Row], labels: Labels, apart: set[Key], extent: Extent | None
) -> dict[str, Any] | None:
    """Return what the page's script draws for *plot*; None where there is nothing to draw.

    *apart* are destinations that no sum counts: dead letters were counted where they were sent.
    """
    if not rows:
        return None
    if isinstance(plot, Lines):
        return _lines(plot, rows, labels, apart, extent) if extent is not None else None
    if isinstance(plot, Bars):
        return _bars(plot, rows, labels)
    return _heat(plot, rows, labels)


def marks(events: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the events to mark; `since` is the last sign of life before one, for its silence."""
    return [
        {
            "at": _ms(row["at"]),
            "event": row["event"],
            "since": _ms(row["last_known_at"] or row["at"]),
        }
        for row in events
        if row["event"] != "start" or row["last_known_at"]
    ]


def _lines(
    plot: Lines, rows: Sequence[Row], labels: Labels, apart: set[Key], extent: Extent
) -> dict[str, Any]:
    timed = [row for row in rows if row["time"] is not None]
    grid = _Grid(plot, extent)
    by_name: dict[str, list[Row]] = {}
    for row in timed:
        by_name.setdefault(name_of(row, plot.each, labels), []).append(row)
    busiest = sorted(by_name, key=lambda name: -_weight(plot, by_name[name]))
    room = max(1, VALUES_MAX // (extent.cells * len(plot.values)))
    series = [{"label": name, "values": grid.of(by_name[name])} for name in busiest[:room]]
    if plot.together and len(by_name) > 1:
        counted = [row for row in timed if not _is_apart(row, apart)]
        series.insert(0, {"label": plot.all_of, "values": grid.of(counted or timed)})
    return {
        "kind": "lines",
        **_values_of(plot.values),
        "unit": plot.unit,
        "axis": plot.axis,
        "rate": plot.is_rate,
        "logarithmic": plot.logarithmic,
        "start": extent.start,
        "step": 1000 * extent.seconds,
        "cells": extent.cells,
        "series": series,
        "together": plot.together,
        "more": len(by_name) - len(busiest[:room]),
    }


class _Grid:
    """Puts the values of rows into cells of time."""

    def __init__(self, plot: Lines, extent: Extent) -> None:
        self.plot, self.extent = plot, extent
        self.step = 1000 * extent.seconds
        self.divisor = extent.seconds if plot.is_rate else 1

    def of(self, rows: Sequence[Row]) -> list[Values]:
        """Return the values of each line; counts are 0 where there is no row, others null."""
        found: list[Values] = []
        for series in self.plot.values:
            cells: dict[int, list[float]] = {}
            for row in rows:
                if row[series.column] is not None:
                    cell = (_ms(row["time"]) - self.extent.start) // self.step
                    cells.setdefault(cell, []).append(row[series.column])
            found.append([self._value(cells.get(cell)) for cell in range(self.extent.cells)])
        return found

    def _value(self, values: list[float] | None) -> float | None:
        if values is None:
            return 0 if self.plot.is_rate else None
        return _rounded(_TOGETHER[self.plot.together or "sum"](values) / self.divisor)


def _weight(plot: Lines, rows: Sequence[Row]) -> float:
    return sum(row[plot.values[0].column] or 0 for row in rows)


def _is_apart(row: Mapping[str, Any], apart: set[Key]) -> bool:
    key = row.get("directory"), row.get("destination_kind"), row.get("destination")
    return key in apart


def _bars(plot: Bars, rows: Sequence[Row], labels: Labels) -> dict[str, Any]:
    shown = rows if plot.upright else rows[:BARS_MAX]
    return {
        "kind": "bars",
        **_values_of(plot.values),
        "unit": plot.unit,
        "axis": plot.axis,
        "steps": plot.steps,
        "upright": plot.upright,
        "more": len(rows) - len(shown),
        "labels": [name_of(row, plot.names, labels) for row in shown],
        "values": [[_rounded(row[each.column]) for row in shown] for each in plot.values],
    }


def _heat(plot: Heat, rows: Sequence[Row], labels: Labels) -> dict[str, Any]:
    names = [name_of(row, plot.down, labels) for row in rows]
    sums: dict[str, float] = dict.fromkeys(names, 0)
    for name, row in zip(names, rows, strict=True):
        sums[name] += row[plot.value] or 0
    most = set(sorted(sums, key=lambda name: -sums[name])[:DOWN_MAX])
    shown = [(name, row) for name, row in zip(names, rows, strict=True) if name in most]
    across = list(dict.fromkeys(str(row[plot.across]) for _, row in shown))
    down = list(dict.fromkeys(name for name, _ in shown))
    fields = [
        [across.index(str(row[plot.across])), down.index(name), _rounded(row[plot.value])]
        for name, row in shown
    ]
    return {
        "kind": "heat",
        "unit": plot.unit,
        "axis": plot.axis,
        "acrossAxis": plot.across_axis,
        "downAxis": plot.down_axis,
        "more": len(sums) - len(down),
        "across": across,
        "down": down,
        "fields": fields,
    }


def _values_of(values: Sequence[Any]) -> dict[str, Any]:
    """Return the names and colours of lines or bars; `floor` is the place of another line."""
    columns = [each.column for each in values]
    lines = [asdict(each) for each in values]
    for line in lines:
        floor = line.pop("floor")
        line["floor"] = columns.index(floor) if floor in columns else -1 if floor == "" else None
        del line["column"]
    return {"lines": lines}


def _rounded(value: float | None) -> float | None:
    if value is None:
        return None
    kept = round(float(value), 2 if abs(value) < 1000 else 0)
    return int(kept) if kept == int(kept) else kept


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
