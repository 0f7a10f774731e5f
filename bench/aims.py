"""Aims of speed and size that the comparison with other brokers does not show, one command each.

`bench/aims.py backlog` and so on prints what was measured, and the bar that it is held against;
the exit code is 1 where one is missed. Without names it tries them all, in an hour or so.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import aims_backlog
import aims_idle
import aims_streams
import aims_time
from aims_common import Figure, Settings
from others import HERE, end_by_signal

RESULTS = HERE / "results"


class Aim(NamedTuple):
    """What is measured, and how much of it by default."""

    measure: Callable[[Settings], Iterator[Figure]]
    size: int
    counted: str


AIMS = {
    "backlog": Aim(aims_backlog.measure, 1_000_000, "messages of 1 KB that wait"),
    "start": Aim(aims_time.start, 1_000_000, "messages of 1 KB in the directory"),
    "connections": Aim(aims_idle.connections, 10_000, "idle connections"),
    "queues": Aim(aims_idle.queues, 100_000, "queues"),
    "streams": Aim(aims_streams.measure, 10_000_000, "messages of 1 KB in one partition"),
    "pauses": Aim(aims_time.pauses, 600, "seconds of the mixed day"),
}


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(
        description="Figures and the bars that they are held against.",
        epilog="; ".join(f"{name}: {aim.size:,} {aim.counted}" for name, aim in AIMS.items()),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(AIMS))
    parser.add_argument("--count", type=int, help="how many, see below")
    parser.add_argument(
        "--directory", type=Path, default=RESULTS, help="where journals go: a real disk, not tmpfs"
    )
    asked = parser.parse_args(given)
    unknown = [name for name in asked.names if name not in AIMS]
    if unknown:
        parser.error(f"{', '.join(unknown)} is not among {', '.join(AIMS)}")
    if asked.count is not None and (asked.count < 1 or len(asked.names) != 1):
        parser.error("--count: at least 1, and of one aim at a time")
    return asked


def main(given: list[str] | None = None) -> int:
    """Measure what was asked for; returns how many bars were missed, at most 1."""
    asked = arguments(given)
    end_by_signal()
    asked.directory.mkdir(parents=True, exist_ok=True)
    missed = False
    for name in asked.names or AIMS:
        aim = AIMS[name]
        count = asked.count or aim.size
        print(f"{name}: {count:,} {aim.counted}", flush=True)
        with TemporaryDirectory(dir=asked.directory, prefix="aims-") as directory:
            for figure in aim.measure(Settings(Path(directory), count)):
                print(f"  {figure}", flush=True)
                missed = missed or not figure.is_met
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
