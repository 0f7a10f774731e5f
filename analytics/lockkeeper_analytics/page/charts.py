"""The data of the charts, as compact as the page can carry it: one JSON object."""

from datetime import datetime
from typing import Any

from lockkeeper_analytics.page.story import (
    Key,
    Row,
    Tables,
    dead_letter_queues,
    key_of,
    trusted_latency,
)

EVERYTHING = "All destinations"
"""Dead letter queues are left out of it: their messages were counted where they were sent."""

SERIES_MAX = 40
"""So many destinations can be chosen one by one, the busiest first; all count in the sum."""


def chart_data(tables: Tables, labels: dict[Key, str]) -> dict[str, Any]:
    """Return what the page's script draws.

    `start` (ms since the epoch) and `step` (ms) say when each cell of time begins. A series has
    counts per second, and latencies in ms, null where nothing was acknowledged.
    """
    rates = tables["rates"]
    times = sorted({_ms(row["time"]) for row in rates + tables["latency_over_time"]})
    if not times:
        return {"start": 0, "step": 1000, "cells": 0, "series": [], "marks": []}
    step = 1000 * next(row["seconds"] for row in rates + tables["latency_over_time"])
    start, cells = times[0], (times[-1] - times[0]) // step + 1
    by_key: dict[Key, list[Row]] = {}
    for row in rates:
        by_key.setdefault(key_of(row), []).append(row)
    busiest = sorted(by_key, key=lambda key: -sum(row["enqueued"] for row in by_key[key]))
    dead = dead_letter_queues(tables)
    living = [row for row in rates if key_of(row) not in dead]
    series = [_rates(EVERYTHING, living, start, step, cells)]
    late = _latencies(tables, start, step, cells)
    for key in busiest[:SERIES_MAX]:
        one = _rates(labels[key], by_key[key], start, step, cells)
        series.append({**one, **late.get(key, {})})
    series[0] |= _slowest(late, cells)
    return {
        "start": start,
        "step": step,
        "cells": cells,
        "series": series,
        "marks": _marks(tables["takeovers"]),
    }


def _rates(label: str, rows: list[Row], start: int, step: int, cells: int) -> dict[str, Any]:
    series: dict[str, Any] = {"label": label}
    for short, name in (("in", "enqueued"), ("out", "dequeued"), ("dead", "dead_lettered")):
        values = [0.0] * cells
        for row in rows:
            values[(_ms(row["time"]) - start) // step] += row[name] * 1000 / step
        series[short] = [round(value, 2) for value in values]
    return series


def _latencies(
    tables: Tables, start: int, step: int, cells: int
) -> dict[Key, dict[str, list[float | None]]]:
    trusted = trusted_latency(tables["latency"])
    found: dict[Key, dict[str, list[float | None]]] = {}
    for row in tables["latency_over_time"]:
        key = key_of(row)
        if row["source"] != trusted[key]["source"]:
            continue
        late = found.setdefault(key, {"p50": [None] * cells, "p99": [None] * cells})
        cell = (_ms(row["time"]) - start) // step
        late["p50"][cell], late["p99"][cell] = round(row["p50_ms"], 1), round(row["p99_ms"], 1)
    return found


def _slowest(
    late: dict[Key, dict[str, list[float | None]]], cells: int
) -> dict[str, list[float | None]]:
    """Return the latencies of all destinations: in each cell those of the slowest."""

    def worst(name: str, cell: int) -> float | None:
        values = [each[name][cell] for each in late.values()]
        return max((value for value in values if value is not None), default=None)

    return {name: [worst(name, cell) for cell in range(cells)] for name in ("p50", "p99")}


def _marks(events: list[Row]) -> list[dict[str, Any]]:
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


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
