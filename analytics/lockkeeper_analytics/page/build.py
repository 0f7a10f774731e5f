"""Put the page together: a template, its style and script, the story, sections and data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from importlib.resources import files
from itertools import chain
from pathlib import PurePath
from string import Template
from typing import Any

from lockkeeper_analytics.agreements.breaches import Verdict
from lockkeeper_analytics.comparison.changes import Comparison
from lockkeeper_analytics.page import text
from lockkeeper_analytics.page.agreements import agreements
from lockkeeper_analytics.page.comparison import comparison_card
from lockkeeper_analytics.page.labels import Tables, directory_labels
from lockkeeper_analytics.page.plots import extent_of, marks, plot_data, plot_name
from lockkeeper_analytics.page.sections import contents, sections
from lockkeeper_analytics.page.story import NEEDED, dead_letter_queues, span_of, tell
from lockkeeper_analytics.page.tables import table_data
from lockkeeper_analytics.page.tiles import balance, tiles
from lockkeeper_analytics.reports import GROUPS, REPORTS

SCRIPTS = (
    "formats.js",
    "range.js",
    "chart.js",
    "bars.js",
    "heat.js",
    "cells.js",
    "commands.js",
    "table.js",
    "page.js",
)
_PARTS = files("lockkeeper_analytics.page")


@dataclass(frozen=True, slots=True)
class Made:
    """What a page says of itself: which directories were read, when, by which version.

    `counts` has how many rows reports have in all, where the page may have only the first,
    `verdicts` are on the rules that the reports were held against, `comparison` is with a former
    run.
    """

    directories: tuple[str, ...]
    at: datetime
    version: str
    counts: Mapping[str, int] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    comparison: Comparison | None = None


def build_page(tables: Tables, made: Made) -> str:
    """Return the whole page for the reports in *tables*, rows by the name of the report."""
    labels = directory_labels(tables)
    plots = _plots(tables, labels)
    first, last = span_of(tables)
    lasted = (last - first).total_seconds() * 1000 if first and last else None
    data = {
        "plots": plots,
        "marks": marks(tables.get("takeovers", [])),
        "tables": _table_data(tables),
        "labels": labels,
        "directories": made.directories,
    }
    values = {
        "title": escape(", ".join(PurePath(each).name or each for each in made.directories)),
        "directories": escape(", ".join(made.directories)),
        "when": f"{text.span(first, last)} UTC" if first or last else "times unknown",
        "lasted": text.milliseconds(lasted),
        "made": f"{text.moment(made.at)} UTC",
        "version": escape(made.version),
        "story": _story(tables, made.comparison),
        "agreements": agreements(made.verdicts),
        "contents": contents(GROUPS, tables),
        "sections": sections(GROUPS, tables, plots, labels, made.counts),
        # Inside a script element nothing but its end tag ends JSON.
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "style": _part("page.css"),
        "script": "".join(map(_part, SCRIPTS)),
    }
    return Template(_part("page.html")).substitute(values)


def _plots(tables: Tables, labels: Mapping[str, str]) -> dict[str, Any]:
    reports = [each for group in GROUPS.values() for each in group if each.name in tables]
    shown = {each.name: each.shown(tables[each.name]) for each in reports}
    over_time = [shown[each.name] for each in reports if each.has_lines]
    extent = extent_of(chain.from_iterable(over_time))
    apart = dead_letter_queues(tables)
    found = {
        plot_name(each, number): plot_data(plot, shown[each.name], labels, apart, extent)
        for each in reports
        for number, plot in enumerate(each.plots)
    }
    return {name: plot for name, plot in found.items() if plot is not None}


def _table_data(tables: Tables) -> dict[str, Any]:
    reports = [REPORTS[name] for name in tables]
    return {each.name: table_data(each, each.shown(tables[each.name])) for each in reports}


def _story(tables: Tables, comparison: Comparison | None) -> str:
    """Return tiles, comparison and balance, where every report is there that they are told from."""
    if any(name not in tables for name in NEEDED):
        return ""
    story = tell(tables)
    short = tiles(story, comparison)
    return (
        f'<section class="tiles"><h2 class="unseen">In short</h2>{short}</section>'
        f"{comparison_card(comparison)}{balance(story)}"
    )


def _part(name: str) -> str:
    return _PARTS.joinpath(name).read_text("utf-8")
