"""Measures clients beside each other: what one process sends and receives, and what that costs it.

Every round runs each client against each broker that it can talk to, in an order that changes from
round to round. `bench/clients.py --into docs/client.md` writes the table into a page.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from client_loads import ASYNCIO
from others import HERE, RABBITMQ, Measured, end_by_signal, java_project, missing, start, version
from rendering import placed

LOAD_SECONDS_MAX = 600
JAVA = "java"
OPENWIRE = ("lockkeeper", ASYNCIO, JAVA)
TALKS_TO = {
    **dict.fromkeys(OPENWIRE, ("lockkeeper", "activemq")),
    "stomp.py": ("activemq",),
    "pika": (RABBITMQ,),
}
"""The brokers that each client is measured with."""
WHAT = ("sends", "receives")


class Run(NamedTuple):
    """One run of one client: messages/s, its CPU in µs per message, its most memory in MB."""

    client: str
    broker: str
    what: str
    rate: float
    cpu_us: float
    peak_mb: float


def measure(
    client: str, broker: Measured, what: str, asked: argparse.Namespace, name: str = ""
) -> Run:
    """Run a client once, with a destination of its own. Raises RuntimeError when it fails."""
    if client == JAVA:
        command = ["java", "-Xmx512M", "-cp", java_project.build(HERE / "java")]
        command += ["dev.lockkeeper.bench.ClientLoad"]
    else:
        command = [sys.executable, str(HERE / "client_loads.py"), client]
    url = broker.stomp_url if client == "stomp.py" else broker.url
    name = name or f"CLIENTS.{time.monotonic_ns()}"
    arguments = [url, name, what, str(asked.messages // 2), str(asked.messages)]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False,
        timeout=LOAD_SECONDS_MAX,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{client} failed with {broker.kind}:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    rate, cpu = asked.messages / found["seconds"], found["cpu_seconds"] / asked.messages * 1e6
    return Run(client, broker.kind, what, rate, cpu, found["peak_mb"])


def rounds(running: dict[str, Measured], asked: argparse.Namespace) -> Iterator[Run]:
    """Yield every run."""
    pairs = [
        (client, running[kind], what)
        for what in WHAT
        for client in asked.clients
        for kind in TALKS_TO[client]
        if kind in running
    ]
    for number in range(asked.rounds):
        for client, broker, what in reversed(pairs) if number % 2 else pairs:
            run = measure(client, broker, what, asked)
            print(
                f"round {number + 1}  {what:8}{client:20}{broker.kind:12}"
                f"{run.rate:9,.0f} msgs/s  {run.cpu_us:6.1f} CPU µs/msg",
                file=sys.stderr, flush=True,
            )  # fmt: skip
            yield run


def table(runs: list[Run], asked: argparse.Namespace) -> str:
    """Return the medians in Markdown."""
    kinds = list(dict.fromkeys(run.broker for run in runs))
    told = [f"{kind} {version(kind)}" for kind in ("python", "java", *kinds)]
    told += [f"{name} {metadata.version(name)}" for name in ("stomp-py", "pika")]
    lines = [
        f"Measured {time.strftime('%Y-%m-%d %H:%M')}: {', '.join(told)}. Medians of "
        f"{asked.rounds} rounds of {asked.messages:,} messages; in brackets the least and the "
        "most.\n",
        "| client | broker | it | messages/s | the client's CPU µs a message | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    for client, broker, what in dict.fromkeys((run.client, run.broker, run.what) for run in runs):
        found = [run for run in runs if run[:3] == (client, broker, what)]
        lines.append(
            f"| {client} | {broker} | {what} | {_spread([run.rate for run in found], ',.0f')} | "
            f"{_spread([run.cpu_us for run in found], '.1f')} | "
            f"{median(run.peak_mb for run in found):.0f} |"
        )
    return "\n".join(lines)


def _spread(values: list[float], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Clients beside each other.")
    parser.add_argument("--clients", nargs="+", choices=TALKS_TO, default=list(TALKS_TO))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--messages", type=int, default=100_000, help="of a run; half as many before do not count"
    )
    parser.add_argument("--directory", type=Path, help="where journals go")
    parser.add_argument("--into", type=Path, help="a page with marks, into which it is written")
    asked = parser.parse_args(given)
    asked.clients = list(dict.fromkeys(asked.clients))
    for name, least in (("rounds", 1), ("messages", 2)):
        if getattr(asked, name) < least:
            parser.error(f"--{name}: at least {least}")
    return asked


def main() -> None:
    """Start the brokers, run the rounds and print the table."""
    asked = arguments()
    end_by_signal()
    running: dict[str, Measured] = {}
    if JAVA in asked.clients and (why := java_project.missing()):
        print(f"Without {JAVA}: {why}.", file=sys.stderr)
        asked.clients.remove(JAVA)
    with TemporaryDirectory(dir=asked.directory, prefix="clients-") as directory:
        try:
            for kind in dict.fromkeys(kind for each in asked.clients for kind in TALKS_TO[each]):
                if why := missing(kind):
                    print(f"Without {kind}: {why}.", file=sys.stderr)
                else:
                    running[kind] = start(kind, Path(directory, kind), stomp=True)
            text = table(list(rounds(running, asked)), asked)
        finally:
            for broker in running.values():
                broker.running.stop()
    print(text)
    if asked.into:
        asked.into.write_text(placed(asked.into.read_text(), text))


if __name__ == "__main__":
    main()
