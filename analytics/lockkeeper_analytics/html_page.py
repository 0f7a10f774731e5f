"""The report as one HTML page that needs nothing from outside: tiles, charts, tables."""

import base64
import gzip
import html
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from lockkeeper_analytics.charts import CHARTS, mark_takeovers

TEMPLATE = "page.html"
ROWS_MAX = 200

_TABLES = {
    "totals": ("Destinations", "What happened at each of them."),
    "latency": (
        "Time to acknowledgement",
        "Percentiles in ms. Records: messages in the journal, their times exact to the "
        "recorder's clock. Statistics: all messages, counted by the broker in classes.",
    ),
    "backlog": ("Still waiting", "Messages at the end of the journal."),
    "dead_letters": ("Dead letters", "Where from, where to, and why."),
    "redeliveries": ("Redeliveries", "Messages that were delivered more than once."),
    "takeovers": ("Starts, take-overs, stops", "What the flight recorder noted."),
    "inventory": ("The journal", "Records by kind."),
}
_BOUNDS = ("_at_least_ms", "_at_most_ms")
_HIDDEN = ("directory", "destination_kind", "origin_kind", "epoch", "broker")


def write_page(out: Path, directories: list[str], reports: dict[str, pd.DataFrame]) -> Path:
    """Write the page of *reports* into *out* and return its path."""
    template = (files(__package__) / "reports" / TEMPLATE).read_text("utf-8")
    parts = {
        "title": html.escape(_title(directories)),
        "subtitle": html.escape(_subtitle(reports["inventory"])),
        "tiles": _tiles(reports),
        "charts": _charts(reports),
        "tables": "".join(_table(name, reports[name]) for name in _TABLES),
        "plotly": _plotly(),
    }
    for name, value in parts.items():
        template = template.replace(f"<!--{name}-->", value)
    page = out / "index.html"
    page.write_text(template, "utf-8")
    return page


def _title(directories: list[str]) -> str:
    return "Journal " + ", ".join("/".join(Path(name).parts[-2:]) for name in directories)


def _subtitle(inventory: pd.DataFrame) -> str:
    written = f"written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    first, last = inventory["first_at"].min(), inventory["last_at"].max()
    if inventory.empty or pd.isna(first):
        return written
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC, {written}"


def _tiles(reports: dict[str, pd.DataFrame]) -> str:
    totals, backlog = reports["totals"], reports["backlog"]
    takeovers = reports["takeovers"]
    figures = [
        ("sent", totals["enqueued"].sum()),
        ("acknowledged", totals["acknowledged"].sum()),
        ("dead-lettered", totals["dead_lettered"].sum()),
        ("still waiting", backlog["waiting"].sum()),
        ("redelivered", totals["redelivered"].sum()),
        ("take-overs", (takeovers["event"] == "takeover").sum()),
    ]
    return "".join(
        f'<div class="tile"><b>{_count(value)}</b><span>{name}</span></div>'
        for name, value in figures
    )


def _count(value: float) -> str:
    return "0" if pd.isna(value) else f"{int(value):,}"


def _charts(reports: dict[str, pd.DataFrame]) -> str:
    pieces = []
    for name, (title, text, draw) in CHARTS.items():
        figure = draw(reports[name])
        if figure is None:
            continue
        if "time" in reports[name]:
            mark_takeovers(figure, reports["takeovers"])
        # A script ends at the first `</`, also within a string.
        data = str(figure.to_json()).replace("</", "<\\/")
        pieces.append(
            f"<section><h2>{title}</h2><p>{text}</p>"
            f'<div class="chart"><script type="application/json">{data}</script></div></section>'
        )
    return "".join(pieces)


def _table(name: str, frame: pd.DataFrame) -> str:
    title, text = _TABLES[name]
    hidden = [column for column in frame if str(column).endswith(_BOUNDS) or column in _HIDDEN]
    shown = frame.drop(columns=hidden).dropna(axis="columns", how="all")
    if shown.empty:
        return f"<section><h2>{title}</h2><p>{text}</p><p class=none>None.</p></section>"
    heads = "".join(map(_head, shown.columns, shown.dtypes))
    rows = "".join(
        "<tr>" + "".join(map(_cell, row)) + "</tr>"
        for row in shown.head(ROWS_MAX).itertuples(index=False)
    )
    more = len(shown) - ROWS_MAX
    note = f"<p class=none>{more:,} more in {name}.parquet.</p>" if more > 0 else ""
    return (
        f"<section><h2>{title}</h2><p>{text}</p><div class=scroll><table><thead><tr>{heads}</tr>"
        f"</thead><tbody>{rows}</tbody></table></div>{note}</section>"
    )


def _head(column: str, kind: Any) -> str:
    number = ' class="number"' if pd.api.types.is_numeric_dtype(kind) else ""
    return f"<th{number}>{html.escape(str(column).replace('_', ' '))}</th>"


def _cell(value: Any) -> str:
    if isinstance(value, pd.Timestamp):
        return f"<td>{value:%Y-%m-%d %H:%M:%S}</td>"
    if isinstance(value, bool) or value is None or pd.isna(value):
        return f"<td>{'yes' if value is True else ''}</td>"
    if isinstance(value, (int, float)):
        text = f"{value:,.1f}" if isinstance(value, float) and value % 1 else f"{int(value):,}"
        return f'<td class="number">{text}</td>'
    return f"<td>{html.escape(str(value))}</td>"


def _plotly() -> str:
    """Return plotly's script, packed: the page unpacks it, and is a third as large."""
    script = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(script, 9)).decode()
