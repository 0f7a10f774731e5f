"""Measures our broker beside others, in the same minutes, with ActiveMQ's own Java client.

Each round runs every scenario against one broker after the other, in an order that changes from
round to round, so that a noisy machine is noisy for all. The client takes most of the machine,
therefore the broker's own CPU time per message is the steadiest number.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from others import COMMANDS, HERE, OURS, URL_OPTIONS, brokers, java_project, missing, start

from lockkeeper.journal.records import Trace
from lockkeeper.journal.verify import StoredRecord, read_records

RESULTS = HERE / "results"

SCENARIOS = {
    "a": "persistent sends, each answered, 1 producer (latency: send)",
    "b": "persistent, 16 producers and 16 consumers, one queue",
    "c": "persistent, transactions of 100, 4 producers and 4 consumers",
    "d": "non-persistent, 1 producer and 1 consumer",
    "e": "topic, 1 producer and 10 consumers (counted: deliveries)",
    "f": "a backlog of 50,000 persistent messages is emptied",
    "g": "1,000 persistent messages/s (latency: send to listener)",
    "h": "persistent, 4 producers, 10 consumers with selectors that share nothing",
    "i": "persistent, 1,000 message groups, 4 producers and 4 consumers",
    "j": "persistent, 1 producer, 100 durable subscribers (counted: deliveries)",
    "k": "persistent, bodies of 100 KiB, 4 producers and 4 consumers",
    "l": "persistent, bodies of 5 MiB, 1 producer and 1 consumer",
    "m": "1,000 persistent messages/s over 1,000 connections (latency: send to listener)",
    "n": "topic, 1 producer and 100 consumers (counted: deliveries)",
    "o": "non-persistent requests and replies, 4 at a time (latency: round trip)",
    "p": "a backlog of 1,000,000 persistent messages is emptied",
}
USUAL = "abcdefg"
LATENCY_SCENARIOS = "abgmo"
"""Where latency says something; elsewhere it is only what is under way by the rate."""

CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
LOAD_SECONDS_MAX = 1800


@dataclass(frozen=True)
class Result:
    """One run of a scenario: rate in messages/s, CPU in µs per message, latencies in µs.

    `calls` are those of the broker that read or write something, for each message; `peak_mb` the
    most memory that it has had since its start.
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


MEASURES = {
    "rate": ("msgs/s", "{:,.0f}"),
    "cpu_us": ("CPU µs/msg", "{:.1f}"),
    "calls": ("I/O calls", "{:.2f}"),
    "peak_mb": ("peak MB", "{:,.0f}"),
    "p50_us": ("p50 µs", "{:,.0f}"),
    "p99_us": ("p99 µs", "{:,.0f}"),
    "p999_us": ("p99.9 µs", "{:,.0f}"),
}


LATENCIES = ("p50_us", "p99_us", "p999_us")


def cpu_seconds(process_id: int) -> float:
    """Return the user and system time that a process has used."""
    status = Path(f"/proc/{process_id}/stat").read_text()
    # The name in parentheses may hold spaces; utime and stime are fields 14 and 15.
    fields = status.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND


def io_calls(process_id: int) -> int:
    """Return how often a process has read or written something."""
    told = dict(
        line.split(": ") for line in Path(f"/proc/{process_id}/io").read_text().splitlines()
    )
    return int(told["syscr"]) + int(told["syscw"])


def peak_megabytes(process_id: int) -> float:
    """Return the most memory that a process has had."""
    status = Path(f"/proc/{process_id}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def run_load(
    running: brokers.RunningBroker, classpath: str, scenario: str, number: int, times: list[str]
) -> Result:
    """Run one scenario; the broker's CPU time is read when the load says START and END."""
    command = ["java", "-Xmx512M", "-cp", classpath, "dev.lockkeeper.bench.Load"]
    marks: dict[str, tuple[float, int]] = {}
    url = running.url + URL_OPTIONS.get(running.kind, "")
    last = ""
    with subprocess.Popen(
        [*command, scenario, url, *times], stdout=subprocess.PIPE, text=True
    ) as load:
        assert load.stdout is not None
        for line in load.stdout:
            last = line.strip()
            if last in ("START", "END"):
                pid = running.process.pid
                marks[last] = cpu_seconds(pid), io_calls(pid)
        if load.wait(LOAD_SECONDS_MAX) != 0:
            raise RuntimeError(f"scenario {scenario} failed against {running.kind}")
    found = json.loads(last)
    messages = max(found["messages"], 1)
    (cpu, calls), (cpu_before, calls_before) = marks["END"], marks["START"]
    return Result(
        running.kind,
        scenario,
        number,
        rate=found["messages"] / found["seconds"],
        cpu_us=(cpu - cpu_before) / messages * 1e6,
        calls=(calls - calls_before) / messages,
        peak_mb=peak_megabytes(running.process.pid),
        **{name: found.get(name) for name in ("p50_us", "p99_us", "p999_us", "max_us")},
    )


