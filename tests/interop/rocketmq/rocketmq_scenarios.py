"""The RocketMQ scenarios: a Java program, once for each line of clients, that runs several at once.

A scenario says what it saw, line by line. That is held against what it sees with a real RocketMQ,
which is kept in outcomes.json: for both lines of clients as one list where they see the same.
"""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import java_project

HERE = Path(__file__).parent
SCENARIOS = HERE / "scenarios"
OUTCOMES = HERE / "outcomes.json"
LINES = {"4.9.8": "client4", "5.3.3": "client5"}
"""The folder that builds each version of the client."""
# Members of a group look again which queues are theirs, and locks are renewed, every second.
HASTE = (
    "-Drocketmq.client.rebalance.waitInterval=1000",
    "-Drocketmq.client.rebalance.lockInterval=1000",
)
# A busy machine takes its time to connect.
PATIENCE = "-Dcom.rocketmq.remoting.client.connect.timeout=30000"
JAVA = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512M", PATIENCE, *HASTE]
MAIN = "dev.lockkeeper.rocketmq.Main"
SECONDS_MAX = 1800
"""How long all of them may take, on a machine that others use, too."""


class Report(NamedTuple):
    """What a scenario saw, what it failed with, and how long it took in ms."""

    facts: list[str]
    error: str | None
    millis: int


def class_path(version: str) -> str:
    """Return the class path of the program with a *version* of the client, built if need be."""
    return java_project.build(HERE / LINES[version], SCENARIOS)


def names(version: str) -> set[str]:
    """Return the names of all scenarios."""
    command = [*JAVA, "-cp", class_path(version), MAIN, "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def run(version: str, scenarios: Iterable[str], port: int, directory: Path) -> dict[str, Report]:
    """Run scenarios against the name server at *port*; *directory* is for what clients write."""
    wanted = [*scenarios]
    directory.mkdir(parents=True, exist_ok=True)
    home = f"-Duser.home={directory}"
    command = [*JAVA, home, "-cp", class_path(version), MAIN, f"127.0.0.1:{port}"]
    told, log = directory / "reports", directory / "scenarios.log"
    with told.open("wb") as out, log.open("wb") as err:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err)
        try:
            process.communicate("".join(f"{name}\n" for name in wanted).encode(), SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    reports: dict[str, Report] = {}
    for line in told.read_text().splitlines():
        if line.startswith('{"scenario"'):
            report = json.loads(line)
            name, facts = report["scenario"], report["facts"]
            reports[name] = Report(facts, report["error"], report["millis"])
    for name in wanted:
        reports.setdefault(name, Report([], f"no report, see {directory}", 0))
    return reports


def known_outcomes() -> dict[str, dict[str, list[str]]]:
    """Return what each scenario sees with a real RocketMQ, by the version of the client.

    A version that a scenario does not work with is missing.
    """
    kept = json.loads(OUTCOMES.read_text())
    return {
        name: outcome if isinstance(outcome, dict) else dict.fromkeys(LINES, outcome)
        for name, outcome in kept.items()
    }


def keep_outcomes(outcomes: dict[str, dict[str, list[str]]]) -> None:
    """Write what scenarios have seen with a real RocketMQ."""
    kept: dict[str, object] = {}
    for name, by_version in sorted(outcomes.items()):
        first, *others = by_version.values()
        is_same = len(by_version) == len(LINES) and all(other == first for other in others)
        kept[name] = first if is_same else by_version
    OUTCOMES.write_text(json.dumps(kept, indent=1) + "\n")
