"""Measures our broker beside others, in the same minutes, with ActiveMQ's own Java client.

RabbitMQ has its own client. Each round runs every scenario against one broker after the other, in
an order that changes from round to round, so that a noisy machine is noisy for all. The client
takes most of the machine, therefore the broker's own CPU time per message is the steadiest number.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil
import syncs
from measuring import Failure, Result, Syncs, Usage, usage
from others import (
    BESIDE,
    COMMANDS,
    HERE,
    OURS,
    Measured,
    add_checkout,
    end_by_signal,
    identities,
    java_project,
    missing,
    start,
    version,
)
from rendering import markdown
from scenarios import MIXED_DAY, SCENARIOS, STREAM_SCENARIOS, TLS_SCENARIOS, USUAL, unfit

from lockkeeper.journal.records import Trace
from lockkeeper.journal.verify import StoredRecord, read_records

RESULTS = HERE / "results"
LOAD_SECONDS_MORE = 600
"""So much longer than its warm-up and its measured time may a load take, to start and to end."""


class Client(NamedTuple):
    """The command line of the load generator, and how many seconds it warms up and measures."""

    command: list[str]
    warm_up: float
    seconds: float
    day: float = 600.0

    def line(self, scenario: str, url: str) -> list[str]:
        """Return the command line for a scenario at a broker."""
        return [*self.command, scenario, url, str(self.warm_up), str(self._measured(scenario))]

    def limit(self, scenario: str) -> float:
        """Return within how many seconds a scenario must end."""
        return self.warm_up + self._measured(scenario) + LOAD_SECONDS_MORE

    def _measured(self, scenario: str) -> float:
        return self.day if scenario == MIXED_DAY else self.seconds


@contextmanager
def alone(broker: Measured, running: list[Measured]) -> Iterator[None]:
    """Let all other brokers stand still meanwhile: RocketMQ takes a fifth of a core when idle."""
    others = [
        process
        for each in running
        if each is not broker
        for root in [psutil.Process(each.running.process.pid)]
        for process in [root, *root.children(recursive=True)]
    ]
    try:
        _each(others, psutil.Process.suspend)
        yield
    finally:
        _each(others, psutil.Process.resume)


def _each(processes: list[psutil.Process], do: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        # RabbitMQ has processes that come and go.
        with suppress(psutil.NoSuchProcess):
            do(process)


class LoadError(Exception):
    """A load failed, or did not end in time."""


class Found(NamedTuple):
    """All that a run of the bench has found."""

    results: list[Result]
    failures: list[Failure]
    syncs: list[Syncs]


class Load(NamedTuple):
    """What a run of the load said, and the broker's usage at both ends of the measured time."""

    found: dict[str, Any]
    before: Usage
    after: Usage
    span: syncs.Span


def run_load(broker: Measured, client: Client, scenario: str) -> Load:
    """Run one scenario; the broker's usage is read when the load says START and END.

    Raises LoadError.
    """
    url = broker.secure_url if scenario in TLS_SCENARIOS else broker.url
    if scenario in STREAM_SCENARIOS:
        url = broker.stream_url
    command = client.line(scenario, url)
    marks: dict[str, tuple[Usage, float]] = {}
    last = ""
    limit = client.limit(scenario)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        assert load.stdout is not None
        kill = threading.Timer(limit, load.kill)
        kill.start()
        try:
            for line in load.stdout:
                last = line.strip()
                if last in ("START", "END"):
                    marks[last] = usage(broker.running.process.pid), time.time()
        except BaseException:
            # Ctrl-C, above all: nobody waits for the load any more.
            load.kill()
            raise
        finally:
            kill.cancel()
    if load.returncode == -signal.SIGKILL:
        raise LoadError(f"it did not end within {limit:.0f} s")
    if load.returncode != 0:
        raise LoadError("the client ended with an error")
    (before, began), (after, ended) = marks["START"], marks["END"]
    return Load(json.loads(last), before, after, syncs.Span(began, ended))


def result_of(load: Load, kind: str, scenario: str, number: int) -> Result:
    """Return what a run of the load comes to."""
    found = load.found
    messages = max(found["messages"], 1)
    latencies = ("p50_us", "p99_us", "p999_us", "max_us", "curve", "pause_us", "stall_us")
    return Result(
        kind,
        scenario,
        number,
        rate=found["messages"] / found["seconds"],
        cpu_us=(load.after.cpu - load.before.cpu) / messages * 1e6,
        calls=(load.after.calls - load.before.calls) / messages,
        peak_mb=load.after.peak_mb,
        **{name: found.get(name) for name in latencies},
    )


