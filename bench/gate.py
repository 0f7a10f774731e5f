"""The gate against a broker that has become slower: work per message, against limits.

Work is counted by valgrind's callgrind: allocations of Python objects, and instructions, which are
given in thousandths of what a loop of plain Python takes in the same run. What else the machine
does makes no difference. What the broker asks of the system is counted exactly.
"""

import argparse
import gc
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from inprocess import Recording, pin_times, player
from loads import SCENARIOS

LIMITS = Path(__file__).with_name("limits.json")
VERSION = ".".join(map(str, sys.version_info[:2]))
ROUNDS = 4
CALIBRATIONS = 20_000
# More than the same version ever varies by, and much less than a tenth.
TOLERANCE = 0.04
TOOL = ("valgrind", "--tool=callgrind", "--dump-before=sched_yield")


# Timers of the loop, which slow machines fire more often, allocate, too: 1 % was seen.
ALLOCATES = {"_PyObject_Malloc", "_PyObject_Calloc"}


class Counted(NamedTuple):
    """What callgrind counted between two marks."""

    instructions: int
    allocations: int


class Work(NamedTuple):
    """What one message takes: instructions in thousandths of the calibration, allocations, and the
    rest as whole counts over all messages of the scenario.
    """

    instructions: float
    allocations: float
    messages: int
    writes: int
    syncs: int
    turns: int


def calibrate() -> None:
    """Do what Python programs do: numbers, tuples, bytes, a dictionary."""
    kept: dict[int, tuple[int, bytes]] = {}
    for number in range(CALIBRATIONS):
        kept[number & 255] = (number, str(number).encode()[1:])


def play(scenarios: list[str]) -> None:
    """Play scenarios, a mark for callgrind before and after each, and print what was counted."""
    pin_times()
    os.sched_yield()
    calibrate()
    os.sched_yield()
    for scenario in scenarios:
        recording = Recording(scenario, ROUNDS)
        with player(recording) as played:
            gc.collect()
            gc.freeze()
            before = played.counts()
            os.sched_yield()
            played.run()
            os.sched_yield()
            counts = [now - then for now, then in zip(played.counts(), before, strict=True)]
            print(json.dumps([scenario, recording.messages, *counts]), flush=True)
            gc.unfreeze()


def measured(scenarios: list[str]) -> dict[str, Work]:
    """Return what the messages of each scenario take, counted in a process of its own."""
    with TemporaryDirectory() as place:
        command = [*TOOL, f"--callgrind-out-file={place}/out", sys.executable, __file__, "--play"]
        # Neither the order of sets nor a collection at another moment is to make a difference.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [*command, *scenarios], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the loads could not be played:\n{done.stderr[-3000:]}")
        files = sorted(Path(place).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        # Before each mark, a file: start, calibration, then a gap and a scenario in turns.
        calibration, *counted = map(_counted, [files[1], *files[3::2]])
        lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        scenario: Work(
            round(each.instructions / messages / calibration.instructions * 1000, 4),
            round(each.allocations / messages, 2),
            messages,
            *counts,
        )
        for (scenario, messages, *counts), each in zip(lines, counted, strict=True)
    }


def _counted(file: Path) -> Counted:
    """Return what one of callgrind's files tells; a function has its name where it comes first."""
    names: dict[str, str] = {}
    called = ""
    instructions = allocations = 0
    for line in file.read_text().splitlines():
        if function := re.fullmatch(r"c?fn=(\(\d+\))(?: (.*))?", line):
            called = names.setdefault(function[1], function[2])
        elif line.startswith("calls=") and called in ALLOCATES:
            allocations += int(line.removeprefix("calls=").split()[0])
        elif line.startswith("totals: "):
            instructions = int(line.removeprefix("totals: "))
    return Counted(instructions, allocations)


def complaints(work: dict[str, Work], limits: dict[str, Work]) -> Iterator[str]:
    """Yield what exceeds the limits."""
    for scenario, found in work.items():
        limit = limits[scenario]
        ratio = found.instructions / limit.instructions
        if ratio > 1 + TOLERANCE:
            yield f"{scenario}: {ratio:.3f} times the work that it took"
        if found.allocations > limit.allocations * (1 + TOLERANCE):
            yield f"{scenario}: {found.allocations} allocations instead of {limit.allocations}"
        if found[2:] != limit[2:]:
            names = ", ".join(Work._fields[2:])
            yield f"{scenario}: {found[2:]} instead of {limit[2:]} ({names}); `make gate WRITE=yes`"


def read_limits() -> dict[str, Work]:
    """Return the limits for this Python; none are known of one that was not measured."""
    told = json.loads(LIMITS.read_text()).get(VERSION, {})
    return {scenario: Work(*work) for scenario, work in told.items()}


def write_limits(work: dict[str, Work]) -> None:
    """Keep what was measured as the limits for this Python."""
    told = json.loads(LIMITS.read_text())
    told[VERSION] = {**told.get(VERSION, {}), **work}
    text = json.dumps(told, indent=1, sort_keys=True)
    # A scenario a line.
    LIMITS.write_text(re.sub(r"\s+([\d.]+,?)(?=\n)", r" \1", text).replace("\n  ]", "]") + "\n")


def main() -> int:
    """Measure, print, and compare."""
    parser = argparse.ArgumentParser(description="Work per message against its limits.")
    parser.add_argument("--play", action="store_true", help="do the work that is counted")
    parser.add_argument("--write", action="store_true", help="make what is measured the limits")
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], default=[])
    options = parser.parse_args()
    scenarios = options.scenarios or list(SCENARIOS)
    if options.play:
        play(scenarios)
        return 0
    if shutil.which(TOOL[0]) is None:
        print(f"The gate is skipped: {TOOL[0]} is not installed (apt-get install {TOOL[0]}).")
        return 0
    work = measured(scenarios)
    limits = read_limits()
    print(
        f"Python {VERSION}    instructions   limit   allocations   limit"
        "   writes   syncs   turns   per message"
    )
    for scenario, found in work.items():
        limit = limits.get(scenario)
        counts = "".join(f"{count / found.messages:8.3f}" for count in found[3:])
        known = "-" if limit is None else f"{limit.instructions:.3f}"
        allocated = "-" if limit is None else f"{limit.allocations:.1f}"
        print(
            f"{scenario:12}{found.instructions:14.3f}{known:>8}"
            f"{found.allocations:14.1f}{allocated:>8} {counts}"
        )
    if options.write:
        write_limits(work)
        return 0
    if not limits:
        print(f"No limits are known for Python {VERSION}; `make gate WRITE=yes` keeps these.")
        return 0
    wrong = list(complaints(work, limits))
    print("\n".join(wrong) or "Within the limits.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
