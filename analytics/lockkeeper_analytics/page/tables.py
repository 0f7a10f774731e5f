"""The page's tables: rows of a report to HTML, every value escaped."""

from collections.abc import Callable, Sequence
from html import escape
from math import log10
from typing import NamedTuple

from lockkeeper_analytics.page import text
from lockkeeper_analytics.page.story import Key, Row, Tables, key_of, trusted_latency

ROWS_MAX = 100
CAUSE_CHARACTERS = 240
_JAVA_CLASS = ("java.lang.Throwable: ", "java.lang.Exception: ")


class Column(NamedTuple):
    """A column: its heading, its cells' HTML, and their style (`number`, `name`, `wide`)."""

    heading: str
    cell: Callable[[Row], str]
    style: str = ""


def table(rows: Sequence[Row], columns: Sequence[Column], report: str) -> str:
    """Return a table of the first rows, with a word on where the others are."""
    head = "".join(f'<th class="{each.style}">{escape(each.heading)}</th>' for each in columns)
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{each.style}">{each.cell(row)}</td>' for each in columns)
        + "</tr>"
        for row in rows[:ROWS_MAX]
    )
    more = len(rows) - ROWS_MAX
    note = f'<p class="note">{more:,} more rows are in {report}.parquet.</p>' if more > 0 else ""
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{note}"
    )


def nothing(sentence: str) -> str:
    """Return what stands where a table would be empty."""
    return f'<p class="nothing">{escape(sentence)}</p>'


def destination(labels: dict[Key, str]) -> Column:
    """Return the column that names a row's destination."""

    def cell(row: Row) -> str:
        kind = row["destination_kind"]
        name = escape(labels[key_of(row)])
        subscription = row.get("subscription")
        if subscription:
            name += f' <span class="of">to {escape(subscription)}</span>'
        return f'<span class="kind {escape(kind)}">{escape(kind)}</span>{name}'

    return Column("Destination", cell, "name")


def number(heading: str, name: str) -> Column:
    """Return a column of counts; zeros step back."""

    def cell(row: Row) -> str:
        value = row[name]
        return text.count(value) if value else f"<i>{text.count(value)}</i>"

    return Column(heading, cell, "number")


def bar(heading: str, name: str, rows: Sequence[Row], style: str = "") -> Column:
    """Return a column of counts, each with a bar as long as its share of the highest."""
    highest = max((row[name] or 0 for row in rows), default=0) or 1

    def cell(row: Row) -> str:
        width = 100 * (row[name] or 0) / highest
        return (
            f'<span class="measure"><span class="bar {style}">'
            f'<b style="width:{width:.1f}%"></b></span><span>{text.count(row[name])}</span></span>'
        )

    return Column(heading, cell, "number barred")


def totals(tables: Tables, labels: dict[Key, str]) -> str:
    """Return the sums of each destination, the busiest first."""
    rows = sorted(tables["totals"], key=lambda row: -row["enqueued"])
    if not rows:
        return nothing("The journal names no destination.")
    columns = [
        destination(labels),
        bar("Came in", "enqueued", rows),
        number("Acknowledged", "acknowledged"),
        number("Dead letters", "dead_lettered"),
        number("Expired", "expired"),
        number("Redelivered", "redelivered"),
        number("Never written", "never_written"),
    ]
    return table(rows, columns, "totals")