def run_rounds(
    running: list[Measured], client: Client, asked: argparse.Namespace
) -> tuple[list[Result], list[Failure]]:
    """Run all rounds and return every result; a line for each goes to the terminal.

    A scenario that failed at a broker is not run there again, all others are.
    """
    results: list[Result] = []
    failures: dict[tuple[str, str], Failure] = {}
    began = time.monotonic()
    for number in range(1, asked.rounds + 1):
        passed = time.monotonic() - began
        if asked.minutes and passed * number > asked.minutes * 60 * max(number - 1, 1):
            print(f"Round {number} would end after {asked.minutes:g} minutes: it is left out.")
            break
        for scenario in asked.scenarios:
            for broker in running if number % 2 else reversed(running):
                where = broker.kind, scenario
                if unfit(*where) or where in failures:
                    continue
                try:
                    with alone(broker, running):
                        load = run_load(broker, client, scenario)
                except LoadError as error:
                    failures[where] = Failure(*where, number, str(error))
                    print(f"round {number}  {scenario}  {broker.kind:10}  {error}", flush=True)
                    continue
                result = result_of(load, broker.kind, scenario, number)
                results.append(result)
                p50 = "" if result.p50_us is None else f"  p50 {result.p50_us:,.0f} µs"
                print(
                    f"round {number}  {scenario}  {broker.kind:10}  {result.rate:9,.0f} msgs/s"
                    f"  {result.cpu_us:6.1f} CPU µs/msg{p50}",
                    flush=True,
                )
    return results, list(failures.values())


def started_for(
    scenarios: list[str],
    kind: str,
    directory: Path,
    identity: identities.Identity | None,
    tracer: Sequence[str] = (),
) -> Measured:
    """Start a broker that has what the scenarios need."""
    streams = not set(STREAM_SCENARIOS).isdisjoint(scenarios)
    return start(kind, directory, identity, MIXED_DAY in scenarios, tracer, streams=streams)


def count_syncs(
    kind: str, client: Client, directory: Path, identity: identities.Identity | None,
    scenarios: list[str],
) -> list[Syncs]:  # fmt: skip
    """Run each scenario once more at a broker whose syncs are counted."""
    log = directory.with_suffix(".strace")
    found = []
    broker = started_for(scenarios, kind, directory, identity, syncs.tracer(log))
    try:
        for scenario in scenarios:
            if unfit(kind, scenario):
                continue
            try:
                load = run_load(broker, client, scenario)
            except LoadError as error:
                print(f"syncs    {scenario}  {kind:10}  {error}", flush=True)
                continue
            each = syncs.count(log.read_text(errors="replace"), load.span)
            found.append(Syncs(kind, scenario, each / max(load.found["messages"], 1)))
            print(f"syncs    {scenario}  {kind:10}  {found[-1].syncs:.3f} a message", flush=True)
    finally:
        broker.running.stop()
    return found


def recorded(journal: Path) -> str:
    """Return what of the bytes that are left of *journal* the flight recorder's are."""
    own = every = 0
    for found in read_records(journal):
        assert isinstance(found, StoredRecord), found
        every += found.size
        own += found.size if isinstance(found.record, Trace) else 0
    return f"The flight recorder's: {own:,} of {every:,} bytes in the journal ({own / every:.2%})"


def report_of(found: Found, asked: argparse.Namespace) -> dict[str, Any]:
    """Return every result, and on what machine it was measured."""
    model = next(
        line.partition(":")[2].strip()
        for line in [*Path("/proc/cpuinfo").read_text().splitlines(), "model name: unknown"]
        if line.startswith("model name")
    )
    return {
        "time": time.strftime("%Y-%m-%d %H:%M"),
        "machine": {
            "cores": os.cpu_count(),
            "processor": model,
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "system": platform.platform(),
        },
        "versions": {kind: version(kind) for kind in ("java", "python", *asked.brokers)},
        "seconds": asked.seconds,
        "day_seconds": asked.day,
        "warm_up_seconds": asked.warm_up,
        "brokers": asked.brokers,
        "scenarios": asked.scenarios,
        "results": [asdict(each) for each in found.results],
        "failures": [asdict(each) for each in found.failures],
        "syncs": [asdict(each) for each in found.syncs],
    }


