"""Small plots as SVG, with logarithmic axes: points of rounds, and curves."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 40
TICKS_MAX = 6
SYMBOLS = "circle", "square", "diamond", "triangle", "cross", "ring"

Point = tuple[float, float]


class Series(NamedTuple):
    """What is drawn of one broker; `number` chooses colour and symbol."""

    name: str
    number: int
    points: list[Point]


class Axis(NamedTuple):
    """A range of values, the values that are marked, and how they are called."""

    title: str
    low: float
    high: float
    ticks: list[tuple[float, str]]

    def share(self, value: float) -> float:
        """Return where a value lies, from 0 to 1."""
        return math.log(value / self.low) / math.log(self.high / self.low)


def axis(title: str, values: Iterable[float]) -> Axis:
    """Return the axis that spans values, all of them above 0, with round numbers marked."""
    found = [*values]
    low, high = min(found) / 1.25, max(found) * 1.25
    for steps in ((1, 2, 5), (1, 3), (1,)):
        marks = [*_round_numbers(low, high, steps)]
        if len(marks) <= TICKS_MAX:
            break
    return Axis(title, low, high, [(each, short(each)) for each in marks])


def _round_numbers(low: float, high: float, steps: Sequence[int]) -> Iterable[float]:
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for step in steps:
            if low <= step * 10.0**power <= high:
                yield step * 10.0**power


def short(value: float) -> str:
    """Return a number as people write it at an axis: 0.5, 20, 5k, 2M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def percentile_axis(most: float) -> Axis:
    """Return the axis on which each further nine takes as much room; it ends at *most* percent."""
    ticks = [(50, "50"), (90, "90"), (99, "99"), (99.9, "99.9"), (99.99, "99.99")]
    shown = [(beyond(each), text) for each, text in ticks if each <= most]
    return Axis("percentile", beyond(10), max(beyond(most), beyond(90)) * 1.15, shown)


def beyond(percentile: float) -> float:
    """Return of how many messages one is slower than a percentile."""
    return 1 / (1 - percentile / 100)


def scatter(across: Axis, up: Axis, rounds: list[Series], medians: list[Series]) -> str:
    """Return a plot of points: faint ones of rounds, and the medians."""
    x, y = _scales(across, up)
    marks = [
        f'<circle class="c{each.number} faint" cx="{x(px):.1f}" cy="{y(py):.1f}" r="2.5"/>'
        for each in rounds
        for px, py in each.points
    ]
    for each in medians:
        for px, py in each.points:
            title = f"{each.name}: {short_of(up, py)}, {short_of(across, px)}"
            marks.append(
                f"<g><title>{escape(title)}</title>{symbol(each.number, x(px), y(py))}</g>"
            )
    return _plot(across, up, "".join(marks))


def curves(across: Axis, up: Axis, lines: list[Series]) -> str:
    """Return a plot of lines with a symbol at each point."""
    x, y = _scales(across, up)
    drawn = []
    for each in lines:
        points = [(x(px), y(py)) for px, py in each.points]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        marks = "".join(symbol(each.number, px, py, 3) for px, py in points)
        title = f"<title>{escape(each.name)}</title>"
        drawn.append(
            f'<g>{title}<polyline class="c{each.number} line" points="{path}"/>{marks}</g>'
        )
    return _plot(across, up, "".join(drawn))


def short_of(axis: Axis, value: float) -> str:
    """Return a value with what it is."""
    return f"{value:,.0f} {axis.title}" if value >= 100 else f"{value:.1f} {axis.title}"


def symbol(number: int, x: float, y: float, size: float = 5) -> str:
    """Return the symbol of a broker, so that colour is not all that tells it."""
    kind, where = SYMBOLS[number % len(SYMBOLS)], f'class="c{number}"'
    if kind == "circle":
        return f'<circle {where} cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'
    if kind == "ring":
        return f'<circle {where} style="fill:none" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'
    shapes: dict[str, list[Point]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "diamond": [(0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)],
        "triangle": [(0, -1.25), (1.2, 0.95), (-1.2, 0.95)],
        "cross": [(-1, -1), (0, -0.4), (1, -1), (0.4, 0), (1, 1), (0, 0.4), (-1, 1), (-0.4, 0)],
    }
    path = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in shapes[kind])
    return f'<polygon {where} points="{path}"/>'


def _scales(across: Axis, up: Axis) -> tuple[Callable[[float], float], Callable[[float], float]]:
    return (
        lambda value: LEFT + across.share(value) * (WIDTH - LEFT - RIGHT),
        lambda value: HEIGHT - BOTTOM - up.share(value) * (HEIGHT - TOP - BOTTOM),
    )


def _plot(across: Axis, up: Axis, marks: str) -> str:
    x, y = _scales(across, up)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    grid = "".join(
        f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text x="{x(value):.1f}" y="{bottom + 15}" text-anchor="middle">{text}</text>'
        for value, text in across.ticks
    ) + "".join(
        f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{text}</text>'
        for value, text in up.ticks
    )
    middle, half = (LEFT + right) / 2, (TOP + bottom) / 2
    titles = (
        f'<text class="title" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{escape(across.title)}</text>"
        f'<text class="title" transform="translate(12 {half}) rotate(-90)" text-anchor="middle">'
        f"{escape(up.title)}</text>"
    )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{grid}{titles}{marks}</svg>'
