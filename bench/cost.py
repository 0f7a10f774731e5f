"""What a message costs the broker's process, in CPU time: this version, or two in alternation.

Unlike `run.py` it needs no Java: frames are made beforehand and sent in lock step, so that every
run asks the same of the broker and the client costs little. Two versions take turns in rounds so
short that whatever else the machine does is the same for both.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(TESTS / "interop"), str(TESTS)]

import brokers  # noqa: E402
from loads import SCENARIOS, Load, Socket  # noqa: E402
from ports import free_port  # noqa: E402

SECONDS_MAX = 120
SCHEDULED_CLOCK = 2
QUIET_SECONDS, QUIET_SHARE, QUIET_ATTEMPTS_MAX = 0.3, 0.02, 40


class Version:
    """One version of the broker, running."""

    def __init__(self, name: str, checkout: Path | None, directory: Path) -> None:
        self.name = name
        setting = []
        if checkout is not None:
            roots = (checkout / "broker_image", checkout / "crds")
            setting = ["env", f"PYTHONPATH={os.pathsep.join(map(str, roots))}"]
        where = [*setting, sys.executable, "-c", "import lockkeeper; print(lockkeeper.__file__)"]
        self.place = subprocess.check_output(where, text=True).strip()
        port = free_port()
        command = [*setting, *brokers.lockkeeper_command(directory, port)]
        self.running = brokers.RunningBroker(brokers.LOCKKEEPER[-1], port, directory, command)

    def connect(self) -> Socket:
        """Return a new connection."""
        return Socket(self.running.port, SECONDS_MAX)

    def rest(self) -> None:
        """Wait until the process has done what it does by itself: new journal files above all."""
        used = self.cpu()
        for _ in range(QUIET_ATTEMPTS_MAX):
            time.sleep(QUIET_SECONDS)
            before, used = used, self.cpu()
            if used - before < QUIET_SHARE * QUIET_SECONDS:
                return

    def cpu(self) -> float:
        """Return the CPU time of all threads so far, in seconds, of those that have ended, too.

        /proc/*/stat has only ticks: this is the process's own clock, as clock_getcpuclockid(3)
        gives it on Linux.
        """
        return time.clock_gettime(~self.running.process.pid << 3 | SCHEDULED_CLOCK)


def measured(version: Version, load: Load, messages: int) -> float:
    """Return the CPU time per message in µs, over *messages* or some more."""
    used, done = 0.0, 0
    while done < messages:
        load.prepare()
        began = version.cpu()
        done += load.run()
        used += version.cpu() - began
    return used / done * 1e6


def compared(versions: list[Version], scenario: str, options: argparse.Namespace) -> str:
    """Return a line of the table."""
    loads = [Load(version.connect, scenario) for version in versions]
    found: list[list[float]] = [[] for _ in versions]
    for number in range(options.rounds + 1):
        turns = list(range(len(versions)))
        for turn in turns if number % 2 else reversed(turns):
            cost = measured(versions[turn], loads[turn], options.messages)
            if number:
                found[turn].append(cost)
            else:
                # The first round makes queues, files and habits.
                versions[turn].rest()
    for load in loads:
        load.close()
    line = f"{scenario:12}" + "".join(f"{median(costs):12.1f}" for costs in found)
    if len(found) > 1:
        ratios = sorted(ours / theirs for ours, theirs in zip(*found, strict=True))
        quarter = len(ratios) // 4
        line += f"{median(found[0]) / median(found[1]):9.3f}{median(ratios):9.3f}"
        line += f"   {ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f}"
    return line


@contextmanager
def running(options: argparse.Namespace) -> Iterator[list[Version]]:
    """Run the versions that are to be compared."""
    versions: list[Version] = []
    with TemporaryDirectory(dir=options.directory, prefix="cost-") as place:
        try:
            versions.append(Version("this", None, Path(place, "this")))
            if options.beside:
                versions.append(Version("beside", options.beside.resolve(), Path(place, "beside")))
            yield versions
        finally:
            for version in versions:
                version.running.stop()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The broker's CPU time per message.")
    parser.add_argument("--beside", type=Path, help="the checkout of another version")
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--messages", type=int, default=500, help="of a round, at least")
    parser.add_argument("--directory", type=Path, help="where journals go")
    return parser.parse_args()


def main() -> None:
    """Run every scenario and print what it costs."""
    options = arguments()
    with running(options) as versions:
        for version in versions:
            print(f"{version.name}: {version.place}")
        titles = "".join(f"{version.name:>12}" for version in versions)
        more = "    ratio  by round, half of the rounds" if options.beside else ""
        print(f"\n{'CPU µs/msg':12}{titles}{more}")
        for scenario in options.scenarios:
            print(compared(versions, scenario, options), flush=True)


if __name__ == "__main__":
    main()
