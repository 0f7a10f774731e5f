"""Measures our broker beside ActiveMQ, in the same minutes, with ActiveMQ's own Java client.

Or beside itself without the flight recorder, for what that costs.

Each round runs every scenario against one broker and then against the other, in an order that
changes from round to round, so that a noisy machine is noisy for both. The client takes most of
the machine, therefore the broker's own CPU time per message is the steadiest number.
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

HERE = Path(__file__).parent
RESULTS = HERE / "results"
sys.path.insert(0, str(HERE.parent / "tests" / "interop"))

import brokers  # noqa: E402
import java_project  # noqa: E402

from lockkeeper.journal.records import Trace  # noqa: E402
from lockkeeper.journal.verify import StoredRecord, read_records  # noqa: E402

SCENARIOS = {
    "a": "persistent sends, each answered, 1 producer (latency: send)",
    "b": "persistent, 16 producers and 16 consumers, one queue",
    "c": "persistent, transactions of 100, 4 producers and 4 consumers",
    "d": "non-persistent, 1 producer and 1 consumer",
    "e": "topic, 1 producer and 10 consumers (counted: deliveries)",
    "f": "a backlog of 50,000 persistent messages is emptied",
    "g": "1,000 persistent messages/s (latency: send to listener)",
}
LATENCY_SCENARIOS = "abg"
"""Where latency says something; elsewhere it is only what is under way by the rate."""

OURS, THEIRS, UNRECORDED = "lockkeeper", "activemq", "unrecorded"
CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
LOAD_SECONDS_MAX = 600


@dataclass(frozen=True)
class Result:
    """One run of a scenario: rate in messages/s, CPU in µs per message, latencies in µs."""

    broker: str
    scenario: str
    round: int
    rate: float
    cpu_us: float
    p50_us: float | None = None
    p99_us: float | None = None
    p999_us: float | None = None
    max_us: float | None = None


MEASURES = {
    "rate": ("msgs/s", "{:,.0f}"),
    "cpu_us": ("CPU µs/msg", "{:.1f}"),
    "p50_us": ("p50 µs", "{:,.0f}"),
    "p99_us": ("p99 µs", "{:,.0f}"),
    "p999_us": ("p99.9 µs", "{:,.0f}"),
}


def cpu_seconds(process_id: int) -> float:
    """Return the user and system time that a process has used."""
    status = Path(f"/proc/{process_id}/stat").read_text()
    # The name in parentheses may hold spaces; utime and stime are fields 14 and 15.
    fields = status.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND


def start(kind: str, directory: Path) -> brokers.RunningBroker:
    """Start a broker that keeps its data below *directory*."""
    if kind != UNRECORDED:
        return brokers.start_broker(kind, directory)
    port = brokers.free_port()
    configuration = str(HERE / UNRECORDED)
    command = brokers.lockkeeper_command(directory, port, configuration)
    return brokers.RunningBroker(kind, port, directory, command)


def run_load(
    running: brokers.RunningBroker, classpath: str, scenario: str, number: int, times: list[str]
) -> Result:
    """Run one scenario; the broker's CPU time is read when the load says START and END."""
    command = ["java", "-Xmx512M", "-cp", classpath, "dev.lockkeeper.bench.Load"]
    marks: dict[str, float] = {}
    last = ""
    with subprocess.Popen(
        [*command, scenario, running.url, *times], stdout=subprocess.PIPE, text=True
    ) as load:
        assert load.stdout is not None
        for line in load.stdout:
            last = line.strip()
            if last in ("START", "END"):
                marks[last] = cpu_seconds(running.process.pid)
        if load.wait(LOAD_SECONDS_MAX) != 0:
            raise RuntimeError(f"scenario {scenario} failed against {running.kind}")
    found = json.loads(last)
    return Result(
        running.kind,
        scenario,
        number,
        rate=found["messages"] / found["seconds"],
        cpu_us=(marks["END"] - marks["START"]) / max(found["messages"], 1) * 1e6,
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


def table(results: list[Result], scenarios: list[str], beside: str) -> str:
    """Return the medians of both brokers and what ours is of the other's."""
    lines = []
    for scenario in scenarios:
        lines.append(f"\n{scenario}: {SCENARIOS[scenario]}")
        lines.append(f"  {'':12}{OURS:>14}{beside:>14}{'ratio':>9}")
        for measure, (title, form) in MEASURES.items():
            if measure.startswith("p") and scenario not in LATENCY_SCENARIOS:
                continue
            ours = median_of(results, OURS, scenario, measure)
            theirs = median_of(results, beside, scenario, measure)
            if ours is None and theirs is None:
                continue
            shown = ["-" if each is None else form.format(each) for each in (ours, theirs)]
            ratio = f"{ours / theirs:.2f}x" if ours is not None and theirs else "-"
            lines.append(f"  {title:12}{shown[0]:>14}{shown[1]:>14}{ratio:>9}")
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
    parser = argparse.ArgumentParser(description="Our broker beside ActiveMQ.")
    letters = "".join(SCENARIOS)
    parser.add_argument("--scenarios", default=letters, help=f"letters of {letters}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="measured time of a run")
    parser.add_argument("--warm-up", type=float, default=3.0, help="time before it, in seconds")
    parser.add_argument(
        "--beside", choices=[THEIRS, UNRECORDED], default=THEIRS,
        help="the other: ActiveMQ, or ours without its flight recorder",
    )  # fmt: skip
    parser.add_argument("--only", choices=[OURS, THEIRS], help="measure only this broker")
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
            for kind in [options.only] if options.only else [OURS, options.beside]:
                why = brokers.missing(kind)
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
        print(table(results, options.scenarios, options.beside))
        for broker in running:
            if broker.kind == OURS:
                print(f"\n{recorded(broker.directory / 'data')}")
    print(f"\nEvery run: {save(results, options)}")


if __name__ == "__main__":
    main()
