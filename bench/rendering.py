"""Renders a report of the bench in Markdown: `bench/rendering.py REPORT [--into docs/bench.md]`.

`--check FILE` says whether a file has what the report says, and nothing that was typed.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from measuring import Failure, Result, Syncs, median_of, values_of
from scenarios import LATENCY_SCENARIOS, MIXED_DAY, SCENARIOS, unfit

BEGIN, END = "<!-- The report begins -->", "<!-- The report ends -->"


class Measure(NamedTuple):
    """A column of the table; `latency` ones stand only where latency says something."""

    name: str
    title: str
    form: str
    latency: bool = False


MEASURES = (
    Measure("rate", "messages/s", "{:,.0f}"),
    Measure("cpu_us", "CPU µs", "{:.1f}"),
    Measure("calls", "I/O calls", "{:.2f}"),
    Measure("peak_mb", "peak MB", "{:,.0f}"),
    Measure("p50_us", "p50 µs", "{:,.0f}", latency=True),
    Measure("p99_us", "p99 µs", "{:,.0f}", latency=True),
    Measure("p999_us", "p99.9 µs", "{:,.0f}", latency=True),
    Measure("pause_us", "longest pause µs", "{:,.0f}", latency=True),
    Measure("stall_us", "the prober's own µs", "{:,.0f}", latency=True),
)
SPREAD = {"rate", "cpu_us", "p50_us", "p99_us", "p999_us"}
"""Measures that are shown with the least and the most of all rounds."""

UNCOMPARED = {"calls", "stall_us"}
"""Measures that do not say who is ahead: not all calls are counted; stalls are the client's."""


class InvalidReportError(Exception):
    """A file is no report of the bench."""


class Report(NamedTuple):
    """What a run of the bench has found."""

    told: dict[str, Any]
    brokers: list[str]
    scenarios: list[str]
    results: list[Result]
    syncs: dict[tuple[str, str], float]
    failures: list[Failure]


def parse(told: Any) -> Report:
    """Return what a report has. Raises InvalidReportError."""
    try:
        results = [Result(**each) for each in told["results"]]
        counted = [Syncs(**each) for each in told["syncs"]]
        report = Report(
            told,
            list(told["brokers"]),
            list(told["scenarios"]),
            results,
            {(each.broker, each.scenario): each.syncs for each in counted},
            [Failure(**each) for each in told["failures"]],
        )
        told["machine"], told["versions"], told["seconds"], told["warm_up_seconds"], told["time"]
    except (KeyError, TypeError) as error:
        raise InvalidReportError(f"no report of the bench: {error!r}") from error
    for each in results:
        _check(each, report)
    return report


def _check(result: Result, report: Report) -> None:
    """Refuse what cannot have been measured."""
    where = f"{result.broker}, scenario {result.scenario}, round {result.round}"
    if result.scenario not in SCENARIOS or result.scenario not in report.scenarios:
        raise InvalidReportError(f"{where}: no such scenario in this report")
    if result.broker not in report.brokers:
        raise InvalidReportError(f"{where}: no such broker in this report")
    for measure in MEASURES:
        value = getattr(result, measure.name)
        if value is None and measure.latency:
            continue
        if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise InvalidReportError(f"{where}: {measure.name} is {value!r}")


def markdown(told: dict[str, Any]) -> str:
    """Return a report in Markdown: the machine, a table a scenario, and where the first is behind.

    Raises InvalidReportError.
    """
    report = parse(told)
    parts = [_head(report), *(_table(report, each) for each in report.scenarios), _losses(report)]
    return "\n\n".join(part for part in parts if part)


def _head(report: Report) -> str:
    machine, told = report.told["machine"], report.told
    versions = ", ".join(f"{kind} {number}" for kind, number in told["versions"].items())
    rounds = max((each.round for each in report.results), default=0)
    return (
        f"Measured {told['time']} on {machine['cores']} cores, {machine['processor']}, "
        f"{machine['memory_gb']} GB, {machine['system']}; {versions}.\n"
        f"Medians of {rounds} rounds of {told['seconds']:g} s after {told['warm_up_seconds']:g} s "
        "of warm-up; in brackets the least and the most."
        + "".join(f"\n{_left_out(each)}" for each in report.failures)
    )


def _left_out(failure: Failure) -> str:
    where = f"**{failure.scenario}** at {failure.broker}"
    return f"{where} is left out from round {failure.round} on: {failure.reason}."


