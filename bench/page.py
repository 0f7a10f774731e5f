"""One page with plots of a report of the bench: `bench/page.py REPORT PAGE.html`.

Plots are SVG that is written here: a browser shows it without a script, people select its text,
and two kinds of plots do not need a library.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from measuring import values_of
from plots import Series, axis, beyond, curves, percentile_axis, scatter, symbol
from rendering import InvalidReportError, Report, behind, parse
from scenarios import LATENCY_SCENARIOS, SCENARIOS, unfit

STYLE = Path(__file__).with_name("page.css")


def build(told: dict[str, Any]) -> str:
    """Return the page of a report. Raises InvalidReportError."""
    report = parse(told)
    figures = [_figure(report, each, _throughput(report, each)) for each in report.scenarios]
    latencies = [
        _figure(report, each, _latency(report, each))
        for each in report.scenarios
        if each in LATENCY_SCENARIOS
    ]
    sections = [
        _section("Throughput against CPU", "Up is more, left is cheaper.", figures),
        _section("Latency", "Lower is better; each grid line is another nine.", latencies),
        _losses(report),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>The bench</title><style>{STYLE.read_text()}</style></head><body>"
        f"{_head(report)}{''.join(sections)}</body></html>\n"
    )


def _head(report: Report) -> str:
    machine, told = report.told["machine"], report.told
    rounds = max((each.round for each in report.results), default=0)
    legend = "".join(
        f'<li><svg viewBox="-8 -8 16 16">{symbol(number, 0, 0)}</svg>{escape(kind)}'
        f" <small>{escape(str(told['versions'].get(kind, '')))}</small></li>"
        for number, kind in enumerate(report.brokers)
    )
    where = (
        f"{told['time']}, {machine['cores']} cores, {machine['processor']}, "
        f"{machine['memory_gb']} GB, {machine['system']}, "
        f"{told['versions'].get('java', 'no Java')}"
    )
    how = (
        f"Large symbols are medians of {rounds} rounds of {told['seconds']:g} s after "
        f"{told['warm_up_seconds']:g} s of warm-up, small ones the rounds."
    )
    return (
        f"<header><h1>Brokers beside each other</h1><p>{escape(where)}</p><p>{escape(how)}</p>"
        f'<ul class="legend">{legend}</ul></header>'
    )


def _section(title: str, lead: str, figures: list[str]) -> str:
    body = "".join(figures)
    if not body:
        return ""
    return f'<section><h2>{title}</h2><p>{lead}</p><div class="plots">{body}</div></section>'


def _figure(report: Report, scenario: str, plot: str) -> str:
    if not plot:
        return ""
    without = [
        f"{kind} is not here: {why}"
        for kind in report.brokers
        if (why := unfit(kind, scenario)) is not None
    ]
    note = f"<small>{escape('; '.join(without))}</small>" if without else ""
    caption = f"<figcaption><b>{scenario}</b> {escape(SCENARIOS[scenario])}{note}</figcaption>"
    return f"<figure>{caption}{plot}</figure>"


def _throughput(report: Report, scenario: str) -> str:
    rounds, medians = [], []
    for number, kind in enumerate(report.brokers):
        cpu = values_of(report.results, kind, scenario, "cpu_us")
        rate = values_of(report.results, kind, scenario, "rate")
        points = [(x, y) for x, y in zip(cpu, rate, strict=True) if x > 0 and y > 0]
        if points:
            middle = median(x for x, _ in points), median(y for _, y in points)
            rounds.append(Series(kind, number, points))
            medians.append(Series(kind, number, [middle]))
    if not rounds:
        return ""
    across = axis("CPU µs a message", (x for each in rounds for x, _ in each.points))
    up = axis("messages/s", (y for each in rounds for _, y in each.points))
    return scatter(across, up, rounds, medians)


def _latency(report: Report, scenario: str) -> str:
    lines = []
    for number, kind in enumerate(report.brokers):
        points = [
            (beyond(percentile), value) for percentile, value in _curve(report, kind, scenario)
        ]
        if points:
            lines.append(Series(kind, number, points))
    if not lines:
        return ""
    most = 100 - 100 / max(x for each in lines for x, _ in each.points)
    up = axis("µs", (y for each in lines for _, y in each.points))
    return curves(percentile_axis(most), up, lines)


def _curve(report: Report, kind: str, scenario: str) -> Iterator[tuple[float, float]]:
    """Yield percentiles, and the median of all rounds at each; only what all rounds have."""
    found = [
        each.curve
        for each in report.results
        if each.broker == kind and each.scenario == scenario and each.curve
    ]
    if not found:
        return
    for name in found[0]:
        values = [each[name] for each in found if each.get(name, 0) > 0]
        if len(values) == len(found):
            yield float(name), median(values)


def _losses(report: Report) -> str:
    first, *others = report.brokers
    if not others:
        return ""
    listed = "".join(f"<li>{escape(each)}</li>" for each in behind(report)) or "<li>nowhere</li>"
    title = f"Where {escape(first)} is behind"
    return f"<section><h2>{title}</h2><p>As a ratio to the other.</p><ul>{listed}</ul></section>"


def main(given: list[str] | None = None) -> None:
    """Write the page of a report."""
    parser = argparse.ArgumentParser(description="One page with plots of a report of the bench.")
    parser.add_argument("report", type=Path, help="a file of bench/results")
    parser.add_argument("page", type=Path, help="the page that is written")
    asked = parser.parse_args(given)
    try:
        asked.page.write_text(build(json.loads(asked.report.read_text())))
    except (OSError, ValueError, InvalidReportError) as error:
        sys.exit(f"{asked.report}: {error}")


if __name__ == "__main__":
    main()
