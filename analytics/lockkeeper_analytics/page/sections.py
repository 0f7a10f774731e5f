"""The sections of the page, one a report, and the table of contents that leads to them."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from lockkeeper_analytics.page.labels import Labels, Tables
from lockkeeper_analytics.page.tables import table
from lockkeeper_analytics.page.timeline import timeline
from lockkeeper_analytics.reports.report import Bars, Lines, Report, Row

INSTEAD: Mapping[str, Callable[[list[Row]], str]] = {"takeovers": timeline}
"""What stands in place of a plot, for reports that tell a story."""

Groups = Mapping[str, tuple[Report, ...]]


def contents(groups: Groups, tables: Tables) -> str:
    """Return the list of what the page has; reports without rows step back."""
    return "".join(
        f"<li><h2>{escape(heading)}</h2><ul>"
        + "".join(
            f'<li><a href="#{each.name}"{"" if tables[each.name] else " class=bare"}>'
            f"{escape(each.title)}</a></li>"
            for each in reports
            if each.name in tables
        )
        + "</ul></li>"
        for heading, reports in groups.items()
        if any(each.name in tables for each in reports)
    )


def sections(
    groups: Groups,
    tables: Tables,
    plots: Mapping[str, Any],
    labels: Labels,
    counts: Mapping[str, int],
) -> str:
    """Return the sections of all reports that *tables* has rows of, or none.

    *counts* are the rows that reports have in all.
    """
    return "".join(
        section(each, tables[each.name], plots.get(each.name), labels, counts.get(each.name, 0))
        for reports in groups.values()
        for each in reports
        if each.name in tables
    )


def section(report: Report, rows: list[Row], plot: Any, labels: Labels, count: int) -> str:
    """Return the section of *report*, of whose *count* rows some are here; one line without any."""
    if not rows:
        return (
            f'<section class="card empty" id="{report.name}"><h2>{escape(report.title)}</h2>'
            f"<p>{escape(report.nothing)}</p>{_sql(report)}</section>"
        )
    drawn = _drawn(report, rows, plot)
    figures = table(report, report.shown(rows), labels)
    if drawn and not isinstance(report.plot, Bars):
        # A table of every moment is for looking things up: the plot shows them.
        figures = f"<details><summary>Figures</summary><div>{figures}</div></details>"
    note = f'<p class="note">{escape(report.note)}</p>' if report.note else ""
    if count > len(rows):
        cut = f"Of {count:,} rows only the first {len(rows):,} are drawn and counted here"
        note = f'<p class="note">{cut}: {report.name}.parquet has all.</p>{note}'
    return (
        f'<section class="card" id="{report.name}">'
        f'<div class="heading"><h2>{escape(report.title)}</h2><p>{escape(report.question)}</p>'
        f'{_choice(report, plot)}</div>{drawn}{note}<div class="folds">{figures}{_sql(report)}'
        "</div></section>"
    )


def _drawn(report: Report, rows: list[Row], plot: Any) -> str:
    if report.name in INSTEAD:
        return INSTEAD[report.name](rows)
    if plot is None:
        return ""
    title = escape(f"{report.title}: {report.question}")
    return (
        f'<ul class="legend keys"></ul><div class="plot {plot["kind"]}" '
        f'data-plot="{report.name}" role="img" aria-label="{title}"></div>'
    )


def _choice(report: Report, plot: Any) -> str:
    if not isinstance(report.plot, Lines) or plot is None or len(plot["series"]) < 2:
        return ""
    return f'<label>Show <select data-for="{report.name}"></select></label>'


def _sql(report: Report) -> str:
    return (
        '<details class="sql"><summary>SQL</summary>'
        f"<p>Ask it again, or something like it, with <code>lockkeeper sql</code>; as it stands it "
        f"is the view <code>{report.name}_report</code>.</p>"
        '<div class="code"><button type="button" class="copy">Copy</button>'
        f"<pre><code>{escape(report.sql)}</code></pre></div></details>"
    )
