"""What the interoperability tests share: the Java program and the running brokers."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "crash"), str(HERE.parent / "broker" / "streams")]

import brokers  # noqa: E402
import java_project  # noqa: E402
import java_scenarios as java_scenarios_module  # noqa: E402


@pytest.fixture(scope="session")
def java_classpath() -> str:
    """Return the class path of the JMS scenarios."""
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    return java_project.build(HERE / "java")


@pytest.fixture(scope="session")
def activemq6_classpath() -> str:
    """Return the class path of ActiveMQ 6; Maven fetches it once."""
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    try:
        return java_project.build(HERE / "activemq6")
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"no ActiveMQ 6: {error}")


@pytest.fixture(scope="session")
def java_scenarios(
    java_classpath: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[java_scenarios_module.JavaScenarios]:
    """Return the Java program that runs JMS scenarios against a broker's URL."""
    log = tmp_path_factory.mktemp("java") / "scenarios.log"
    scenarios = java_scenarios_module.JavaScenarios(java_classpath, log)
    yield scenarios
    scenarios.stop()


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


@pytest.fixture(scope="module")
def configured_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[brokers.RunningBroker]:
    """Return a running broker of a kind with a configuration; the parameter is both."""
    kind, configuration = request.param
    reason = brokers.missing(kind)
    if reason:
        pytest.skip(reason)
    running = brokers.start_broker(kind, tmp_path_factory.mktemp(kind), configuration)
    yield running
    running.stop()
