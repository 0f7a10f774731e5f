"""The charts of the page: pandas frames of the reports to plotly figures, as JSON."""

from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go

COLOURS = ("#2f6fde", "#e0762f", "#2a9d70", "#8b5cd6", "#c4456b", "#6b7a8f", "#b8860b", "#1a9fb5")
SERIES_MAX = 8
_OTHERS = "others"


def rates_chart(rates: pd.DataFrame) -> go.Figure | None:
    """Return messages per second over time: sent above the axis's line, acknowledged dashed."""
    if rates.empty:
        return None
    figure = _figure("messages/s")
    table = _per_second(rates)
    for colour, name in zip(COLOURS, _largest(table, "enqueued"), strict=False):
        lines = _only(table, name)
        for column, dash, word in (("enqueued", "solid", "sent"), ("dequeued", "dot", "taken")):
            figure.add_scatter(
                x=lines["time"],
                y=lines[column],
                mode="lines",
                name=f"{name} {word}",
                line={"color": colour, "dash": dash, "width": 1.8},
            )
    return figure


def latency_chart(latency: pd.DataFrame) -> go.Figure | None:
    """Return the time from sent to acknowledged over time, p50 and p99 per destination."""
    if latency.empty:
        return None
    figure = _figure("ms from sent to acknowledged")
    figure.update_yaxes(type="log")
    named = latency.assign(name=latency["destination"])
    for colour, name in zip(COLOURS, _largest(named, "acknowledged"), strict=False):
        lines = _only(named, name)
        for column, dash in (("p50_ms", "solid"), ("p99_ms", "dot")):
            figure.add_scatter(
                x=lines["time"],
                y=lines[column],
                mode="lines",
                name=f"{name} {column[:3]}",
                line={"color": colour, "dash": dash, "width": 1.8},
            )
    return figure


def backlog_chart(backlog: pd.DataFrame) -> go.Figure | None:
    """Return what is left waiting, a bar for each destination."""
    if backlog.empty:
        return None
    table = backlog.sort_values("waiting").tail(20)
    figure = _figure("")
    figure.add_bar(
        x=table["waiting"], y=table["destination"], orientation="h", marker_color=COLOURS[0]
    )
    figure.update_layout(height=80 + 34 * len(table), showlegend=False)
    return figure


CHARTS: dict[str, tuple[str, str, Callable[[pd.DataFrame], go.Figure | None]]] = {
    "rates": ("Flow", "Messages per second, sent and taken from the destination.", rates_chart),
    "latency_over_time": (
        "Time to acknowledgement",
        "From sent to acknowledged; half of the messages took less than p50.",
        latency_chart,
    ),
    "backlog": ("Still waiting", "Messages at the end of the journal.", backlog_chart),
}
"""By report: title, explanation, and what draws it."""


def mark_takeovers(figure: go.Figure, takeovers: pd.DataFrame) -> None:
    """Mark in a chart over time when another replica became the master."""
    for row in takeovers[takeovers["event"] == "takeover"].itertuples():
        figure.add_vline(x=row.at, line={"color": "#c4456b", "width": 1, "dash": "dash"})
        figure.add_annotation(
            x=row.at, y=1.06, yref="paper", text=f"{row.replica} takes over", showarrow=False
        )


def _figure(unit: str) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        margin={"l": 60, "r": 16, "t": 34, "b": 36},
        height=340,
        yaxis_title=unit,
        legend={"orientation": "h", "y": -0.16},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": "#7d8793"},
        hovermode="x unified",
    )
    figure.update_xaxes(gridcolor="rgba(125,135,147,0.18)")
    figure.update_yaxes(gridcolor="rgba(125,135,147,0.18)", rangemode="tozero")
    return figure


def _per_second(rates: pd.DataFrame) -> pd.DataFrame:
    table = rates.assign(name=rates["destination"])
    for column in ("enqueued", "dequeued"):
        table[column] = table[column] / table["seconds"]
    return table


def _largest(table: pd.DataFrame, column: str) -> list[str]:
    """Return the destinations with most messages, not more than there are colours."""
    totals = table.groupby("name")[column].sum().sort_values(ascending=False)
    return [str(name) for name in totals[totals > 0].index[:SERIES_MAX]]


def _only(table: pd.DataFrame, name: str) -> pd.DataFrame:
    return table[table["name"] == name].sort_values("time")