def latency(tables: Tables, labels: dict[Key, str]) -> str:
    """Return the percentiles of each destination, each row drawn on one logarithmic scale."""
    rows = sorted(trusted_latency(tables["latency"]).values(), key=lambda row: -row["p99_ms"])
    if not rows:
        return nothing("Nothing was acknowledged.")
    highest = max(10.0, *(row["max_ms"] for row in rows))

    def place(value: float) -> float:
        return 100 * log10(1 + value) / log10(1 + highest)

    def scale(row: Row) -> str:
        middle, high, top = (place(row[name]) for name in ("p50_ms", "p99_ms", "max_ms"))
        return (
            '<span class="range">'
            f'<b class="far" style="left:{high:.1f}%;width:{top - high:.1f}%"></b>'
            f'<b style="left:{middle:.1f}%;width:{high - middle:.1f}%"></b>'
            f'<i style="left:{middle:.1f}%"></i></span>'
        )

    columns = [
        destination(labels),
        number("Messages", "acknowledged"),
        Column("Half within", lambda row: _bounded(row, "p50"), "number"),
        Column("90 %", lambda row: text.milliseconds(row["p90_ms"]), "number"),
        Column("99 %", lambda row: _bounded(row, "p99"), "number"),
        Column("Longest", lambda row: text.milliseconds(row["max_ms"]), "number"),
        Column("50 % to 99 % to longest", scale, "wide"),
        Column("From", lambda row: escape(row["source"])),
    ]
    return table(rows, columns, "latency")


def _bounded(row: Row, name: str) -> str:
    value, low, high = row[f"{name}_ms"], row[f"{name}_at_least_ms"], row[f"{name}_at_most_ms"]
    shown = text.milliseconds(value)
    if low is None or high is None:
        return shown
    between = f"between {text.milliseconds(low)} and {text.milliseconds(high)}"
    return f'<span title="{between}">{shown}</span>'


def dead_letters(tables: Tables, labels: dict[Key, str]) -> str:
    """Return the dead letters by origin and cause."""
    rows = tables["dead_letters"]
    if not rows:
        return nothing("No dead letters.")
    columns = [
        Column("Meant for", lambda row: escape(row["origin"]), "name"),
        Column("Cause", lambda row: _cause(row["cause"]), "cause"),
        bar("Messages", "messages", rows, "bad"),
        Column("Now in", lambda row: escape(row["dead_letter_queue"]), "name"),
        Column("First", lambda row: text.clock(row["first_at"]), "number"),
        Column("Last", lambda row: text.clock(row["last_at"]), "number"),
        Column("Example", _example, "id"),
    ]
    return table(rows, columns, "dead_letters")


def _example(row: Row) -> str:
    message_id = escape(row["example"])
    return f'<code title="{message_id}">{message_id}</code>'


def _cause(cause: str) -> str:
    for prefix in _JAVA_CLASS:
        cause = cause.removeprefix(prefix)
    if len(cause) <= CAUSE_CHARACTERS:
        return escape(cause)
    return f'<span title="{escape(cause)}">{escape(cause[:CAUSE_CHARACTERS])}…</span>'


def backlog(tables: Tables, labels: dict[Key, str]) -> str:
    """Return what waits, for each destination and subscription."""
    rows = tables["backlog"]
    if not rows:
        return nothing("Nothing waits.")
    columns = [
        destination(labels),
        bar("Waiting", "waiting", rows, "warm"),
        number("Of these dead letters", "dead_letters"),
        number("In doubt", "in_doubt"),
        Column("Size", lambda row: text.size(row["bytes"]), "number"),
        Column("Oldest", lambda row: text.moment(row["oldest_at"]), "number"),
    ]
    return table(rows, columns, "backlog")


def redeliveries(tables: Tables, labels: dict[Key, str]) -> str:
    """Return the destinations that delivered messages again."""
    rows = tables["redeliveries"]
    if not rows:
        return nothing("No message was delivered again.")
    columns = [
        destination(labels),
        bar("Given back", "redelivered", rows, "warm"),
        number("Deliveries", "dispatched"),
        number("Marked in the journal", "marked"),
        number("Highest counter", "highest"),
    ]
    return table(rows, columns, "redeliveries")


def inventory(tables: Tables) -> str:
    """Return what the journal holds, by kind of record."""
    rows = tables["inventory"]
    columns = [
        Column("Directory", lambda row: f"<code>{escape(row['directory'])}</code>", "name"),
        Column("Record", lambda row: escape(row["kind"].replace("_", " "))),
        bar("Records", "records", rows),
        Column("Size", lambda row: text.size(row["bytes"]), "number"),
        number("Files", "files"),
    ]
    return table(rows, columns, "inventory")
