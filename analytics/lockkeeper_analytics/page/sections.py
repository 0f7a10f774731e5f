"""The sections of the page, one a report, and the table of contents that leads to them."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from lockkeeper_analytics.page.labels import Labels, Tables
from lockkeeper_analytics.page.network import network
from lockkeeper_analytics.page.plots import plot_name
from lockkeeper_analytics.page.tables import table
from lockkeeper_analytics.page.timeline import timeline
from lockkeeper_analytics.reports.report import Bars, Report, Row

INSTEAD: Mapping[str, Callable[[list[Row]], str]] = {
    "takeovers": timeline,
    "network": network,
}
"""What stands in place of a plot, for reports that tell a story."""

PICTURES = ("network",)
"""Reports whose figures stand open beneath what is drawn, as those of bars do."""

Groups = Mapping[str, tuple[Report, ...]]


def contents(groups: Groups, tables: Tables) -> str:
    """Return the list of what the page has; reports without trouble step back."""
    return "".join(
        f"<li><h2>{escape(heading)}</h2><ul>"
        + "".join(_entry(each, tables[each.name]) for each in reports if each.name in tables)
        + "</ul></li>"
        for heading, reports in groups.items()
        if any(each.name in tables for each in reports)
    )


def _entry(report: Report, rows: list[Row]) -> str:
    style = " class=bare" if _is_calm(report, rows) else ""
    return f'<li><a href="#{report.name}"{style}>{escape(report.title)}</a></li>'


def _is_calm(report: Report, rows: list[Row]) -> bool:
    """Tell whether there is nothing in *rows* that anybody has to look at."""
    return not rows or (report.calm is not None and bool(report.calm(rows)))


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
        section(each, tables[each.name], plots, labels, counts.get(each.name, 0))
        for reports in groups.values()
        for each in reports
        if each.name in tables
    )


def section(
    report: Report, rows: list[Row], plots: Mapping[str, Any], labels: Labels, count: int
) -> str:
    """Return the section of *report*, of whose *count* rows some are here.

    It is one line without rows; where these tell of no trouble, a line that opens.
    """
    if not rows:
        return (
            f'<section class="card empty" id="{report.name}"><h2>{escape(report.title)}</h2>'
            f"<p>{escape(report.nothing)}</p>{_sql(report)}</section>"
        )
    calm = report.calm(rows) if report.calm is not None else ""
    content = _content(report, rows, plots, labels, count)
    title, question = escape(report.title), escape(report.question)
    if calm:
        return (
            f'<section class="card calm" id="{report.name}"><details><summary><h2>{title}</h2> '
            f'<span>{escape(calm)}</span></summary><p class="question">{question}</p>{content}'
            "</details></section>"
        )
    return (
        f'<section class="card" id="{report.name}"><div class="heading"><h2>{title}</h2>'
        f"<p>{question}</p></div>{content}</section>"
    )


def _content(
    report: Report, rows: list[Row], plots: Mapping[str, Any], labels: Labels, count: int
) -> str:
    drawn, told = _drawn(report, rows, plots), ""
    if report.name not in INSTEAD:
        told = "".join(_told(report, name, plots[name]) for name in _plot_names(report, plots))
    figures = table(report, report.shown(rows), labels)
    is_open = report.name in PICTURES or any(isinstance(plot, Bars) for plot in report.plots)
    if drawn and not is_open:
        # A table of every moment is for looking things up: the plot shows them.
        figures = f"<details><summary>Figures</summary><div>{figures}</div></details>"
    note = f'<p class="note">{escape(report.note)}</p>' if report.note else ""
    if count > len(rows):
        cut = f"Of {count:,} rows only the first {len(rows):,} are drawn and counted here"
        note = f'<p class="note">{cut}: {report.name}.parquet has all.</p>{note}'
    return f'{drawn}{note}<div class="folds">{figures}{told}{_sql(report)}</div>'


def _drawn(report: Report, rows: list[Row], plots: Mapping[str, Any]) -> str:
    if report.name in INSTEAD:
        return INSTEAD[report.name](rows)
    return "".join(_figure(report, name, plots[name]) for name in _plot_names(report, plots))


def _plot_names(report: Report, plots: Mapping[str, Any]) -> list[str]:
    names = (plot_name(report, number) for number in range(len(report.plots)))
    return [name for name in names if name in plots]


def _figure(report: Report, name: str, plot: Mapping[str, Any]) -> str:
    title = _plot_title(report, plot)
    choice = ""
    if len(plot.get("series", ())) > 1:
        choice = f'<label class="choice">Show <select data-for="{name}"></select></label>'
    return (
        f'<figure><div class="keys"><ul class="legend"></ul>{choice}</div>'
        f'<div class="plot {plot["kind"]}" data-plot="{name}" role="img" aria-label="{title}">'
        "<noscript>Plots are drawn by a script; the figures are in the table.</noscript></div>"
        f"{_left_out(plot)}</figure>"
    )


def _left_out(plot: Mapping[str, Any]) -> str:
    if not plot["more"]:
        return ""
    where = "counted in the sum alone" if plot.get("together") else "in the table alone"
    return f'<p class="note">Those with the most are drawn; {plot["more"]:,} are {where}.</p>'


def _told(report: Report, name: str, plot: Mapping[str, Any]) -> str:
    """Return the place of a table of what a plot shows, for those who do not see that."""
    return (
        f'<details class="drawn" data-drawn="{name}">'
        f"<summary>As a table: {escape(plot['axis'])}</summary>"
        '<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{_plot_title(report, plot)}, as a table"></div></details>'
    )


def _plot_title(report: Report, plot: Mapping[str, Any]) -> str:
    return escape(f"{report.title}: {plot['axis']}")


def _sql(report: Report) -> str:
    return (
        '<details class="sql"><summary>SQL</summary>'
        f"<p>Ask it again, or something like it, with <code>lockkeeper sql</code>; as it stands it "
        f"is the view <code>{report.name}_report</code>.</p>"
        '<div class="code"><button type="button" class="copy">Copy</button>'
        f'<pre tabindex="0"><code>{escape(report.sql)}</code></pre></div></details>'
    )