def _table(report: Report, scenario: str) -> str:
    first = report.brokers[0]
    measures = [each for each in MEASURES if _tells(each, scenario)]
    counted = any((kind, scenario) in report.syncs for kind in report.brokers)
    titles = [each.title for each in measures] + ["syncs"] * counted
    lines = [
        f"**{scenario}**: {SCENARIOS[scenario]}\n",
        f"| | {' | '.join(titles)} | rate, CPU: {first} / it |",
        "|---" * (len(titles) + 2) + "|",
    ]
    for kind in report.brokers:
        why = unfit(kind, scenario)
        if why:
            lines.append(f"| {kind} | {why} |" + " |" * len(titles))
            continue
        cells = [_cell(report, kind, scenario, measure) for measure in measures]
        if counted:
            found = report.syncs.get((kind, scenario))
            cells.append("-" if found is None else f"{found:.3f}")
        lines.append(f"| {kind} | {' | '.join(cells)} | {_ratios(report, kind, scenario)} |")
    return "\n".join(lines)


def _tells(measure: Measure, scenario: str) -> bool:
    """Tell whether a measure says something about a scenario."""
    if measure.name in ("pause_us", "stall_us"):
        return scenario == MIXED_DAY
    return scenario in LATENCY_SCENARIOS or not measure.latency


def _cell(report: Report, kind: str, scenario: str, measure: Measure) -> str:
    values = values_of(report.results, kind, scenario, measure.name)
    middle = median_of(report.results, kind, scenario, measure.name)
    if middle is None:
        return "-"
    text = measure.form.format(middle)
    if measure.name in SPREAD and len(values) > 1:
        least, most = (measure.form.format(end(values)) for end in (min, max))
        text += f" ({least} to {most})"
    return text


def _ratio(report: Report, kind: str, scenario: str, measure: str) -> float | None:
    """Return the first broker's median by that of another; None where there is none."""
    ours = median_of(report.results, report.brokers[0], scenario, measure)
    theirs = median_of(report.results, kind, scenario, measure)
    return ours / theirs if ours is not None and theirs else None


def _ratios(report: Report, kind: str, scenario: str) -> str:
    found = [_ratio(report, kind, scenario, measure) for measure in ("rate", "cpu_us")]
    return ", ".join("-" if each is None else f"{each:.2f}" for each in found)


def behind(report: Report) -> list[str]:
    """Return all in which the first broker is behind another."""
    lines = []
    for scenario in report.scenarios:
        for kind in report.brokers[1:]:
            found = [
                f"{measure.title} {ratio:.2f}"
                for measure, ratio in _compared(report, kind, scenario)
                if round(ratio, 2) != 1 and (ratio < 1) == (measure.name == "rate")
            ]
            if found:
                lines.append(f"{scenario}, of {kind}'s: {', '.join(found)}")
    return lines


def _losses(report: Report) -> str:
    first, *others = report.brokers
    if not others:
        return ""
    listed = "\n".join(f"- {each}" for each in behind(report) or ["nowhere"])
    return f"**Where {first} is behind**, as a ratio to the other broker:\n\n{listed}"


def _compared(report: Report, kind: str, scenario: str) -> Iterator[tuple[Measure, float]]:
    """Yield the ratios that tell who is ahead."""
    for measure in MEASURES:
        ratio = _ratio(report, kind, scenario, measure.name)
        if ratio is not None and _tells(measure, scenario) and measure.name not in UNCOMPARED:
            yield measure, ratio


def placed(page: str, text: str) -> str:
    """Return a page with *text* between its marks. Raises InvalidReportError without marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise InvalidReportError(f"the page has no {BEGIN} before {END}")
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}"


def main(given: list[str] | None = None) -> None:
    """Print a report, put it into a page, or compare it with one."""
    parser = argparse.ArgumentParser(description="Renders a report of the bench in Markdown.")
    parser.add_argument("report", type=Path, help="a file of bench/results")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--into", type=Path, help="a page with marks, into which it is written")
    where.add_argument("--check", type=Path, help="a page that has to have just this")
    asked = parser.parse_args(given)
    try:
        text = markdown(json.loads(asked.report.read_text()))
        if asked.into:
            asked.into.write_text(placed(asked.into.read_text(), text))
        elif asked.check:
            if placed(asked.check.read_text(), text) != asked.check.read_text():
                sys.exit(f"{asked.check} does not say what {asked.report} says: run --into")
        else:
            print(text)
    except (OSError, ValueError, InvalidReportError) as error:
        sys.exit(f"{asked.report}: {error}")


if __name__ == "__main__":
    main()
