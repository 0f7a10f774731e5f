"""A report's table: its first rows with the columns that it wants to be shown."""

from collections.abc import Sequence
from html import escape

from lockkeeper_analytics.page.cells import STYLES, cell_of
from lockkeeper_analytics.page.labels import Labels
from lockkeeper_analytics.reports.report import Column, Report, Row

ROWS_MAX = 60


def table(report: Report, rows: Sequence[Row], labels: Labels) -> str:
    """Return the first of *rows* as a table, with a word on where the others are."""
    head = "".join(
        f'<th class="{_style(column)}">{escape(column.heading)}</th>' for column in report.columns
    )
    cells = [(_style(column), cell_of(column, rows, labels)) for column in report.columns]
    body = "".join(
        "<tr>" + "".join(f'<td class="{style}">{cell(row)}</td>' for style, cell in cells) + "</tr>"
        for row in rows[:ROWS_MAX]
    )
    more = len(rows) - ROWS_MAX
    note = f"{more:,} more rows are in {report.name}.parquet and {report.name}.json."
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>" + (f'<p class="note">{note}</p>' if more > 0 else "")
    )


def _style(column: Column) -> str:
    style = STYLES.get(column.unit, "")
    return f"{style} barred" if column.bar is not None else style