def run_rounds(
    running: list[brokers.RunningBroker], classpath: str, options: argparse.Namespace
) -> list[Result]:
    """Run all rounds and return every result; a line for each goes to the terminal."""
    times = [str(options.warm_up), str(options.seconds)]
    results = []
    for number in range(1, options.rounds + 1):
        for scenario in options.scenarios:
            for broker in running if number % 2 else reversed(running):
                result = run_load(broker, classpath, scenario, number, times)
                results.append(result)
                p50 = "" if result.p50_us is None else f"  p50 {result.p50_us:,.0f} µs"
                print(
                    f"round {number}  {scenario}  {broker.kind:10}  {result.rate:9,.0f} msgs/s"
                    f"  {result.cpu_us:6.1f} CPU µs/msg{p50}",
                    flush=True,
                )
    return results


def median_of(results: list[Result], broker: str, scenario: str, measure: str) -> float | None:
    """Return the median over the rounds, or None when it was not measured."""
    values = [
        getattr(each, measure)
        for each in results
        if each.broker == broker and each.scenario == scenario
    ]
    return median(values) if values and None not in values else None


def table(results: list[Result], scenarios: list[str], kinds: list[str]) -> str:
    """Return the medians of all brokers, in Markdown, and how the first is to each other one."""
    first, *others = kinds
    lines = []
    for scenario in scenarios:
        heads = [f"{first} / {each}" for each in others]
        lines += [f"\n**{scenario}**: {SCENARIOS[scenario]}\n"]
        lines += [f"| | {' | '.join([*kinds, *heads])} |", "|---" * (1 + len(kinds + heads)) + "|"]
        for measure, (title, form) in MEASURES.items():
            if (
                measure.endswith("_us")
                and measure != "cpu_us"
                and scenario not in LATENCY_SCENARIOS
            ):
                continue
            found = [median_of(results, kind, scenario, measure) for kind in kinds]
            shown = ["-" if each is None else form.format(each) for each in found]
            ours = found[0]
            shown += [
                "-" if ours is None or not each else f"{ours / each:.2f}" for each in found[1:]
            ]
            if any(each is not None for each in found):
                lines.append(f"| {title} | {' | '.join(shown)} |")
    return "\n".join(lines)


def recorded(journal: Path) -> str:
    """Return what of the bytes that are left of *journal* the flight recorder's are."""
    own = every = 0
    for found in read_records(journal):
        assert isinstance(found, StoredRecord), found
        every += found.size
        own += found.size if isinstance(found.record, Trace) else 0
    return f"The flight recorder's: {own:,} of {every:,} bytes in the journal ({own / every:.2%})"


def save(results: list[Result], options: argparse.Namespace) -> Path:
    """Write every result, and on what machine it was measured, as JSON."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    report = {
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "seconds": options.seconds,
        "warm_up_seconds": options.warm_up,
        "results": [asdict(each) for each in results],
    }
    path.write_text(json.dumps(report, indent=1) + "\n")
    return path


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Our broker beside others.")
    letters = "".join(SCENARIOS)
    parser.add_argument("--scenarios", default=USUAL, help=f"letters of {letters}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="measured time of a run")
    parser.add_argument("--warm-up", type=float, default=3.0, help="time before it, in seconds")
    parser.add_argument(
        "--brokers", nargs="+", choices=COMMANDS, default=[OURS, "activemq"],
        help="what is measured; all others are compared with the first one",
    )  # fmt: skip
    parser.add_argument(
        "--directory", type=Path, default=RESULTS, help="where journals go: a real disk, not tmpfs"
    )
    options = parser.parse_args()
    options.scenarios = list(dict.fromkeys(options.scenarios))
    unknown = [letter for letter in options.scenarios if letter not in SCENARIOS]
    if unknown or not options.scenarios:
        parser.error(f"--scenarios: {', '.join(unknown) or 'nothing'} is not among {letters}")
    return options


def main() -> None:
    """Start the brokers, run the rounds, print and save."""
    options = arguments()
    reason = java_project.missing()
    if reason:
        sys.exit(f"The bench needs a JDK and Maven; {reason}.")
    classpath = java_project.build(HERE / "java")
    options.directory.mkdir(parents=True, exist_ok=True)
    running: list[brokers.RunningBroker] = []
    with TemporaryDirectory(dir=options.directory, prefix="journals-") as directory:
        try:
            for kind in dict.fromkeys(options.brokers):
                why = missing(kind)
                if why:
                    print(f"Without {kind}: {why}.")
                else:
                    running.append(start(kind, Path(directory, kind)))
            if not running:
                sys.exit("There is no broker to measure.")
            results = run_rounds(running, classpath, options)
        finally:
            for broker in running:
                broker.stop()
        print(table(results, options.scenarios, [broker.kind for broker in running]))
        for broker in running:
            if broker.kind == OURS:
                print(f"\n{recorded(broker.directory / 'data')}")
    print(f"\nEvery run: {save(results, options)}")


if __name__ == "__main__":
    main()