def save(report: dict[str, Any]) -> Path:
    """Write a report as JSON."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    return path


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Our broker beside others.")
    letters = "".join(SCENARIOS)
    parser.add_argument("--scenarios", default=USUAL, help=f"letters of {letters}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--minutes", type=float, default=0, help="leave out rounds that would end later"
    )
    parser.add_argument("--seconds", type=float, default=6.0, help="measured time of a run")
    parser.add_argument("--warm-up", type=float, default=3.0, help="time before it, in seconds")
    parser.add_argument("--day", type=float, default=600.0, help="measured seconds of scenario s")
    parser.add_argument(
        "--brokers", nargs="+", choices=COMMANDS, default=[OURS, "activemq"],
        help="what is measured; all others are compared with the first one",
    )  # fmt: skip
    parser.add_argument(
        "--beside", type=Path, help="the checkout of another version, which is measured, too"
    )
    parser.add_argument(
        "--directory", type=Path, default=RESULTS, help="where journals go: a real disk, not tmpfs"
    )
    parser.add_argument(
        "--syncs", action="store_true", help="count syncs by strace, in one more run of each"
    )
    asked = parser.parse_args(given)
    asked.scenarios = list(dict.fromkeys(asked.scenarios))
    asked.brokers = list(dict.fromkeys(asked.brokers))
    unknown = [letter for letter in asked.scenarios if letter not in SCENARIOS]
    if unknown or not asked.scenarios:
        parser.error(f"--scenarios: {', '.join(unknown) or 'nothing'} is not among {letters}")
    for name, least in (
        ("rounds", 1),
        ("seconds", 0.1),
        ("day", 0.1),
        ("warm_up", 0),
        ("minutes", 0),
    ):
        if getattr(asked, name) < least:
            parser.error(f"--{name.replace('_', '-')}: at least {least}")
    if asked.syncs and syncs.missing():
        parser.error(f"--syncs: {syncs.missing()}")
    if asked.beside:
        try:
            add_checkout(asked.beside)
        except ValueError as error:
            parser.error(f"--beside: {error}")
        asked.brokers.append(BESIDE)
    return asked


@contextmanager
def started(
    kinds: list[str], directory: Path, identity: identities.Identity | None, scenarios: list[str]
) -> Iterator[list[Measured]]:
    """Start brokers, and stop them in the end."""
    running: list[Measured] = []
    try:
        for kind in kinds:
            running.append(started_for(scenarios, kind, directory / kind, identity))
        yield running
    finally:
        for broker in running:
            broker.running.stop()


def measure(asked: argparse.Namespace, directory: Path) -> Found:
    """Run everything, with journals below *directory*."""
    secured = not set(TLS_SCENARIOS).isdisjoint(asked.scenarios)
    identity = identities.make(directory / "certificates") if secured else None
    java = ["java", "-Xmx512M", *(identity.java_options if identity else [])]
    java += ["-cp", java_project.build(HERE / "java"), "dev.lockkeeper.bench.Load"]
    client = Client(java, asked.warm_up, asked.seconds, asked.day)
    with started(asked.brokers, directory, identity, asked.scenarios) as running:
        results, failures = run_rounds(running, client, asked)
    counted: list[Syncs] = []
    for kind in asked.brokers if asked.syncs else []:
        place = directory / f"{kind}-traced"
        counted += count_syncs(kind, client, place, identity, asked.scenarios)
    return Found(results, failures, counted)


def main() -> None:
    """Start the brokers, run the rounds, print and save."""
    asked = arguments()
    end_by_signal()
    reason = java_project.missing()
    if reason:
        sys.exit(f"The bench needs a JDK and Maven; {reason}.")
    for kind in asked.brokers[:]:
        why = missing(kind)
        if why:
            print(f"Without {kind}: {why}.")
            asked.brokers.remove(kind)
    if not asked.brokers:
        sys.exit("There is no broker to measure.")
    asked.directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=asked.directory, prefix="journals-") as directory:
        report = report_of(measure(asked, Path(directory)), asked)
        print(markdown(report))
        if OURS in asked.brokers:
            print(f"\n{recorded(Path(directory, OURS, 'data'))}")
    print(f"\nEvery run: {save(report)}")


if __name__ == "__main__":
    main()
