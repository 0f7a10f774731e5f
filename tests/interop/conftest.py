"""What the interoperability tests share: the Java program and the running brokers."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import brokers  # noqa: E402
import java_project  # noqa: E402

SCENARIO_SECONDS_MAX = 120
RunScenario = Callable[[str, str], dict[str, Any]]


@pytest.fixture(scope="session")
def java_classpath() -> str:
    """Return the class path of the JMS scenarios."""
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    return java_project.build(HERE / "java")


@pytest.fixture(scope="session")
def run_scenario(java_classpath: str) -> RunScenario:
    """Return a function that runs a JMS scenario against a broker's URL."""

    def run(scenario: str, url: str) -> dict[str, Any]:
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", java_classpath]
        done = subprocess.run(
            [*command, "dev.lockkeeper.interop.Main", scenario, url],
            capture_output=True,
            text=True,
            timeout=SCENARIO_SECONDS_MAX,
            check=False,
        )
        lines = done.stdout.splitlines()
        if not lines:
            return {"ok": False, "error": done.stderr}
        result: dict[str, Any] = json.loads(lines[-1])
        return result

    return run


@pytest.fixture(scope="session")
def scenario_names(java_classpath: str) -> set[str]:
    """Return the names of the scenarios that the Java program has."""
    done = subprocess.run(
        ["java", "-cp", java_classpath, "dev.lockkeeper.interop.Main", "list"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.fixture(scope="module", params=["lockkeeper", "activemq"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[brokers.RunningBroker]:
    """Return a running broker, ours and then ActiveMQ."""
    reason = brokers.missing(request.param)
    if reason:
        pytest.skip(reason)
    running = brokers.start_broker(request.param, tmp_path_factory.mktemp(request.param))
    yield running
    running.stop()
