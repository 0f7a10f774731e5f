"""Results of the bench, and what a broker's processes have used so far."""

import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Result:
    """One run of a scenario: rate in messages/s, CPU in µs per message, latencies in µs.

    `calls` are those of the broker that read or write something, for each message; `peak_mb` the
    most memory that it has had since its start; `curve` has latencies by percentile. `pause_us` is
    the longest time for which a prober got no answer, `stall_us` what its own process stood still.
    """

    broker: str
    scenario: str
    round: int
    rate: float
    cpu_us: float
    calls: float
    peak_mb: float
    p50_us: float | None = None
    p99_us: float | None = None
    p999_us: float | None = None
    max_us: float | None = None
    curve: dict[str, float] | None = None
    pause_us: float | None = None
    stall_us: float | None = None


@dataclass(frozen=True)
class Failure:
    """A run of a scenario that has no result: it and all later ones at this broker are left out."""

    broker: str
    scenario: str
    round: int
    reason: str


@dataclass(frozen=True)
class Syncs:
    """What strace counted in a run of its own: how often the broker synced, for each message."""

    broker: str
    scenario: str
    syncs: float


@dataclass(frozen=True)
class Usage:
    """What a broker's processes have used since their start: seconds, calls, and MB at most."""

    cpu: float
    calls: int
    peak_mb: float


def usage(process_id: int) -> Usage:
    """Return what a process and all that it has started have used."""
    root = psutil.Process(process_id)
    tree = [process_id, *(child.pid for child in root.children(recursive=True))]
    found = [each for each in map(_usage_of_one, tree) if each is not None]
    return Usage(*map(sum, zip(*found, strict=True)))


def _usage_of_one(process_id: int) -> tuple[float, int, float] | None:
    """Return seconds, calls and peak of one process; None if it has just ended."""
    process = Path("/proc", str(process_id))
    try:
        # The name in parentheses may hold spaces. Fields 14 to 17 are utime and stime, and what
        # processes that it has waited for have used: those end meanwhile.
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        told = _table(process / "io") | _table(process / "status")
        cpu = sum(map(int, fields[11:15])) / CLOCK_TICKS_PER_SECOND
        calls = int(told["syscr"]) + int(told["syscw"])
        return cpu, calls, int(told["VmHWM"].split()[0]) * 1024 / 1e6
    except (OSError, KeyError):
        return None


def _table(path: Path) -> dict[str, str]:
    """Return the lines `name: value` of a file."""
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return {name: value.strip() for name, _, value in lines}


def median_of(results: list[Result], broker: str, scenario: str, measure: str) -> float | None:
    """Return the median over the rounds, or None when it was not measured."""
    values = values_of(results, broker, scenario, measure)
    return median(values) if values else None


def values_of(results: list[Result], broker: str, scenario: str, measure: str) -> list[float]:
    """Return what was measured, round by round."""
    found = [
        getattr(each, measure)
        for each in results
        if each.broker == broker and each.scenario == scenario
    ]
    return [] if None in found else found
