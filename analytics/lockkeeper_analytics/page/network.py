"""The network as a picture: brokers on an ellipse, and arrows for what went from one to another.

A hub, which is at one end of every bridge, stands in the middle.
"""

from collections.abc import Iterable
from html import escape
from math import cos, hypot, pi, sin
from typing import NamedTuple

from lockkeeper_analytics.page import text
from lockkeeper_analytics.reports.report import Row

NODES_MAX = 24
"""So many brokers are drawn, those with the most messages."""
HUB_NODES_MIN = 3
NAME_CHARACTERS = 16
WIDTH = 860
NODE_WIDTH, NODE_HEIGHT = 148, 46
BEND = 26
"""How far an arrow bends to its side, so that those of both ways are apart."""
HEAD = 9
"""Length of an arrow's head."""

Key = tuple[str, str]


class Point(NamedTuple):
    """A place in the picture."""

    x: float
    y: float


class Node(NamedTuple):
    """A broker: its name, and how many messages wait there; None: its journal is not given."""

    name: str
    waiting: int | None


def network(rows: list[Row]) -> str:
    """Return the picture of the pairs of brokers in *rows*."""
    nodes = _nodes(rows)
    drawn = dict(sorted(nodes.items(), key=lambda each: -_messages(rows, each[0]))[:NODES_MAX])
    shown = [row for row in rows if _source(row) in drawn and _target(row) in drawn]
    height = _height(len(drawn))
    places = _places(drawn, _hub(shown, len(drawn)), height)
    arrows = "".join(_arrow(row, places[_source(row)], places[_target(row)]) for row in shown)
    boxes = "".join(_box(node, places[key]) for key, node in drawn.items())
    left_out = len(nodes) - len(drawn)
    note = f'<p class="note">{left_out:,} more brokers are in the table.</p>' if left_out else ""
    return (
        f'<figure><div class="plot network"><svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{_summary(shown, drawn.values())}">{arrows}{boxes}</svg></div>'
        f"{_legend(shown, drawn.values())}{note}</figure>"
    )


def _source(row: Row) -> Key:
    return row["source_directory"] or "", row["source"]


def _target(row: Row) -> Key:
    return row["target_directory"] or "", row["target"]


def _nodes(rows: Iterable[Row]) -> dict[Key, Node]:
    found = {}
    for row in rows:
        found[_source(row)] = Node(row["source"], row["source_waiting"])
        found[_target(row)] = Node(row["target"], row["target_waiting"])
    return found


def _went(row: Row) -> int:
    """Return how many messages went: as counted, or more by records behind the last count."""
    return int(max(row["forwarded"] or 0, row["messages"]))


def _messages(rows: Iterable[Row], key: Key) -> int:
    return sum(_went(row) for row in rows if key in (_source(row), _target(row)))


def _height(count: int) -> int:
    return 150 if count < 3 else min(620, 260 + 30 * count)


def _hub(rows: Iterable[Row], count: int) -> Key | None:
    """Return the broker at one end of all pairs, among so many."""
    ends = [{_source(row), _target(row)} for row in rows]
    hubs = set.intersection(*ends) if ends and count >= HUB_NODES_MIN else set()
    return next(iter(hubs), None)


def _places(nodes: Iterable[Key], hub: Key | None, height: int) -> dict[Key, Point]:
    """Return the middle of each node: in the order of their names, the first one on the left."""
    around = sorted((key for key in nodes if key != hub), key=lambda key: (key[1], key[0]))
    across, down = (WIDTH - NODE_WIDTH) / 2 - 20, (height - NODE_HEIGHT) / 2 - 16
    places = {}
    for number, key in enumerate(around):
        angle = pi + 2 * pi * number / len(around)
        places[key] = Point(WIDTH / 2 + across * cos(angle), height / 2 + down * sin(angle))
    return places if hub is None else {**places, hub: Point(WIDTH / 2, height / 2)}


def _box(node: Node, place: Point) -> str:
    is_given = node.waiting is not None
    name = node.name
    if len(name) > NAME_CHARACTERS:
        name = name[: NAME_CHARACTERS - 1] + "…"
    below = f"{text.count(node.waiting)} waiting" if is_given else "not given"
    x, y = place.x - NODE_WIDTH / 2, place.y - NODE_HEIGHT / 2
    style = "node" if is_given else "node absent"
    return (
        f'<g class="{style}"><title>{escape(node.name)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="10"/>'
        f'<text class="bar-name" x="{place.x:.1f}" y="{place.y - 3:.1f}">{escape(name)}</text>'
        f'<text x="{place.x:.1f}" y="{place.y + 14:.1f}">{below}</text></g>'
    )


