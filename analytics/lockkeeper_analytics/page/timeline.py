"""The life of the brokers as a list: starts, take-overs, stops, and the silence between."""

from html import escape

from lockkeeper_analytics.page import text
from lockkeeper_analytics.reports.report import Row

ENTRIES_MAX = 200


def timeline(events: list[Row]) -> str:
    """Return the events in order."""
    shown = "".join(map(_entry, events[:ENTRIES_MAX]))
    more = len(events) - ENTRIES_MAX
    note = f'<p class="note">{more:,} more are in takeovers.parquet.</p>' if more > 0 else ""
    return f'<ol class="timeline">{shown}</ol>{note}'


def _entry(row: Row) -> str:
    who = escape(row["replica"] or row["broker"] or "a broker")
    return (
        f'<li class="{escape(row["event"])}"><time>{text.moment(row["at"])}</time>'
        f"<p><b>{who}</b> {_deed(row)}</p></li>"
    )


def _deed(row: Row) -> str:
    silence = row["silent_ms"]
    if row["event"] == "stop":
        return "stopped cleanly"
    if row["event"] == "takeover":
        deed = "took over"
        if row["after_crash"]:
            deed += " from a master that did not stop cleanly"
    else:
        deed = "became master" + (" after a crash" if row["after_crash"] else "")
    if row["cause"]:
        deed += f": {escape(row['cause'])}"
    if silence is not None:
        deed += (
            f'<span class="silence">{text.milliseconds(silence)} after the last '
            "sign of life in the journal</span>"
        )
    return deed
