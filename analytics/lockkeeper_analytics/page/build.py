"""Put the page together: a template, its style and script, the story, tables and data."""

import json
from collections.abc import Iterable
from datetime import datetime
from html import escape
from importlib.resources import files
from pathlib import PurePath
from string import Template

from lockkeeper_analytics.page import tables as parts
from lockkeeper_analytics.page import text
from lockkeeper_analytics.page.charts import chart_data
from lockkeeper_analytics.page.story import Key, Story, Tables, key_of, tell
from lockkeeper_analytics.page.timeline import timeline

_PARTS = files("lockkeeper_analytics.page")


def build_page(tables: Tables, directories: list[str], now: datetime, version: str) -> str:
    """Return the whole page for the reports in *tables*; *now* is when it was made."""
    story = tell(tables)
    labels = destination_labels(tables)
    names = ", ".join(directories)
    # Inside a script element nothing but its end tag ends JSON.
    data = json.dumps(chart_data(tables, labels), separators=(",", ":")).replace("<", "\\u003c")
    values = {
        "title": escape(", ".join(PurePath(each).name or each for each in directories)),
        "directories": escape(names),
        "when": text.span(story.first_at, story.last_at),
        "lasted": _lasted(story),
        "made": f"{text.moment(now)} UTC",
        "version": escape(version),
        "tiles": _tiles(story),
        "balance": _balance(story),
        "destinations": parts.totals(tables, labels),
        "latency": parts.latency(tables, labels),
        "dead_letters": parts.dead_letters(tables, labels),
        "backlog": parts.backlog(tables, labels),
        "redeliveries": parts.redeliveries(tables, labels),
        "timeline": timeline(tables["takeovers"]),
        "inventory": parts.inventory(tables),
        "data": data,
        "style": _part("page.css"),
        "script": _part("chart.js") + _part("page.js"),
    }
    return Template(_part("page.html")).substitute(values)


def destination_labels(tables: Tables) -> dict[Key, str]:
    """Return what to call each destination: its directory too, where there are several."""
    keys: set[Key] = set()
    for report in ("totals", "rates", "latency", "latency_over_time", "backlog", "redeliveries"):
        keys.update(map(key_of, tables[report]))
    directories = {directory for directory, _, _ in keys}
    if len(directories) < 2:
        return {key: key[2] for key in keys}
    last = {directory: PurePath(directory).name for directory in directories}
    told_apart = len(set(last.values())) == len(directories)
    return {key: f"{key[2]} ({last[key[0]] if told_apart else key[0]})" for key in keys}


def _part(name: str) -> str:
    return _PARTS.joinpath(name).read_text("utf-8")


def _lasted(story: Story) -> str:
    if story.first_at is None or story.last_at is None:
        return text.UNKNOWN
    return text.milliseconds((story.last_at - story.first_at).total_seconds() * 1000)


def _tiles(story: Story) -> str:
    silence = story.longest_silence_ms
    if story.redelivered is None:
        redelivered = "no flight recorder counted them"
    else:
        share = f"{text.share(story.redelivered, story.sent)} of those sent"
        redelivered = share if story.redelivered else "each delivered once"
    oldest = story.oldest_waiting
    age = (story.last_at - oldest).total_seconds() if story.last_at and oldest else None
    waiting = f"the oldest for {text.milliseconds(age * 1000)}" if age is not None else "all done"
    if story.in_doubt:
        waiting += f", {text.count(story.in_doubt)} in doubt"
    peak = f"at the most {text.count(story.peak_per_second)}/s"
    quiet = f"{text.milliseconds(silence)} of silence" if silence is not None else ""
    return _html_tiles(
        (
            ("sent", "Messages sent", text.count(story.sent), peak),
            (
                "acknowledged",
                "Acknowledged",
                text.count(story.acknowledged),
                f"{text.share(story.acknowledged, story.sent)} of those sent",
            ),
            (
                "dead",
                "Dead letters",
                text.count(story.dead_lettered),
                f"{text.share(story.dead_lettered, story.sent)} of those sent",
            ),
            ("waiting", "Still waiting", text.count(story.waiting), waiting),
            ("redelivered", "Redelivered", text.count(story.redelivered), redelivered),
            ("takeovers", "Take-overs", text.count(story.takeovers), quiet or "none recorded"),
        )
    )


def _html_tiles(tiles: Iterable[tuple[str, str, str, str]]) -> str:
    return "".join(
        f'<div class="tile {style}"><h3>{name}</h3><strong>{figure}</strong><p>{note}</p></div>'
        for style, name, figure, note in tiles
    )


def _balance(story: Story) -> str:
    whole = sum(number for _, number in story.balance)
    if not whole:
        return ""
    bars = "".join(
        f'<b class="{name.replace(" ", "-")}" style="flex-grow:{number}" '
        f'title="{text.count(number)} {name}"></b>'
        for name, number in story.balance
    )
    legend = "".join(
        f'<li class="{name.replace(" ", "-")}"><b>{text.count(number)}</b> {name} '
        f"<i>{text.share(number, whole)}</i></li>"
        for name, number in story.balance
    )
    return f'<div class="balance">{bars}</div><ul class="legend">{legend}</ul>'