def _arrow(row: Row, start: Point, end: Point) -> str:
    """Return an arrow that bends to its left, with what went, and what of it is stranded."""
    apart = hypot(end.x - start.x, end.y - start.y) or 1.0
    along = Point((end.x - start.x) / apart, (end.y - start.y) / apart)
    side = Point(along.y * BEND, -along.x * BEND)
    middle = Point((start.x + end.x) / 2 + 2 * side.x, (start.y + end.y) / 2 + 2 * side.y)
    tail, tip = _edge(start, middle), _edge(end, middle)
    style = "stranded" if row["stranded"] else "idle" if not _went(row) else "went"
    label = Point((tail.x + 2 * middle.x + tip.x) / 4, (tail.y + 2 * middle.y + tip.y) / 4)
    said = text.count(_went(row)) if _went(row) else ""
    if row["stranded"]:
        said += f", {text.count(row['stranded'])} stranded"
    elif row["waiting"]:
        said += f", {text.count(row['waiting'])} waiting"
    curve = f"M{tail.x:.1f} {tail.y:.1f}Q{middle.x:.1f} {middle.y:.1f} {tip.x:.1f} {tip.y:.1f}"
    return (
        f'<g class="arrow {style}"><title>{escape(_told(row))}</title>'
        f'<path class="way" d="{curve}"/><path class="head" d="{_head(middle, tip)}"/>'
        f'<text x="{label.x:.1f}" y="{label.y + 4:.1f}">{said}</text></g>'
    )


def _edge(node: Point, toward: Point) -> Point:
    """Return where the line from the middle of a node to a point leaves its box."""
    x, y = toward.x - node.x, toward.y - node.y
    share = min((NODE_WIDTH / 2 + 4) / (abs(x) or 1e-9), (NODE_HEIGHT / 2 + 4) / (abs(y) or 1e-9))
    return Point(node.x + x * share, node.y + y * share)


def _head(from_point: Point, tip: Point) -> str:
    apart = hypot(tip.x - from_point.x, tip.y - from_point.y) or 1.0
    along = Point((tip.x - from_point.x) / apart, (tip.y - from_point.y) / apart)
    back = Point(tip.x - HEAD * along.x, tip.y - HEAD * along.y)
    side = Point(-along.y * HEAD / 2, along.x * HEAD / 2)
    return (
        f"M{tip.x:.1f} {tip.y:.1f}L{back.x + side.x:.1f} {back.y + side.y:.1f}"
        f"L{back.x - side.x:.1f} {back.y - side.y:.1f}Z"
    )


def _told(row: Row) -> str:
    """Return what is said of a pair where the pointer rests."""
    bridges = ", ".join(row["bridges"])
    by = f" by {bridges}" if bridges else ""
    return (
        f"{row['source']} to {row['target']}{by}: {text.count(_went(row))} messages, "
        f"{text.count(row['waiting'])} of them wait, {text.count(row['stranded'])} stranded"
    )


def _summary(rows: Iterable[Row], nodes: Iterable[Node]) -> str:
    absent = [node.name for node in nodes if node.waiting is None]
    parts = [_told(row) for row in rows if _went(row)] or ["no message went over a bridge"]
    if absent:
        parts.append(f"without a journal: {', '.join(absent)}")
    return escape("; ".join(parts))


def _legend(rows: Iterable[Row], nodes: Iterable[Node]) -> str:
    """Return what the colours of arrows, and dashes, stand for, as far as they are drawn."""
    rows = list(rows)
    entries = [("in", "messages that went")]
    if any(row["stranded"] for row in rows):
        entries.append(("bad", "some of them are stranded"))
    if any(not _went(row) for row in rows):
        entries.append(("gone", "a bridge without messages"))
    if any(node.waiting is None for node in nodes):
        entries.append(("absent", "a broker whose journal is not given"))
    listed = "".join(f'<li class="tone-{tone}">{said}</li>' for tone, said in entries)
    return f'<ul class="legend">{listed}</ul>'
